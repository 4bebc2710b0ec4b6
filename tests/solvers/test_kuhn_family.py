"""Kuhn poker's equilibria: those of the family of Kuhn (1950), and nothing else."""

import pytest
from open_spiel.python.algorithms import expected_game_score

import spiel_cr
from tests.support import games

# What remains after these iterations is far below, what is wrong far above. A sampled
# solver is close with the square root of its work.
CLOSE = 2e-3
ROWS = [
    ("lp", 1, CLOSE),
    ("cfr", 100_000, 5 * CLOSE),
    ("cfr+", 5_000, CLOSE),
    ("dcfr", 5_000, CLOSE),
    ("pdcfr+", 5_000, CLOSE),
    ("evr-mccfr", 1_000, 20 * CLOSE),
]


def farthest_off(policy):
    """How far a policy is from the family, the value apart.

    The second player's equilibrium is unique, the first one's has a parameter: alpha,
    the probability of betting the jack, from 0 to 1/3.
    """
    betting = {
        key: policy.policy_for_key(key)[1] for key in ("0", "1", "2", "1pb", "0p", "1b")
    }
    alpha = betting["0"]
    due = {"2": 3 * alpha, "1": 0.0, "1pb": alpha + 1 / 3, "0p": 1 / 3, "1b": 1 / 3}
    off = [abs(betting[key] - value) for key, value in due.items()]
    return max(*off, -alpha, alpha - 1 / 3)


@pytest.mark.parametrize(("algorithm", "iterations", "close"), ROWS)
def test_family_and_value(algorithm, iterations, close):
    tree = games.compiled("kuhn")
    result = spiel_cr.solve(tree, algorithm, iterations, seed=1)
    policy = result.average_policy()
    assert farthest_off(policy) < close
    start = tree.game.new_initial_state()
    value, _ = expected_game_score.policy_value(start, [policy] * 2)
    assert value == pytest.approx(-1 / 18, abs=close)


def test_uniform_play_is_not_of_the_family():
    result = spiel_cr.solve(games.compiled("kuhn"), "cfr", 1)
    assert farthest_off(result.average_policy()) > 0.1
