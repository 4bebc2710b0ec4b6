"""Evaluation with OpenSpiel's algorithms, compared with OpenSpiel's C++ functions."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

import game_defs  # noqa: F401  (registers the games)
from spiel_cr.common import messages
from spiel_cr.evaluation import openspiel_evaluator


def random_table(game, seed):
    """Return a table of random probabilities, some of which are zero."""
    random = np.random.default_rng(seed)
    table = policy_lib.TabularPolicy(game)
    weights = random.random(table.action_probability_array.shape) ** 3
    weights = (weights + 1e-3) * table.legal_actions_mask
    half = random.random(weights.shape) < 0.3
    kept = np.where(half, 0, weights)
    weights = np.where(kept.sum(1, keepdims=True) > 0, kept, weights)
    table.action_probability_array[:] = weights / weights.sum(1, keepdims=True)
    return table


def bundled_policy(table):
    """Return the same policy for OpenSpiel's C++ tools."""
    return pyspiel.TabularPolicy(
        {
            key: [
                (action, float(p))
                for action, p in enumerate(table.policy_for_key(key))
                if table.legal_actions_mask[row, action]
            ]
            for key, row in table.state_lookup.items()
        }
    )


@pytest.mark.parametrize(
    ("name", "seed"), [("kuhn_poker", 1), ("kuhn_poker", 2), ("leduc_poker", 1)]
)
def test_evaluation_equals_openspiels_cpp_functions(name, seed):
    game = pyspiel.load_game(name)
    table = random_table(game, seed)
    verdict = openspiel_evaluator.evaluate(game, table)
    bundled = bundled_policy(table)
    assert verdict.nash_conv == pytest.approx(
        pyspiel.nash_conv(game, bundled), abs=1e-9
    )
    values = pyspiel.expected_returns(game.new_initial_state(), bundled, -1, False)
    assert verdict.game_value == pytest.approx(values[0], abs=1e-9)
    assert verdict.nash_conv > 0.1


def test_long_evaluations_by_openspiel_report_progress(monkeypatch, capsys):
    game = pyspiel.load_game("kuhn_poker")
    table = random_table(game, 1)
    silent = openspiel_evaluator.evaluate(game, table)
    assert not capsys.readouterr().err
    monkeypatch.setattr(openspiel_evaluator, "_SILENT", 0.0)
    with messages.listening():
        assert openspiel_evaluator.evaluate(game, table) == silent
    assert "evaluating (OpenSpiel): " in capsys.readouterr().err
