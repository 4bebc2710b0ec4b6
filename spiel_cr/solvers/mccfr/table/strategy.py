"""Strategies of a table of infosets: the current one, and the average, finished."""

from collections.abc import Iterator

import numpy as np

from spiel_cr.solvers.mccfr.table.index import Index
from spiel_cr.solvers.mccfr.table.table import ROOTS, Table

# Rows that are settled together.
_CHUNK = 1 << 16


def match(
    regret: np.ndarray, legal: np.ndarray, count: np.ndarray, exploration: float
) -> np.ndarray:
    """The strategy in proportion to positive regrets; uniform where there are none.

    Args:
      regret: float [A, n].
      legal: bool [A, n], the first `count` of each column.
      count: int [n], at least 1.
      exploration: how much of the uniform strategy is mixed in.

    Returns:
      float64 [A, n], 0 where not legal.
    """
    positive = np.where(legal, regret, 0).clip(min=0).astype(np.float64)
    total = positive.sum(axis=0)
    some = total > 0
    uniform = legal / count
    sigma = np.where(some, positive / np.where(some, total, 1), uniform)
    if exploration:
        sigma = (1 - exploration) * sigma + exploration * uniform
    return sigma


class TableStrategy:
    """Action probabilities at all infosets of a table.

    Attributes:
      key: uint64 [rows, 2], see `keys.py`; all different.
      count: uint16 [rows], legal actions of each infoset.
      visits: uint32 [rows], how often each was updated.
      probability: float32 [entries], of the actions of all rows, one row after another,
        those of an infoset in ascending order of actions; they sum to 1.
    """

    def __init__(
        self,
        key: np.ndarray,
        count: np.ndarray,
        visits: np.ndarray,
        probability: np.ndarray,
    ) -> None:
        """Makes the index. The arrays are kept, not copied."""
        self.key, self.count = key, count
        self.visits, self.probability = visits, probability
        self._first = np.cumsum(count, dtype=np.uint32)
        self._first -= count
        self._index = Index(key)
        self._index.extend(len(key))

    def __len__(self) -> int:
        return len(self.key)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """int64 [n], the rows of keys, uint64 [n, 2]; -1 where there is none."""
        return self._index.find(keys)

    def probabilities(self, row: int) -> np.ndarray:
        """float32 [count], of one row's actions in ascending order."""
        first = int(self._first[row])
        return self.probability[first : first + int(self.count[row])]

    def spread(self, rows: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """float64 [n, A], the probabilities of some rows, by action.

        Args:
          rows: int64 [n]; -1: none, and all stays 0.
          legal: bool [n, A], as many actions as the row has.
        """
        has_row = rows >= 0
        first = self._first[np.where(has_row, rows, 0)].astype(np.int64)
        place = first[:, None] + np.cumsum(legal, axis=1) - 1
        wanted = legal & has_row[:, None]
        played = np.zeros(legal.shape)
        played[wanted] = self.probability[place[wanted]]
        return played


def of_table(table: Table, *, exact: bool, exploration: float) -> TableStrategy:
    """The average strategies of both players.

    What no trajectory has taken in yet (see `sampling.py`) is taken in on a copy: the
    table stays as it is, to the last bit.

    Args:
      table: of both players' infosets.
      exact: whether its averages are exact ones.
      exploration: of the regret rule.

    Returns:
      Probabilities at all rows; keys, counts and visits are views of the table's, which
      stay right while the table grows (but for visits).
    """
    average = table.average[: table.entries].copy()
    if exact:
        _settle(table, average, exploration)
    for chunk in _chunks(table):
        entries, legal, count = _entries(table, chunk)
        sums = np.where(legal, average.take(entries, mode="clip"), 0).astype(np.float64)
        total = sums.sum(axis=0)
        some = total > 0
        shares = np.where(some, sums / np.where(some, total, 1), legal / count)
        average[entries[legal]] = shares[legal]
    rows = table.rows
    return TableStrategy(
        table.key[:rows],
        table.count[:rows],
        table.visits[:rows].copy(),
        average[ROOTS:],
    )


def _settle(table: Table, average: np.ndarray, exploration: float) -> None:
    """Takes in what is missing at all rows, parents before children."""
    deepest = int(table.depth[: table.rows].max(initial=0))
    for depth in range(deepest + 1):
        for chunk in _chunks(table):
            rows = chunk[table.depth[chunk] == depth]
            if not len(rows):
                continue
            entries, legal, count = _entries(table, rows)
            sigma = match(table.regret.take(entries), legal, count, exploration)
            lacks = average[table.parent[rows]] - table.taken[rows]
            average[entries[legal]] += (lacks * sigma)[legal]


def _chunks(table: Table) -> Iterator[np.ndarray]:
    for start in range(0, table.rows, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, table.rows))


def _entries(
    table: Table, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 [A, n], entries of all actions of rows; bool [A, n], legal; int64 [n]."""
    count = table.count[rows].astype(np.int64)
    actions = np.arange(count.max(initial=1))[:, None]
    return table.first[rows].astype(np.int64) + actions, actions < count, count
