"""Draws by probabilities from points of [0, 1)."""

import numpy as np

# Points times this stay below 1 by more than the rounding error of a sum of
# probabilities.
BELOW_ONE = 1 - 2.0**-40


def choose(odds: np.ndarray, points: np.ndarray, axis: int = 1) -> np.ndarray:
    """int64 [n], one of A choices for each point; never one without probability.

    Args:
      odds: float64 [n, A], 0 or more and not all 0 for any point; sums need not be
        1.
      points: float64 [n], of [0, 1).
      axis: that of the choices; 0: odds are [A, n].
    """
    total = np.cumsum(odds, axis=axis)
    point = points * BELOW_ONE * np.take(total, -1, axis=axis)
    chosen: np.ndarray = np.count_nonzero(
        total <= np.expand_dims(point, axis), axis=axis
    )
    return chosen
