"""Loops around stages: where value iteration stops wrongly, and what judges it."""

import itertools

import numpy as np
import pytest

from spiel_cr.common.errors import SolverFailedError
from spiel_cr.push_fold import outer
from spiel_cr.push_fold.engine import InnerSettings
from tests.push_fold.reference import StopOrGoOn, ex_post_gains

INNER = InnerSettings(20, 1)


def last_round(algorithm, game, count):
    rounds = outer.rounds(game, algorithm, INNER)
    return next(itertools.islice(rounds, count - 1, None))


def test_value_iteration_stops_where_no_equilibrium_is():
    """Who expects 2 goes on for ever; the values keep themselves up."""
    game = StopOrGoOn(2.0)
    end = last_round("vi-fp", game, 10)
    assert end.change == 0
    np.testing.assert_array_equal(end.values, 2 * np.eye(2))
    # It wins nothing so, and would win 1 by stopping.
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), np.eye(2))


@pytest.mark.parametrize("algorithm", ["pi-fp", "fp-pi", "fp-vi"])
def test_the_other_loops_do_not(algorithm):
    game = StopOrGoOn(2.0)
    end = last_round(algorithm, game, 10)
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), 0)
    np.testing.assert_array_equal(game.evaluate(end.profile), np.eye(2))


def test_value_iteration_is_right_from_below():
    game = StopOrGoOn(0.5)
    end = last_round("vi-fp", game, 10)
    np.testing.assert_array_equal(ex_post_gains(game, end.profile), 0)


def test_best_responses_that_never_end():
    """Nobody is told that an endless search has ended."""

    class Richer(StopOrGoOn):
        def evaluate_alone(self, profile, replies):
            self.gain = getattr(self, "gain", 2.0) + 1
            return np.full((2, 2), self.gain)

    game = Richer(2.0)
    with pytest.raises(SolverFailedError, match="tolerance=0.5: .* Richer still rise"):
        outer.best_deviation(game, game.start_profile(), tolerance=0.5)


def test_unknown_algorithm():
    with pytest.raises(ValueError, match="fp-fp"):
        next(outer.rounds(StopOrGoOn(1.0), "fp-fp", INNER))
