"""When `solve` stops and looks, and which arguments it refuses."""

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


def test_seconds_stop():
    started = time.process_time()
    result = spiel_cr.solve(
        games.compiled("leduc7"), "cfr+", spiel_cr.Goal(MOST, seconds=0.5)
    )
    assert 0 < result.iterations < MOST
    assert result.seconds >= 0.5
    # Chunks last a quarter of a second; the rest is for slow machines.
    assert time.process_time() - started < 15


@pytest.mark.parametrize("eval_every", [None, 7])
@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
def test_until_stops(name, eval_every):
    compiled = games.compiled(name)
    result = spiel_cr.solve(
        compiled, "pcfr+", spiel_cr.Goal(MOST, until=1e-3, eval_every=eval_every)
    )
    *before, last = result.curve
    assert last.nash_conv <= 1e-3
    assert all(point.nash_conv > 1e-3 for point in before)
    assert last.iterations == result.iterations
    assert last.nash_conv == pytest.approx(openspiel_nash_conv(result), abs=1e-9)


def test_until_never_reached():
    result = spiel_cr.solve(
        games.compiled("kuhn"), "cfr", spiel_cr.Goal(25, until=1e-12)
    )
    assert [point.iterations for point in result.curve][-1] == result.iterations == 25


@pytest.mark.parametrize(
    "every,expected",
    [(10, [10, 20, 25]), (25, [25]), (100, [25]), (5, [5, 10, 15, 20, 25])],
)
def test_curve(every, expected):
    compiled = games.compiled("kuhn")
    result = spiel_cr.solve(compiled, "cfr+", spiel_cr.Goal(25, eval_every=every))
    assert [point.iterations for point in result.curve] == expected
    seconds = [point.seconds for point in result.curve]
    assert seconds == sorted(seconds) and seconds[-1] == result.seconds
    for point in result.curve:
        alone = spiel_cr.solve(compiled, "cfr+", point.iterations)
        assert point.nash_conv == pytest.approx(openspiel_nash_conv(alone), abs=1e-9)
    # Looking changes nothing.
    for player in range(2):
        np.testing.assert_array_equal(result.average[player], alone.average[player])


def test_single_precision_is_judged_in_double():
    """Points on the way are those of the policy that comes out, rounding included."""
    compiled = games.compiled("kuhn")
    goal = spiel_cr.Goal(200, eval_every=200)
    result = spiel_cr.solve(compiled, "pcfr+", goal, dtype="float32")
    assert result.curve[-1].nash_conv == pytest.approx(
        openspiel_nash_conv(result), abs=1e-11
    )


def test_no_curve_unless_asked():
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
def test_bad_arguments_refused(name, value):
    with pytest.raises(ValueError, match=name):
        solve_with(games.compiled("kuhn"), **{name: value})
