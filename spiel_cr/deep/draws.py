"""Uniform draws of a batch: independent, or spread evenly within groups."""

import numpy as np


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
    return spread


def labels(keys: np.ndarray) -> np.ndarray:
    """uint64 [n], one number for each key; those of different keys are hardly equal.

    Args:
      keys: uint64 [n, 2], see `uncompiled.source.Positions`.
    """
    # Equal where the keys are, but for one chance in 2^64.
    found: np.ndarray = keys[:, 0] + keys[:, 1] * np.uint64(0x9E3779B97F4A7C15)
    return found
