"""The confidence interval that all reports use."""

import math
from collections.abc import Sequence

import numpy as np

# Confidence level of every reported interval.
CONFIDENCE = 0.95
# Observations whose difference is below this share of the bounds count as equal.
_ROUNDING = 1e-12


def mean_and_half_width(
    values: Sequence[float] | np.ndarray, bounds: tuple[float, float] | None = None
) -> tuple[float, float | None]:
    """Return the mean and the half width of its 95% confidence interval.

    The interval uses Student's t distribution.

    If all observations are equal, their sample variance is zero, although other values
    are possible. If another value had probability p, n observations would all be equal
    with probability (1 - p)^n, which is 5% for p = 1 - 0.05^(1/n), about 3 / n (the
    rule of three; Hanley & Lippman-Hand 1983). The half width is then p times the
    largest distance that another value can have from the observed one.

    Args:
      values: Independent observations, at least one.
      bounds: Smallest and largest possible value. If None, the half width of equal
        observations is 0. With bounds, observations that differ only by rounding are
        treated as equal.

    Returns:
      Mean and half width in the unit of the values. The half width is None for a single
      observation, for which no interval exists.
    """
    count = len(values)
    mean = float(np.mean(values))
    if count == 1:
        return mean, None
    if bounds is not None and np.ptp(values) <= _ROUNDING * max(map(abs, bounds)):
        furthest = max(bounds[1] - mean, mean - bounds[0], 0.0)
        return mean, (1 - (1 - CONFIDENCE) ** (1 / count)) * furthest
    # Squares of values beyond this one overflow, and powers of two do not round.
    unit = 1.0 if np.abs(values).max() < 2.0**500 else 2.0**600
    from scipy import special  # Slow to import.

    error = float(np.std(np.asarray(values) / unit, ddof=1)) / math.sqrt(count) * unit
    return mean, float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error


def ratio_and_half_width(
    numerators: Sequence[float] | np.ndarray, denominators: Sequence[float] | np.ndarray
) -> tuple[float, float | None]:
    """Return a ratio of two sums and half of its 95% confidence interval.

    The interval is that of the mean of the linearised observations (the delta method),
    so it is approximately correct if there are many observations.

    Args:
      numerators: Numerators of independent observations, such as the chips of deals.
      denominators: Denominators, such as the hands of deals. Their sum is positive.

    Returns:
      Ratio and half width, in units of the numerators per unit of the denominators. The
      half width is None if there is only one observation, or if all have the same
      ratio.
    """
    above, below = (np.asarray(part, float) for part in (numerators, denominators))
    ratio = float(above.sum() / below.sum())
    rests = (above - ratio * below) / below.mean()
    if np.ptp(rests) <= _ROUNDING * np.abs(above / below.mean()).max():
        return ratio, None
    return ratio, mean_and_half_width(rests)[1]
