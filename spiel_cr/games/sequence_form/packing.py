"""Choice of the rows that share a dense block: padding in exchange for fewer blocks."""

import functools

import numpy as np

from spiel_cr.common.arrays import ranges

# Largest number of rows whose groups are cached, because padded shapes recur.
_FEW = 1 << 15


def cover(owner: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the largest first, second, third, ... size over all owners.

    Args:
      owner: Owner of each size, int [n].
      sizes: Sizes in any order, int [n].

    Returns:
      The sizes, descending, int64 [m]; m is the largest number of sizes of one owner.
    """
    counts = np.bincount(owner)
    largest = np.zeros(int(counts.max(initial=0)), np.int64)
    np.maximum.at(largest, ranges(0, counts), sizes[np.lexsort((-sizes, owner))])
    return largest


def groups(lengths: np.ndarray, overhead: float) -> list[tuple[slice, int]]:
    """Divide rows of different lengths into few groups, padded to the longest of each.

    The groups minimise padded elements + overhead · groups, by dynamic programming over
    the distinct lengths. Rows of length one form a separate group, because they need
    neither padding nor sums.

    Args:
      lengths: Length of each row, descending, int [n]. Rows of length zero are in no
        group.
      overhead: Cost of one more group, in padded elements.

    Returns:
      The slice of rows and the largest length of each group; groups of small lengths
      first.
    """
    if len(lengths) > _FEW:
        return _groups(lengths, overhead)
    return list(_cached_groups(np.asarray(lengths, np.int64).tobytes(), overhead))


@functools.lru_cache(maxsize=64)
def _cached_groups(lengths: bytes, overhead: float) -> list[tuple[slice, int]]:
    return _groups(np.frombuffer(lengths, np.int64), overhead)


def _groups(lengths: np.ndarray, overhead: float) -> list[tuple[slice, int]]:
    distinct, rows = np.unique(lengths[lengths > 0], return_counts=True)
    cost = np.zeros(len(distinct) + 1)
    begin = np.zeros(len(distinct) + 1, np.int64)
    # Rows that are shorter than each distinct length; they come last.
    below = np.concatenate([[0], np.cumsum(rows)])
    for end in range(1, len(distinct) + 1):
        candidates = cost[:end] + distinct[end - 1] * (below[end] - below[:end])
        if distinct[0] == 1 and end > 1:
            candidates[0] = np.inf
        begin[end] = int(candidates.argmin())
        cost[end] = candidates[begin[end]] + overhead
    result, end, places = [], len(distinct), below[-1] - below
    while end:
        group = slice(int(places[end]), int(places[begin[end]]))
        result.append((group, int(distinct[end - 1])))
        end = begin[end]
    return result[::-1]
