"""Numbers for rows of integers that become available in parts."""

import numpy as np

from spiel_cr.common.arrays import ranks


class Numbers:
    """Numbers for rows of integers, in the order of first occurrence.

    Attributes:
      rows: The distinct rows so far, int64 [H, k].
    """

    def __init__(self) -> None:
        self.rows = np.zeros((0, 0), np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Assign numbers to rows; rows not seen before get new numbers.

        Args:
          rows: Rows to number, int64 [n, k].

        Returns:
          Numbers of the rows, int64 [n], and the index in `rows` at which each new row
          first occurs, int64 [m].
        """
        count = len(self.rows)
        if not count:
            self.rows = self.rows.reshape(0, rows.shape[1])
        both = ranks([self.rows, rows]) if rows.shape[1] else np.zeros(len(rows), int)
        number = np.full(int(both.max()) + 1, -1)
        number[both[:count]] = np.arange(count)
        new_numbers = np.full(len(number), -1)
        code = both[count:]
        new_numbers[code[::-1]] = np.arange(len(code))[::-1]
        new = np.flatnonzero(number < 0)
        first = np.sort(new_numbers[new])
        number[code[first]] = count + np.arange(len(first))
        self.rows = np.concatenate([self.rows, rows[first]])
        return number[code], first
