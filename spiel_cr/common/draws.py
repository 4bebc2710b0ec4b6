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


def systematic(weights: np.ndarray, count: int, point: float) -> np.ndarray:
    """int64 [count], indices drawn by weight, in order.

    Systematic sampling: whose weight is k times the mean of `count` shares is drawn k
    times, up to one; never one without weight.

    Args:
      weights: float64 [n], 0 or more and not all 0.
      count: how many to draw.
      point: of [0, 1), the one random number.
    """
    ends = np.cumsum(weights)
    points = (np.arange(count) + point * BELOW_ONE) * (ends[-1] / count)
    drawn = np.searchsorted(ends, points, side="right")
    last = np.flatnonzero(weights > 0)[-1]
    result: np.ndarray = np.minimum(drawn, last)
    return result


def thin(
    weights: np.ndarray, most: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` indices, drawn by weight where more are positive.

    Args:
      weights: float64 [n], 0 or more.
      most: how many to keep.
      random: consumed, one number where something is drawn.

    Returns:
      int64 [m], different and in order, and float64 [m], their new weights: those that
      they have if nothing is dropped, else the mean share for each time that the index
      was drawn. The expected weight of each index is the one that it had.
    """
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= most:
        return positive, weights[positive]
    drawn, times = np.unique(
        systematic(weights, most, random.random()), return_counts=True
    )
    return drawn, times * (weights.sum() / most)
