"""Index of rows by key: open addressing in one numpy array, for many keys at a time."""

import numpy as np

# Slots per row: open addressing is fast while a third of the slots are empty.
_SLOTS_PER_ROW = 1.6
_FIRST_SLOTS = 1 << 12
# Rows that are inserted together when the number of slots grows.
_CHUNK = 1 << 16

# Maximum number of rows of an index, and its memory for each row.
MOST_ROWS = int(2**32 / _SLOTS_PER_ROW) - 2
ROW_BYTES = 7


class Index:
    """Hash table that finds rows by their keys.

    Rows are numbered from 0 and never removed.

    Attributes:
      rows: Number of rows in the index.
    """

    def __init__(self, key: np.ndarray) -> None:
        """Create an index without rows.

        Args:
          key: Keys of all rows that may be added later, uint64 [R, 2], with R at most
            `MOST_ROWS`. The array is not copied; keys may be written until their rows
            are added.
        """
        self.rows = 0
        self._key = key
        # Row + 1, or 0 if empty. Only the first `_active` slots are in use, so that few
        # rows occupy little memory.
        self._slots = np.zeros(int(len(key) * _SLOTS_PER_ROW) + 2, np.uint32)
        self._active = min(_FIRST_SLOTS, len(self._slots))

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the rows of some keys.

        Args:
          keys: Keys, uint64 [n, 2].

        Returns:
          The rows, int64 [n]; -1 for keys without a row.
        """
        rows_of_keys = np.full(len(keys), -1)
        if not self.rows:
            return rows_of_keys
        open_ = np.arange(len(keys))
        at = self._home(keys)
        while len(open_):
            row = self._slots.take(at).astype(np.int64) - 1
            stored = self._key.take(row, axis=0, mode="wrap")
            used = row >= 0
            same = (stored[:, 0] == keys[:, 0]) & (stored[:, 1] == keys[:, 1]) & used
            rows_of_keys[open_[same]] = row[same]
            # If a slot has another key, the search continues in the next slot.
            on = np.flatnonzero(used & ~same)
            open_, keys = open_[on], keys[on]
            at = self._next(at[on])
        return rows_of_keys

    def extend(self, rows: int) -> None:
        """Add all of the first `rows` rows, which must have distinct keys."""
        begin, wanted = self.rows, int(rows * _SLOTS_PER_ROW) + 1
        if wanted > self._active:
            self._slots[: self._active] = 0
            while self._active < wanted:
                self._active = min(2 * self._active, len(self._slots))
            begin = 0
        self.rows = rows
        for start in range(begin, rows, _CHUNK):
            some = np.arange(start, min(start + _CHUNK, rows))
            self._put(some, self._home(self._key[some]))

    def _put(self, rows: np.ndarray, at: np.ndarray) -> None:
        """Insert rows into the next free slots from `at` on."""
        mark = (rows + 1).astype(np.uint32)
        while len(mark):
            free = self._slots[at] == 0
            # If several rows have the same free slot, one of them gets it.
            self._slots[at[free]] = mark[free]
            on = np.flatnonzero(self._slots[at] != mark)
            mark, at = mark[on], self._next(at[on])

    def _home(self, keys: np.ndarray) -> np.ndarray:
        """Return the first slot to search for each key, int64 [n]."""
        high = keys[:, 0] >> np.uint64(32)
        return (high * np.uint64(self._active) >> np.uint64(32)).astype(np.int64)

    def _next(self, at: np.ndarray) -> np.ndarray:
        at = at + 1
        at[at == self._active] = 0
        return at


def distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one index of each distinct key, ordered by key, and the group of each key.

    Args:
      keys: Keys, uint64 [n, 2].

    Returns:
      Indices of the g distinct keys, int64 [g], and the group of each key, int64 [n].
    """
    order = np.argsort(keys[:, 0])
    first, second = keys[order].T
    new = np.append(True, first[1:] != first[:-1])[: len(keys)]
    if (second[1:] != second[:-1])[~new[1:]].any():
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        first, second = keys[order].T
        new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(new) - 1
    return order[new], group
