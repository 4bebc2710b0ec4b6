"""Stopping criteria, curves and argument checks of `solve`."""

import math
import time

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from tests.support import games
from tests.support.solving import solve_with

MOST = 2**31 - 1


def openspiel_nash_conv(result):
    return exploitability.nash_conv(result.tree.game, result.average_policy())


def test_stops_after_the_given_seconds():
    started = time.process_time()
    result = spiel_cr.solve(
        games.compiled("leduc7"), "cfr+", spiel_cr.Goal(MOST, seconds=0.5)
    )
    assert 0 < result.iterations < MOST
    assert result.seconds >= 0.5
    # Chunks of iterations last a quarter of a second; the rest is for slow machines.
    assert time.process_time() - started < 15


@pytest.mark.parametrize("eval_every", [None, 7])
@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_stops_when_nash_conv_reaches_until(name, eval_every):
    compiled = games.compiled(name)
    result = spiel_cr.solve(
        compiled, "pcfr+", spiel_cr.Goal(MOST, until=1e-3, eval_every=eval_every)
    )
    *before, last = result.curve
    assert last.nash_conv <= 1e-3
    assert all(point.nash_conv > 1e-3 for point in before)
    assert last.iterations == result.iterations
    assert last.nash_conv == pytest.approx(openspiel_nash_conv(result), abs=1e-9)


def test_stops_after_iterations_if_until_is_not_reached():
    result = spiel_cr.solve(
        games.compiled("kuhn"), "cfr", spiel_cr.Goal(25, until=1e-12)
    )
    assert [point.iterations for point in result.curve][-1] == result.iterations == 25


@pytest.mark.parametrize(
    "every,expected",
    [(10, [10, 20, 25]), (25, [25]), (100, [25]), (5, [5, 10, 15, 20, 25])],
)
def test_curve_equals_nash_conv_of_separate_runs(every, expected):
    compiled = games.compiled("kuhn")
    result = spiel_cr.solve(compiled, "cfr+", spiel_cr.Goal(25, eval_every=every))
    assert [point.iterations for point in result.curve] == expected
    seconds = [point.seconds for point in result.curve]
    assert seconds == sorted(seconds) and seconds[-1] == result.seconds
    for point in result.curve:
        alone = spiel_cr.solve(compiled, "cfr+", point.iterations)
        assert point.nash_conv == pytest.approx(openspiel_nash_conv(alone), abs=1e-9)
    # Evaluations do not change the iterates.
    for player in range(2):
        np.testing.assert_array_equal(result.average[player], alone.average[player])


def test_float32_runs_are_evaluated_in_float64():
    """The curve has the NashConv of the returned policy, including its rounding."""
    compiled = games.compiled("kuhn")
    goal = spiel_cr.Goal(200, eval_every=200)
    result = spiel_cr.solve(compiled, "pcfr+", goal, dtype="float32")
    assert result.curve[-1].nash_conv == pytest.approx(
        openspiel_nash_conv(result), abs=1e-11
    )


def test_no_curve_without_eval_every():
    assert spiel_cr.solve(games.compiled("kuhn"), "cfr+", 25).curve == ()


@pytest.mark.parametrize(
    "name,value",
    [
        *((name, v) for name in ("seconds", "until") for v in (0, -1.0, math.nan)),
        *(("eval_every", v) for v in (0, -1, 1.5, True, 2**31)),
        *(("iterations", v) for v in (0, -1, 1.5, True, 2**31)),
        *(("dtype", v) for v in ("int32", "float16", "x")),
        *(("algorithm", v) for v in ("", "x", "LP(", "lp(x=1)")),
    ],
)
def test_rejects_invalid_arguments(name, value):
    with pytest.raises(ValueError, match=name):
        solve_with(games.compiled("kuhn"), **{name: value})
