"""Growing table of infosets: each key has a row with numbers for the infoset's actions.

All columns are numpy arrays that are allocated once for as many rows as the memory
allows. The operating system provides the memory when rows are written, so growth copies
nothing. Rows are never removed, and the number of a row never changes. The rows of a
batch are found and inserted together.

A row has one *entry* for each legal action of its infoset. Entries are stored one after
another in separate columns. Entries 0 and 1 are the empty sequences of players 0 and 1,
which belong to no row. An infoset is inserted after the player's earlier infosets, so
the parent entry of a row always precedes the row's own entries.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.solvers.iterative_solver import check_numbers
from spiel_cr.solvers.mccfr.table import index

# The empty sequences of both players.
ROOTS = 2
_ROWS = {
    "key": np.dtype((np.uint64, 2)),
    "first": np.dtype(np.uint32),
    "count": np.dtype(np.uint16),
    "parent": np.dtype(np.uint32),
    "depth": np.dtype(np.uint16),
    "visits": np.dtype(np.uint32),
    "taken": np.dtype(np.float32),
}
_ENTRIES = {"regret": np.dtype(np.float32), "average": np.dtype(np.float32)}
_BASELINE = {"baseline": np.dtype(np.float32)}
# Columns with numbers of any sign, which are at least -inf.
_UNBOUNDED = dict.fromkeys(("regret", "baseline"), -np.inf)
# Rows of a checkpoint that are checked together.
_CHECKED = 1 << 16
# The final strategy (`strategy.of_table`) also needs memory for probabilities, an
# index, the first entries of rows, and a copy of visits.
_FINISHED_ENTRY, _FINISHED_ROW = 4, index.ROW_BYTES + 8


def row_bytes() -> int:
    """Return the bytes of a row without its entries, for table and final strategy."""
    columns = sum(dtype.itemsize for dtype in _ROWS.values())
    return columns + index.ROW_BYTES + _FINISHED_ROW


def entry_bytes(*, baselines: bool) -> int:
    """Return the bytes of an entry: columns, and the final strategy's probability."""
    columns = _ENTRIES | (_BASELINE if baselines else {})
    return sum(dtype.itemsize for dtype in columns.values()) + _FINISHED_ENTRY


