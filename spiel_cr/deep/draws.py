"""Uniform draws of a batch: independent, or spread evenly within groups."""

import numpy as np

from spiel_cr.common.draws import BELOW_ONE


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
      keys: uint64 [n, 2], see `uncompiled.source.Positions`.
    """
    found: np.ndarray = keys[:, 0] + keys[:, 1] * np.uint64(0x9E3779B97F4A7C15)
    return found
