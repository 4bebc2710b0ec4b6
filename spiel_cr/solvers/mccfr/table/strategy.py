"""Strategies of a table of infosets: the current strategy and the final average."""

from collections.abc import Iterator

import numpy as np

from spiel_cr.solvers.mccfr.table.index import Index
from spiel_cr.solvers.mccfr.table.table import ROOTS, InfosetTable

# Rows that are processed together.
_CHUNK = 1 << 16


def match(
    regret: np.ndarray, legal: np.ndarray, count: np.ndarray, exploration: float
) -> np.ndarray:
    """Return the strategy by regret matching; uniform if no regret is positive.

    Args:
      regret: Regrets, float [A, n].
      legal: Mask of legal actions, the first `count` of each column, bool [A, n].
      count: Number of legal actions, int [n], at least 1.
      exploration: Share of the uniform strategy in the result.

    Returns:
      Probabilities, float64 [A, n]; 0 at illegal actions.
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
      key: Distinct keys as in `keys.py`, uint64 [rows, 2].
      count: Number of legal actions of each infoset, uint16 [rows].
      visits: Number of updates of each infoset, uint32 [rows].
      probability: Action probabilities of all rows, one row after another, in ascending
        order of actions, float32 [entries]; those of a row sum to 1.
    """

    def __init__(
        self,
        key: np.ndarray,
        count: np.ndarray,
        visits: np.ndarray,
        probability: np.ndarray,
    ) -> None:
        """Build the index. The arrays are not copied."""
        self.key, self.count = key, count
        self.visits, self.probability = visits, probability
        self._first = np.cumsum(count, dtype=np.uint32)
        self._first -= count
        self._index = Index(key)
        self._index.extend(len(key))

    def __len__(self) -> int:
        return len(self.key)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the rows of keys, int64 [n]; -1 for keys without a row.

        Args:
          keys: Keys, uint64 [n, 2].
        """
        return self._index.find(keys)

    def probabilities(self, row: int) -> np.ndarray:
        """Return a row's probabilities by ascending action, float32 [count]."""
        first = int(self._first[row])
        return self.probability[first : first + int(self.count[row])]

    def spread(self, rows: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """Return the probabilities of some rows by action, float64 [n, A].

        Args:
          rows: Rows, int64 [n]; -1 gives zeros.
          legal: Mask of legal actions, bool [n, A], as many as the row has.
        """
        has_row = rows >= 0
        first = self._first[np.where(has_row, rows, 0)].astype(np.int64)
        place = first[:, None] + np.cumsum(legal, axis=1) - 1
        is_legal = legal & has_row[:, None]
        played = np.zeros(legal.shape)
        played[is_legal] = self.probability[place[is_legal]]
        return played


def of_table(table: InfosetTable, *, exact: bool, exploration: float) -> TableStrategy:
    """Return the average strategies of both players.

    Missing parts of the averages (see `sampling.py`) are added to a copy, so the table
    does not change.

    Args:
      table: Infosets of both players.
      exact: True if the averages of the table are exact.
      exploration: Exploration of the regret rule.

    Returns:
      Probabilities at all rows. Keys and counts are views of the table's columns, which
      remain valid while the table grows.
    """
    average = table.average[: table.entries].copy()
    if exact:
        _add_missing(table, average, exploration)
    for chunk in _chunks(table):
        entries, legal, count = _entries(table, chunk)
        sums = np.where(legal, average.take(entries, mode="clip"), 0).astype(np.float64)
        total = sums.sum(axis=0)
        some = total > 0
        shares = np.where(some, sums / np.where(some, total, 1), legal / count)
        average[entries[legal]] = shares[legal]
    rows = slice(table.rows)
    visits = table.visits[rows].copy()
    return TableStrategy(table.key[rows], table.count[rows], visits, average[ROOTS:])


def _add_missing(table: InfosetTable, average: np.ndarray, exploration: float) -> None:
    """Add the missing parts of the averages at all rows, parents before children."""
    deepest = int(table.depth[: table.rows].max(initial=0))
    for depth in range(deepest + 1):
        for chunk in _chunks(table):
            rows = chunk[table.depth[chunk] == depth]
            if not len(rows):
                continue
            entries, legal, count = _entries(table, rows)
            sigma = match(table.regret.take(entries), legal, count, exploration)
            missing = average[table.parent[rows]] - table.taken[rows]
            average[entries[legal]] += (missing * sigma)[legal]


def _chunks(table: InfosetTable) -> Iterator[np.ndarray]:
    for start in range(0, table.rows, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, table.rows))


def _entries(
    table: InfosetTable, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return entries, legality and action counts of rows.

    Returns:
      Entries of all actions, int64 [A, n]; mask of legal actions, bool [A, n]; numbers
      of actions, int64 [n].
    """
    count = table.count[rows].astype(np.int64)
    actions = np.arange(count.max(initial=1))[:, None]
    return table.first[rows].astype(np.int64) + actions, actions < count, count