class InfosetTable:
    """Rows of infosets, found by key.

    Attributes:
      rows: Number of rows.
      entries: Number of entries, including the empty sequences.
      full: True if a row was omitted because the memory limit was reached.
      key: Keys as in `keys.py`, uint64 [rows, 2].
      first: First entry of each row, uint32 [rows].
      count: Number of entries of each row, uint16 [rows].
      parent: Entry of the player's previous action, uint32 [rows].
      depth: Number of earlier rows of the player, uint16 [rows].
      visits: Number of updates of the row, uint32 [rows].
      taken: Part of the parent's average that the row's own average already includes
        (see `sampling.py`), float32 [rows].
      regret: Cumulative counterfactual regrets of the acting player, float32 [entries].
      average: Average strategy in sequence form, unnormalised, float32 [entries].
      baseline: Estimates of player 0's utility after the action, float32 [entries];
        empty without baselines.

    The columns have room for more rows and entries; this part contains zeros.
    """

    def __init__(self, max_bytes: int, max_actions: int, *, baselines: bool) -> None:
        """Allocate the columns.

        Args:
          max_bytes: Memory for all rows, and for the strategy that is computed from
            them at the end.
          max_actions: Maximum number of actions of a row.
          baselines: True to allocate a column of baselines.

        Raises:
          GameTooLargeError: If not even one row fits.
        """
        self._row, self._entry = row_bytes(), entry_bytes(baselines=baselines)
        self._max_bytes = int(max_bytes) - ROOTS * self._entry
        smallest = self._row + 2 * self._entry
        self._most_rows = min(self._max_bytes // smallest, index.MOST_ROWS)
        if self._most_rows < 1:
            raise GameTooLargeError(
                f"max_bytes={max_bytes}: one row of the table needs {smallest} bytes; "
                f"allow more memory"
            )
        # Each row is read as if it had `max_actions` entries, so the end has padding.
        most = min(self._max_bytes // self._entry, 2**32 - 1)
        self._most_entries = most - max_actions
        self.entries, self.full = ROOTS, False
        columns: dict[str, Any] = {
            name: np.zeros(self._most_rows, dtype) for name, dtype in _ROWS.items()
        }
        for name, dtype in (_ENTRIES | _BASELINE).items():
            missing = name in _BASELINE and not baselines
            columns[name] = np.zeros(0 if missing else most, dtype)
        self.key: np.ndarray = columns["key"]
        self.first: np.ndarray = columns["first"]
        self.count: np.ndarray = columns["count"]
        self.parent: np.ndarray = columns["parent"]
        self.depth: np.ndarray = columns["depth"]
        self.visits: np.ndarray = columns["visits"]
        self.taken: np.ndarray = columns["taken"]
        self.regret: np.ndarray = columns["regret"]
        self.average: np.ndarray = columns["average"]
        self.baseline: np.ndarray = columns["baseline"]
        self._index = index.Index(self.key)

    @property
    def rows(self) -> int:
        """Number of infosets."""
        return self._index.rows

    @property
    def nbytes(self) -> int:
        """Memory of the rows, and of the strategy computed from them at the end."""
        return self.rows * self._row + self.entries * self._entry

    @property
    def limit(self) -> int:
        """Maximum of `nbytes`."""
        return self._max_bytes + ROOTS * self._entry

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the rows of keys, int64 [n]; -1 for keys without a row.

        Args:
          keys: Keys, uint64 [n, 2].
        """
        return self._index.find(keys)

    def insert(
        self, keys: np.ndarray, count: np.ndarray, parent: np.ndarray, depth: np.ndarray
    ) -> np.ndarray:
        """Insert keys that are not in the table; equal keys share one row.

        If the memory limit is reached, this and all later rows are omitted, with one
        warning.

        Args:
          keys: Keys, uint64 [n, 2].
          count: Numbers of legal actions, integers [n].
          parent: Entries of the player's last actions, integers [n].
          depth: Numbers of earlier rows of the player, integers [n].

        Returns:
          The rows, int64 [n]; -1 if they were omitted.
        """
        if self.full or not len(keys):
            return np.full(len(keys), -1)
        chosen, group = index.distinct(keys)
        ends = self.entries + np.cumsum(count[chosen], dtype=np.int64)
        rows = self.rows + np.arange(1, len(chosen) + 1)
        fits = rows * self._row + (ends - ROOTS) * self._entry <= self._max_bytes
        fits &= (rows <= self._most_rows) & (ends <= self._most_entries)
        taken = int(np.count_nonzero(fits))
        if taken < len(chosen):
            self.full = True
            logging.warning(
                "the table is full with %d infosets (%d MB): the strategy at all other "
                "infosets is uniform; raise the memory limit to add more infosets",
                self.rows + taken,
                self._max_bytes // 10**6,
            )
        chosen, ends = chosen[:taken], ends[:taken]
        begin, end = self.rows, self.rows + taken
        self.key[begin:end] = keys[chosen]
        self.first[begin:end] = ends - count[chosen]
        self.count[begin:end] = count[chosen]
        self.parent[begin:end] = parent[chosen]
        self.depth[begin:end] = depth[chosen]
        self.entries = int(ends[-1]) if taken else self.entries
        self._index.extend(end)
        return np.where(group < taken, begin + group, -1)

    def scale_averages(self, power: int) -> None:
        """Multiply averages, and their parts in `taken`, by a power of two.

        Strategies do not change, except for sums that become too small for float32.
        """
        for column in (self.average[: self.entries], self.taken[: self.rows]):
            np.ldexp(column, power, out=column)

    def state(self) -> dict[str, np.ndarray]:
        """Return all columns up to the last row.

        The columns are views that the next batch changes.
        """
        rows = {name: getattr(self, name)[: self.rows] for name in _ROWS}
        entries = {
            name: getattr(self, name)[: self.entries] for name in _ENTRIES | _BASELINE
        }
        return {**rows, **entries, "full": np.array(self.full)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Replace all rows with a result of `state`.

        Args:
          state: Columns, which are removed one by one, so that no two copies of the
            table exist at once.

        Raises:
          ValueError: If the rows do not fit into this table, or columns have other
            types or lengths.
        """
        rows, entries = len(state["key"]), len(state["average"])
        if rows > self._most_rows or entries > self._most_entries:
            raise ValueError(
                f"state: {rows} infosets do not fit in a table of {self._most_rows}; "
                f"allow as much memory as the run that wrote it"
            )
        sizes = dict.fromkeys(_ROWS, rows) | dict.fromkeys(
            _ENTRIES | _BASELINE, entries
        )
        if not len(self.baseline):
            sizes["baseline"] = 0
        for name, size in sizes.items():
            column, saved = getattr(self, name), state[name]
            if len(saved) != size or saved.dtype != column.dtype:
                raise ValueError(
                    f"state: {name} is {saved.dtype} [{len(saved)}] and must be "
                    f"{column.dtype} [{size}]; use the state of a table with the same "
                    f"settings"
                )
        for name in sizes:
            column, saved = getattr(self, name), state.pop(name)
            # Unwritten memory pages cost nothing, so only used rows are cleared.
            used = self.rows if name in _ROWS else self.entries
            column[len(saved) : used] = 0
            column[: len(saved)] = saved
        self.entries, self.full = entries, bool(state["full"])
        self._index = index.Index(self.key)
        self._index.extend(rows)


def check_state(state: Mapping[str, np.ndarray], max_actions: int) -> None:
    """Raise ValueError if a state cannot be a result of `InfosetTable.state`.

    Args:
      state: Arrays with correct types and numbers of dimensions.
      max_actions: Maximum number of actions of a row.
    """
    rows, entries = len(state["count"]), len(state["average"])
    shapes = {name: (rows, *state[name].shape[1:]) for name in _ROWS}
    shapes |= {"key": (rows, 2)} | dict.fromkeys(_ENTRIES, (entries,))
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(
                f"state: {name} has shape {state[name].shape}, not {shape}"
            )
    end = ROOTS
    for start in range(0, rows, _CHECKED):
        some = slice(start, start + _CHECKED)
        count = state["count"][some].astype(np.int64)
        if (count < 1).any() or (count > max_actions).any():
            raise ValueError(f"state: a row does not have 1 to {max_actions} actions")
        first = end + np.cumsum(count) - count
        end += int(count.sum())
        if (state["first"][some] != first).any():
            raise ValueError("state: rows are not consecutive")
        behind = state["parent"][some] >= first
        if behind.any() or (state["depth"][some] > rows).any():
            raise ValueError("state: a row precedes its parent")
    if entries != end:
        raise ValueError("state: rows are not consecutive")
    check_numbers(state, {"average": 0, "taken": 0} | _UNBOUNDED)
