"""Short sequences of small numbers, packed into the columns of an int64 array."""

import numpy as np


class Packing:
    """Positions of the entries of a sequence in columns, several per column.

    Attributes:
      width: Number of columns.
    """

    # The sign bit is not used.
    _BITS = 63

    def __init__(self, length: int, most: int) -> None:
        """Plan the columns.

        Args:
          length: Largest number of entries of a sequence.
          most: Largest entry; the smallest is 0.
        """
        self._bits = max(1, most.bit_length())
        self._each = self._BITS // self._bits
        self.width = max(1, -(-length // self._each))

    def columns(self, start: int, number: int = 0) -> slice:
        """Return the columns of one of several sequences.

        Args:
          start: First column of the first sequence.
          number: Number of the sequence, from 0.
        """
        first = start + number * self.width
        return slice(first, first + self.width)

    def put(
        self, columns: np.ndarray, place: np.ndarray | int, entry: np.ndarray | int
    ) -> None:
        """Write entries at places that contain 0.

        Args:
          columns: Columns of the states, which are modified in place, int64 [n, width].
          place: Place of each entry, int64 [n].
          entry: Entries to write, int64 [n].
        """
        place = np.asarray(place)
        for column in range(self.width):
            offset = place - column * self._each
            inside = (offset >= 0) & (offset < self._each)
            shift = np.where(inside, offset, 0) * self._bits
            columns[:, column] |= np.where(inside, entry, 0) << shift

    def get(self, columns: np.ndarray, place: np.ndarray | int) -> np.ndarray:
        """Return int64 [n], the entries at a place, which is a number or int64 [n]."""
        column, offset = np.divmod(np.asarray(place), self._each)
        chosen = columns[np.arange(len(columns)), column]
        return chosen >> offset * self._bits & (1 << self._bits) - 1

    def unpack(self, columns: np.ndarray, length: int) -> np.ndarray:
        """Return the first entries of each sequence, int64 [n, length]."""
        return np.stack([self.get(columns, place) for place in range(length)], axis=1)
