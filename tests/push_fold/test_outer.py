"""Loops around stages: a wrong fixed point of value iteration, and deviations."""

import itertools

import numpy as np
import pytest

from spiel_cr.common.errors import SolverFailedError
from spiel_cr.push_fold import outer
from spiel_cr.push_fold.engine import InnerSettings
from tests.push_fold.reference import StopOrContinue, ex_post_gains

INNER = InnerSettings(20, 1)


def last_round(algorithm, game, count):
    rounds = outer.rounds(game, algorithm, INNER)
    return next(itertools.islice(rounds, count - 1, None))


def test_value_iteration_stops_at_a_wrong_fixed_point():
    """Players who expect 2 continue for ever, so the wrong values do not change."""
    game = StopOrContinue(2.0)
    end = last_round("vi-fp", game, 10)
    assert end.change == 0
    np.testing.assert_array_equal(end.values, 2 * np.eye(2))
    # The player wins nothing, and would win 1 by stopping.
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), np.eye(2))


@pytest.mark.parametrize("algorithm", ["pi-fp", "fp-pi", "fp-vi"])
def test_other_loops_find_the_equilibrium(algorithm):
    game = StopOrContinue(2.0)
    end = last_round(algorithm, game, 10)
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), 0)
    np.testing.assert_array_equal(game.evaluate(end.profile), np.eye(2))


def test_value_iteration_from_low_values_finds_the_equilibrium():
    game = StopOrContinue(0.5)
    end = last_round("vi-fp", game, 10)
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), 0)


def test_raises_if_best_responses_do_not_converge():
    """A search whose values rise in every step must not end without an error."""

    class Richer(StopOrContinue):
        def evaluate_alone(self, profile, replies):
            self.gain = getattr(self, "gain", 2.0) + 1
            return np.full((2, 2), self.gain)

    game = Richer(2.0)
    with pytest.raises(SolverFailedError, match="tolerance=0.5: .* Richer still rise"):
        outer.best_deviation(game, game.start_profile(), tolerance=0.5)


def test_rejects_unknown_algorithm():
    with pytest.raises(ValueError, match="fp-fp"):
        next(outer.rounds(StopOrContinue(1.0), "fp-fp", INNER))
