"""Draws by probabilities from points of [0, 1)."""

import numpy as np

# Points times this stay below 1 by more than the rounding error of a sum of
# probabilities.
BELOW_ONE = 1 - 2.0**-40


def choose(probabilities: np.ndarray, points: np.ndarray, axis: int = 1) -> np.ndarray:
    """int64 [n], one of A choices for each point; never one without probability.

    Args:
      probabilities: float64 [n, A], 0 or more and not all 0 for any point. Sums need
        not be 1.
      points: float64 [n], of [0, 1).
      axis: Axis of the choices. With 0, `probabilities` is [A, n].
    """
    total = np.cumsum(probabilities, axis=axis)
    point = points * BELOW_ONE * np.take(total, -1, axis=axis)
    return np.count_nonzero(total <= np.expand_dims(point, axis), axis=axis)


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
    return np.minimum(drawn, last)


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


def points(
    groups: np.ndarray, random: np.random.Generator, *, stratified: bool
) -> np.ndarray:
    """float64 [n], a point of [0, 1) for each of n visits.

    Stratified, the visits of a group (at one history, say) get a point in each of
    equally many equal parts of [0, 1), in random order. Each point alone is uniform and
    does not depend on what was drawn before, so estimates stay unbiased; together they
    vary less.

    Args:
      groups: integers [n], the group of each visit.
      random: advanced.
      stratified: else points are independent.
    """
    count = len(groups)
    if not stratified:
        return random.random(count)
    order = np.lexsort((random.random(count), groups))
    begins = np.ones(count, bool)
    ordered = groups[order]
    begins[1:] = ordered[1:] != ordered[:-1]
    first = np.flatnonzero(begins)
    size = np.diff(np.append(first, count))
    rank = np.arange(count) - np.repeat(first, size)
    spread = np.empty(count)
    spread[order] = (rank + random.random(count)) / np.repeat(size, size)
    # Sums may round up to the next part.
    return np.minimum(spread, BELOW_ONE)


def labels(keys: np.ndarray) -> np.ndarray:
    """uint64 [n], a number for each key: equal of equal keys.

    Two different keys have the same number with a chance of about one in 2^64.

    Args:
      keys: uint64 [n, 2], see `Positions` of simulators.
    """
    return keys[:, 0] + keys[:, 1] * np.uint64(0x9E3779B97F4A7C15)
