"""The judge against OpenSpiel's C++, and the bundled algorithms behind adapters."""

import itertools
import time
import types

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib
from spiel_cr.eval.contestants import baselines
from spiel_cr.eval.judging import python_judge

import game_defs  # noqa: F401  (registers the games)

GAMES = ("kuhn_poker", "python_ii_goofspiel(num_cards=3)")
ADAPTERS = {
    "uniform": baselines.uniform,
    "cfr_plus": lambda game: baselines.bundled_cfr_plus(game, 20),
    "outcome_sampling": lambda game: baselines.outcome_sampling(game, 0.05, 1),
}


def random_table(game, seed):
    """Random probabilities at every infoset, some of them zero."""
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
    """The same policy for OpenSpiel's C++ tools."""
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


@pytest.mark.parametrize("seed", (1, 2))
@pytest.mark.parametrize("name", ("kuhn_poker", "leduc_poker"))
def test_judge_agrees_with_the_bundled_cpp(name, seed):
    game = pyspiel.load_game(name)
    table = random_table(game, seed)
    verdict = python_judge.judge(game, table)
    bundled = bundled_policy(table)
    assert verdict.nash_conv == pytest.approx(
        pyspiel.nash_conv(game, bundled), abs=1e-9
    )
    values = pyspiel.expected_returns(game.new_initial_state(), bundled, -1, False)
    assert verdict.game_value == pytest.approx(values[0], abs=1e-9)
    assert verdict.nash_conv > 0.1


def states(state):
    """All decision nodes below."""
    if state.is_terminal():
        return
    if not state.is_chance_node():
        yield state
    for action in state.legal_actions():
        yield from states(state.child(action))


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", GAMES)
def test_adapters_give_valid_policies(name, adapter):
    game = pyspiel.load_game(name)
    baseline = ADAPTERS[adapter](game)
    for state in states(game.new_initial_state()):
        probabilities = baseline.policy.action_probabilities(state)
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-9)
        assert min(probabilities.values()) >= 0
        played = {action for action, p in probabilities.items() if p > 0}
        assert played <= set(state.legal_actions())


@pytest.mark.parametrize("name", GAMES)
def test_adapters_beat_uniform(name):
    game = pyspiel.load_game(name)
    uniform, *others = (
        python_judge.judge(game, adapter(game).policy).nash_conv
        for adapter in ADAPTERS.values()
    )
    assert max(others) < uniform


@pytest.mark.parametrize("name", GAMES)
def test_bundled_cfr_plus_falls(name):
    game = pyspiel.load_game(name)
    runs = [baselines.bundled_cfr_plus(game, n) for n in (1, 30, 1000)]
    assert [run.iterations for run in runs] == [1, 30, 1000]
    found = [python_judge.judge(game, run.policy).nash_conv for run in runs]
    assert found[0] > found[1] > found[2]
    assert found[2] < 0.01


def test_outcome_sampling_takes_the_time_it_is_given():
    game = pyspiel.load_game("kuhn_poker")
    for seconds in (0, 0.3):
        started = time.perf_counter()
        baseline = baselines.outcome_sampling(game, seconds, 1)
        wall = time.perf_counter() - started
        assert seconds <= baseline.seconds <= wall < seconds + 1
        assert (baseline.iterations > 0) == (seconds > 0)


def test_outcome_sampling_depends_on_the_seed_alone(monkeypatch):
    game = pyspiel.load_game("kuhn_poker")

    def table(seed):
        # A clock that ticks once a look: always two chunks.
        clock = types.SimpleNamespace(perf_counter=itertools.count().__next__)
        monkeypatch.setattr(baselines, "time", clock)
        baseline = baselines.outcome_sampling(game, 2.5, seed)
        assert baseline.iterations == 2000
        return baseline.policy.action_probability_array

    np.testing.assert_array_equal(table(1), table(1))
    assert np.abs(table(1) - table(2)).max() > 1e-6
