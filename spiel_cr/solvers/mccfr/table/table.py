"""A table that grows: the key of what a player knows → a row with numbers per action.

All columns are numpy arrays, laid out at once for as many rows as the memory allows;
the system gives the memory when rows are written, so growth copies nothing. Rows are
never removed, and a row's number is never changed. Rows of a batch are found and
inserted together.

A row has as many *entries* as its infoset has legal actions; they lie one after another
in columns of their own. Entries 0 and 1 are the empty sequences of player 0 and of
player 1, which no row has. An infoset is inserted after the player's infosets before
it, so a row's parent entry always lies before its own.
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
# A finished strategy (`strategy.of_table`) takes probabilities besides, an index, where
# rows begin, and a copy of visits.
_FINISHED_ENTRY, _FINISHED_ROW = 4, index.ROW_BYTES + 8


def row_bytes() -> int:
    """Return the bytes of a row without its entries, for table and final strategy."""
    columns = sum(dtype.itemsize for dtype in _ROWS.values())
    return columns + index.ROW_BYTES + _FINISHED_ROW


def entry_bytes(*, baselines: bool) -> int:
    """Return the bytes of an entry: columns, and the final strategy's probability."""
    columns = _ENTRIES | (_BASELINE if baselines else {})
    return sum(dtype.itemsize for dtype in columns.values()) + _FINISHED_ENTRY


class Table:
    """Rows of infosets, found by key.

    Attributes:
      rows: Number of rows.
      entries: Number of entries, the empty sequences included.
      full: Whether a row was left out because the memory is used up.
      key: Keys, uint64 [rows, 2], see `keys.py`.
      first: The row's first entry, uint32 [rows].
      count: Number of its entries, uint16 [rows].
      parent: Entry of the player's last action before, uint32 [rows].
      depth: Number of rows of the player before, uint16 [rows].
      visits: Number of updates of the row, uint32 [rows].
      taken: The parent's average as far as the row's own average contains it (see
        `sampling.py`), float32 [rows].
      regret: Cumulative counterfactual regrets of the acting player, float32 [entries].
      average: Average strategy in sequence form, unnormalised, float32 [entries].
      baseline: Estimates of player 0's utility after the action, float32 [entries];
        empty without baselines.

    The columns have room for more; they are 0 after `rows` and `entries`.
    """

    def __init__(self, max_bytes: int, max_actions: int, *, baselines: bool) -> None:
        """Allocate the columns.

        Args:
          max_bytes: Memory for all rows, and for the strategy that is made of them at
            the end.
          max_actions: Maximum number of actions of a row.
          baselines: Whether there is a column of baselines.

        Raises:
          GameTooLargeError: If not even one row fits.
        """
        self._row, self._entry = row_bytes(), entry_bytes(baselines=baselines)
        self._max_bytes = int(max_bytes) - ROOTS * self._entry
        smallest = self._row + 2 * self._entry
        self._most_rows = min(self._max_bytes // smallest, index.MOST_ROWS)
        if self._most_rows < 1:
            raise GameTooLargeError(
                f"max_bytes={max_bytes} does not hold one row of the table, which "
                f"takes {smallest} bytes; allow more"
            )
        # Rows are read as if each had `max_actions` entries.
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
        """Memory of the rows, and of the strategy that is made of them at the end."""
        return self.rows * self._row + self.entries * self._entry

    @property
    def limit(self) -> int:
        """Maximum of `nbytes`."""
        return self._max_bytes + ROOTS * self._entry

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the rows of keys, int64 [n], -1 if there is none; keys are uint64 [n,
        2].
        """
        return self._index.find(keys)

    def insert(
        self, keys: np.ndarray, count: np.ndarray, parent: np.ndarray, depth: np.ndarray
    ) -> np.ndarray:
        """Insert keys that are not in the table; equal ones get one row.

        If the memory is used up, this and all later rows are left out, with one
        warning.

        Args:
          keys: Keys, uint64 [n, 2].
          count: Numbers of legal actions, integers [n].
          parent: Entries of the player's last actions, integers [n].
          depth: Numbers of rows of the player before, integers [n].

        Returns:
          The rows, int64 [n]; -1 if they were left out.
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
                "the table is full with %d infosets (%d MB): it takes in no more, and "
                "play is uniform at all others; a higher memory limit holds more",
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
        """Multiply averages, and the parts of them in `taken`, by a power of two.

        Strategies do not change, except for sums that become too small for float32.
        """
        for column in (self.average[: self.entries], self.taken[: self.rows]):
            np.ldexp(column, power, out=column)

    def state(self) -> dict[str, np.ndarray]:
        """Return all columns up to the last row: views that the next batch changes."""
        rows = {name: getattr(self, name)[: self.rows] for name in _ROWS}
        entries = {
            name: getattr(self, name)[: self.entries] for name in _ENTRIES | _BASELINE
        }
        return {**rows, **entries, "full": np.array(self.full)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Restore what `state` returned, in place of all rows.

        Args:
          state: Columns, which are removed one by one, so that no two copies of the
            table exist at once.

        Raises:
          ValueError: If the rows do not fit into this table, or the columns are others.
        """
        rows, entries = len(state["key"]), len(state["average"])
        if rows > self._most_rows or entries > self._most_entries:
            raise ValueError(
                f"the table has room for {self._most_rows} infosets and the state has "
                f"{rows}; allow as much memory as before"
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
                    f"the state is of other settings, or of no table: its {name} is "
                    f"{saved.dtype} [{len(saved)}] and must be {column.dtype} [{size}]"
                )
        for name in sizes:
            column, saved = getattr(self, name), state.pop(name)
            # What has never been written must stay so, or it takes memory.
            used = self.rows if name in _ROWS else self.entries
            column[len(saved) : used] = 0
            column[: len(saved)] = saved
        self.entries, self.full = entries, bool(state["full"])
        self._index = index.Index(self.key)
        self._index.extend(rows)


def check_state(state: Mapping[str, np.ndarray], max_actions: int) -> None:
    """Raise ValueError if a state is none that `Table.state` returns.

    Args:
      state: Arrays of the right types and numbers of dimensions.
      max_actions: Maximum number of actions of a row.
    """
    rows, entries = len(state["count"]), len(state["average"])
    shapes = {name: (rows, *state[name].shape[1:]) for name in _ROWS}
    shapes |= {"key": (rows, 2)} | dict.fromkeys(_ENTRIES, (entries,))
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"its {name} has the shape {state[name].shape}")
    end = ROOTS
    for start in range(0, rows, _CHECKED):
        some = slice(start, start + _CHECKED)
        count = state["count"][some].astype(np.int64)
        if (count < 1).any() or (count > max_actions).any():
            raise ValueError(f"its rows do not have from 1 to {max_actions} actions")
        first = end + np.cumsum(count) - count
        end += int(count.sum())
        if (state["first"][some] != first).any():
            raise ValueError("its rows do not lie one after another")
        behind = state["parent"][some] >= first
        if behind.any() or (state["depth"][some] > rows).any():
            raise ValueError("its rows do not lie behind those that lead there")
    if entries != end:
        raise ValueError("its rows do not lie one after another")
    check_numbers(state, {"average": 0, "taken": 0} | _UNBOUNDED)
