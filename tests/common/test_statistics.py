"""Confidence intervals of reports."""

import math

import numpy as np
import pytest

from spiel_cr.common.statistics import mean_and_half_width, ratio_and_half_width
from spiel_cr.evaluation.control_variates import without_luck

# 97.5% quantiles of Student's t: tan(0.475 pi) for one degree of freedom; for two, the
# closed form t = 2 (p - 1/2) / sqrt(2 p (1 - p)) at p = 0.975.
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
def test_intervals_equal_hand_computed_ones(values, mean, half_width):
    found = mean_and_half_width(values)
    assert found == pytest.approx((mean, half_width), abs=1e-12)


def test_one_observation_has_no_interval():
    assert mean_and_half_width([2.0]) == (2.0, None)


def test_equal_observations_have_an_interval_if_bounds_are_known():
    """An unobserved value could occur often, so the half width must not be 0."""
    mean, half = mean_and_half_width([0.5, 0.5, 0.5], (-1.0, 2.0))
    # (1 - p)^3 = 0.05, and the farther bound has distance 1.5.
    assert mean == 0.5
    assert (1 - half / 1.5) ** 3 == pytest.approx(0.05)
    # Rounding errors, as of returns minus luck, do not count as spread.
    rounded = [0.5, 0.5 + 1e-15, 0.5]
    assert mean_and_half_width(rounded, (-1.0, 2.0))[1] == pytest.approx(half)
    # If observations differ, the bounds do not matter.
    spread = [0.0, 1.0, 5.0]
    assert mean_and_half_width(spread, (-9.0, 9.0)) == mean_and_half_width(spread)


def test_equal_returns_minus_luck_differ_only_by_rounding():
    """Equal returns have no variance that luck explains, except for rounding."""
    luck = np.random.default_rng(0).normal(size=40)
    rest = without_luck(np.full(40, 0.1), luck)
    mean, half = mean_and_half_width(rest, (-4.0, 4.0))
    assert 0 < np.ptp(rest) < 1e-12
    assert mean == pytest.approx(0.1) and half > 0.25


def test_constant_ratios_have_no_interval():
    """Equal chips per hand in all deals give no estimate of the error."""
    assert ratio_and_half_width([1.0, 3.0, 0.3], [10, 30, 3])[1] is None
    assert ratio_and_half_width([0.0, 0.0], [10, 30]) == (0.0, None)
    assert ratio_and_half_width([1.0, 3.0], [10, 20])[1] > 0


def test_intervals_cover_the_mean_in_95_percent_of_cases():
    """Use 2,000 intervals and 4 standard errors: one false alarm in 16,000 seeds."""
    rng, n, hit = np.random.default_rng(0), 2000, 0
    for _ in range(n):
        mean, half = mean_and_half_width(rng.normal(3.0, 2.0, 5))
        hit += abs(mean - 3.0) < half
    assert abs(hit / n - 0.95) < 4 * math.sqrt(0.95 * 0.05 / n)
