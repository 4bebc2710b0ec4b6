"""The one confidence interval of all reports."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

# Of every interval that is reported.
CONFIDENCE = 0.95


def mean_and_half_width(
    values: Sequence[float] | np.ndarray,
) -> tuple[float, float | None]:
    """The mean, and half of its 95 % confidence interval by Student's t distribution.

    Args:
      values: independent observations, one or more.

    Returns:
      Both in the units of the values. The half width is None for a single observation,
      which tells nothing about it.
    """
    count = len(values)
    mean = float(np.mean(values))
    if count == 1:
        return mean, None
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    return mean, float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error
