"""Sampling from discrete distributions by points in [0, 1)."""

import numpy as np

# Factor that keeps points below 1 by more than the rounding error of a sum of
# probabilities.
BELOW_ONE = 1 - 2.0**-40


def choose(probabilities: np.ndarray, points: np.ndarray, axis: int = 1) -> np.ndarray:
    """Choose one of A options for each point, never one with probability zero.

    Args:
      probabilities: Float64 [n, A], nonnegative and not all zero for any point. Sums
        need not be 1.
      points: Float64 [n], points in [0, 1).
      axis: Axis of the options. With 0, `probabilities` is [A, n].

    Returns:
      Indices of the options, int64 [n].
    """
    total = np.cumsum(probabilities, axis=axis)
    point = points * BELOW_ONE * np.take(total, -1, axis=axis)
    return np.count_nonzero(total <= np.expand_dims(point, axis), axis=axis)


def systematic(weights: np.ndarray, count: int, point: float) -> np.ndarray:
    """Sample indices in proportion to weights by systematic sampling.

    An index with k times the mean weight of a draw is drawn k times, rounded up or
    down. An index with weight zero is never drawn.

    Args:
      weights: Float64 [n], nonnegative and not all zero.
      count: Number of draws.
      point: Number in [0, 1), the only source of randomness.

    Returns:
      Drawn indices in ascending order, int64 [count].
    """
    ends = np.cumsum(weights)
    points = (np.arange(count) + point * BELOW_ONE) * (ends[-1] / count)
    drawn = np.searchsorted(ends, points, side="right")
    last = np.flatnonzero(weights > 0)[-1]
    return np.minimum(drawn, last)


def thin(
    weights: np.ndarray, most: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Keep at most `most` indices, sampled by weight if more weights are positive.

    Args:
      weights: Float64 [n], nonnegative.
      most: Maximum number of indices.
      random: Random generator, which is advanced by one number if indices are sampled.

    Returns:
      Distinct indices in ascending order, int64 [m], and their new weights, float64
      [m]. If no index is dropped, weights are unchanged. Otherwise, an index receives
      the mean weight of a draw for each time that it was drawn. The expected new weight
      of each index equals its old weight.
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
    """Draw a point in [0, 1) for each of n visits.

    With stratification, [0, 1) is divided into as many equal parts as a group has
    visits (for example, visits of one history), and each visit receives a point in
    another part, in random order. Each point by itself is uniform and independent of
    earlier draws, so estimates stay unbiased, and their variance decreases.

    Args:
      groups: Integers [n], the group of each visit.
      random: Random generator, which is advanced.
      stratified: Whether to stratify. If False, points are independent.

    Returns:
      Points, float64 [n].
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
    # Sums may round up to 1.
    return np.minimum(spread, BELOW_ONE)


def labels(keys: np.ndarray) -> np.ndarray:
    """Return a 64-bit number for each key, equal for equal keys.

    Two different keys have the same number with a probability of about 2^-64.

    Args:
      keys: Keys of infosets or histories as in `Positions` of simulators, uint64 [n,
        2].

    Returns:
      Numbers, uint64 [n].
    """
    return keys[:, 0] + keys[:, 1] * np.uint64(0x9E3779B97F4A7C15)
