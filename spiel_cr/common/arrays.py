"""Integer arrays: ranges of many lengths, equal rows, pairs and labels in order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def smallest_dtype(high: int) -> np.dtype:
    """The smallest signed integer type that holds -1..high."""
    return np.min_scalar_type(-max(high, 0) - 1)


def ranges(starts: np.ndarray | int, counts: np.ndarray) -> np.ndarray:
    """Consecutive numbers from many starts: `start, start + 1, ...`, `count` of them.

    Args:
      starts: integers [n], or one for all; 0 numbers the members of each range.
      counts: integers [n], the length of each range; 0 leaves it out.

    Returns:
      int64 [sum of counts], range after range.
    """
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)


def padded_size(count: int, least: int = 1) -> int:
    """The least power of two that is not below a count: few sizes, so few programs.

    Args:
      count: 0 or more.
      least: a power of two, which the result is not below either.
    """
    return max(least, 1 << max(count - 1, 0).bit_length())


def round_numbers(last: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... up to a last number, which ends them."""
    numbers, step = [], 1
    while step < last:
        numbers += [n * step for n in (1, 2, 5) if n * step < last]
        step *= 10
    return [*numbers, last]


def groups(codes: np.ndarray) -> np.ndarray:
    """int64 [n], equal where codes are, numbered by when they are first met.

    Args:
      codes: integers [n].
    """
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[group.reshape(-1)]


def ranks(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers rows of integers: equal numbers exactly where rows are equal.

    Args:
      keys: arrays [n] or [n, k], all of the same kind, to be read one after the other.

    Returns:
      int32 [sum of n], numbers from 0, each in use.
    """
    rows = np.concatenate(keys)
    size = rows.dtype.itemsize
    if rows.ndim == 1:
        return _rank(rows if size == 8 else rows.astype(np.int64))
    if size < 8:  # fewer and wider columns
        per = 8 // size
        rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % per))).view(np.int64)
    code = np.zeros(len(rows), np.int64)
    for column in rows.T:
        code = _pair(code, column)
    return _rank(code)


def _pair(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """int64 [n], one integer for two of them, equal exactly where both are."""
    while True:
        width = int(second.max()) - int(second.min()) + 1
        height = int(first.max()) - int(first.min()) + 1
        if width * height < 2**63:
            left = (first - first.min()).astype(np.int64)
            return left * width + (second - second.min()).astype(np.int64)
        # After this both are less than 2**31.
        first, second = _rank(first).astype(np.int64), _rank(second).astype(np.int64)


def _rank(values: np.ndarray) -> np.ndarray:
    """int32 [n], 0 for the least value, 1 for the next, and so on."""
    low = values.min()
    width = int(values.max()) - int(low) + 1
    if width <= 4 * len(values):
        offset = values - low
        used = np.zeros(width, bool)
        used[offset] = True
        return (np.cumsum(used, dtype=np.int32) - 1)[offset]
    order = np.argsort(values)
    ordered = values[order]
    result = np.empty(len(values), np.int32)
    changes = np.zeros(len(values), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    result[order] = np.cumsum(changes, dtype=np.int32)
    return result


def order_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sorts pairs of numbers, by the first, then by the second, then as they come.

    Args:
      first: non-negative integers [n].
      second: likewise.

    Returns:
      int64 [n], the indices of the pairs in ascending order.
    """
    if not len(first):
        return np.zeros(0, np.int64)
    low = int(second.max()).bit_length()
    index = (len(first) - 1).bit_length()
    if int(first.max()).bit_length() + low + index > 63:
        return np.argsort(first.astype(np.int64) << 32 | second, kind="stable")
    # Sorting numbers is several times faster than sorting indices by them.
    code = (first.astype(np.int64) << low | second) << index | np.arange(len(first))
    code.sort()
    return code & ((1 << index) - 1)


class Groups:
    """Finds the few items with a label among very many."""

    def __init__(self, labels: np.ndarray) -> None:
        """Sorts items 0, 1, ... by their labels, int32 [n]."""
        self._order = np.argsort(labels, kind="stable").astype(np.int32)
        self._sorted = labels[self._order]
        self.numbers = np.unique(self._sorted)

    def of(self, number: int) -> np.ndarray:
        """int32 [k], ascending, the items with a label."""
        begin, end = np.searchsorted(self._sorted, [number, number + 1])
        return self._order[begin:end]


class Components(NamedTuple):
    """The parts that a matrix falls apart into: rows and columns that meet.

    Attributes:
      number: how many there are.
      rows: integers, the part of each row, from 0.
      columns: the same of columns.
    """

    number: int
    rows: np.ndarray
    columns: np.ndarray

    @property
    def heights(self) -> np.ndarray:
        """int64 [parts], how many rows each has."""
        return np.bincount(self.rows, minlength=self.number)

    @property
    def widths(self) -> np.ndarray:
        """int64 [parts], how many columns each has."""
        return np.bincount(self.columns, minlength=self.number)


def joint_components(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> Components:
    """The parts of a matrix.

    Args:
      rows: integers [nnz], of the entries.
      columns: integers [nnz], likewise.
      shape: of the matrix.
    """
    # For some hundred entries this takes a quarter of the time of scipy's graphs, which
    # was a third of what a player of a lookahead tree needs to lay out a subgame.
    height, part = shape[0], np.arange(sum(shape))
    ends = rows, height + columns
    while len(ends[0]):
        # Parts that meet take the lower number: at most half of them keep their own.
        np.minimum.at(part, np.maximum(*ends), np.minimum(*ends))
        while not np.array_equal(lower := part[part], part):
            part = lower
        ends = part[ends[0]], part[ends[1]]
        separate = ends[0] != ends[1]
        ends = ends[0][separate], ends[1][separate]
    numbers, part = np.unique(part, return_inverse=True)
    return Components(len(numbers), part[:height], part[height:])
