"""The one confidence interval of all reports."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

# Of every interval that is reported.
CONFIDENCE = 0.95
# Observations that differ by less than this share of what they may be are equal.
_ROUNDING = 1e-12


def mean_and_half_width(
    values: Sequence[float] | np.ndarray, bounds: tuple[float, float] | None = None
) -> tuple[float, float | None]:
    """The mean, and half of its 95 % confidence interval by Student's t distribution.

    Observations that are all equal have no spread, which does not mean that others
    cannot come. Of n draws that could have been another one with probability p all are
    equal with probability (1 - p)^n, which is 5 % at p = 1 - 0.05^(1/n), about 3 / n
    (the rule of three; Hanley & Lippman-Hand 1983). So far the mean may be from the
    value that was seen, times how far another value may be from it.

    Args:
      values: independent observations, one or more.
      bounds: the least and the greatest value there may be, where known; without them
        the half width of equal observations is 0. Observations that differ by rounding
        only are equal.

    Returns:
      Both in the units of the values. The half width is None for a single observation,
      which tells nothing about it.
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
    error = float(np.std(np.asarray(values) / unit, ddof=1)) / math.sqrt(count) * unit
    return mean, float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error


def ratio_and_half_width(
    numerators: Sequence[float] | np.ndarray, denominators: Sequence[float] | np.ndarray
) -> tuple[float, float | None]:
    """A ratio of two sums, and half of its 95 % confidence interval.

    The interval is that of the mean of the linearised observations (the delta method),
    so it is about right where there are many.

    Args:
      numerators, denominators: of independent observations, such as the chips and the
        hands of deals; the denominators sum to more than 0.

    Returns:
      Both in units of the numerators per unit of the denominators. The half width is
      None where the observations do not tell it: there is one, or all have the same
      ratio.
    """
    above, below = (np.asarray(part, float) for part in (numerators, denominators))
    ratio = float(above.sum() / below.sum())
    rests = (above - ratio * below) / below.mean()
    if np.ptp(rests) <= _ROUNDING * np.abs(above / below.mean()).max():
        return ratio, None
    return ratio, mean_and_half_width(rests)[1]
