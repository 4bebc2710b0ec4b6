"""The confidence interval of all reports."""

import math

import numpy as np
import pytest

from spiel_cr.common.statistics import mean_and_half_width, ratio_and_half_width
from spiel_cr.evaluation.control_variates import without_luck

# Of Student's t with one degree of freedom: tan(0.475 pi); with two, from its closed
# form t = 2 (p - 1/2) / sqrt(2 p (1 - p)) at p = 0.975.
T_1 = math.tan(0.475 * math.pi)
T_2 = 2 * 0.475 / math.sqrt(2 * 0.975 * 0.025)


@pytest.mark.parametrize(
    ("values", "mean", "half_width"),
    [
        ([1.0, 3.0], 2.0, T_1 * 1.0),  # deviation sqrt(2), error 1
        ([0.0, 1.0, 5.0], 2.0, T_2 * math.sqrt(7 / 3)),  # squares 4 + 1 + 9
        ([0.5, 0.5, 0.5], 0.5, 0.0),
    ],
)
def test_by_hand(values, mean, half_width):
    found = mean_and_half_width(values)
    assert found == pytest.approx((mean, half_width), abs=1e-12)


def test_one_observation_has_no_interval():
    assert mean_and_half_width([2.0]) == (2.0, None)


def test_equal_observations_have_an_interval_where_bounds_are_known():
    """Of matches that miss another value 5 % of the time none may say ± 0."""
    mean, half = mean_and_half_width([0.5, 0.5, 0.5], (-1.0, 2.0))
    # (1 - p)^3 = 0.05, and the other bound is 1.5 away.
    assert mean == 0.5
    assert (1 - half / 1.5) ** 3 == pytest.approx(0.05)
    # Rounding, as of returns less their luck, is no spread.
    rounded = [0.5, 0.5 + 1e-15, 0.5]
    assert mean_and_half_width(rounded, (-1.0, 2.0))[1] == pytest.approx(half)
    # With a spread the bounds say nothing.
    spread = [0.0, 1.0, 5.0]
    assert mean_and_half_width(spread, (-9.0, 9.0)) == mean_and_half_width(spread)


def test_returns_less_their_luck_are_equal_up_to_rounding():
    """Returns that are all alike have nothing to explain, but for rounding."""
    luck = np.random.default_rng(0).normal(size=40)
    rest = without_luck(np.full(40, 0.1), luck)
    mean, half = mean_and_half_width(rest, (-4.0, 4.0))
    assert 0 < np.ptp(rest) < 1e-12
    assert mean == pytest.approx(0.1) and half > 0.25


def test_a_ratio_that_is_always_the_same_has_no_interval():
    """Three deals of other hands and the same chips per hand tell no error."""
    assert ratio_and_half_width([1.0, 3.0, 0.3], [10, 30, 3])[1] is None
    assert ratio_and_half_width([0.0, 0.0], [10, 30]) == (0.0, None)
    assert ratio_and_half_width([1.0, 3.0], [10, 20])[1] > 0


def test_intervals_cover_the_truth():
    """Of 2000 intervals 95 % do; 4 standard errors, a false alarm in 16 000 seeds."""
    rng, n, hit = np.random.default_rng(0), 2000, 0
    for _ in range(n):
        mean, half = mean_and_half_width(rng.normal(3.0, 2.0, 5))
        hit += abs(mean - 3.0) < half
    assert abs(hit / n - 0.95) < 4 * math.sqrt(0.95 * 0.05 / n)
