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
    """Of one row without its entries, what the finished strategy takes included."""
    columns = sum(dtype.itemsize for dtype in _ROWS.values())
    return columns + index.ROW_BYTES + _FINISHED_ROW


def entry_bytes(*, baselines: bool) -> int:
    """Of one entry: columns, and the finished strategy's probability."""
    columns = _ENTRIES | (_BASELINE if baselines else {})
    return sum(dtype.itemsize for dtype in columns.values()) + _FINISHED_ENTRY


class Table:
    """Rows of infosets, found by key.

    Attributes:
      rows: how many there are.
      entries: how many there are, the empty sequences included.
      full: whether a row was refused because the memory is used up.
      key: uint64 [rows, 2], see `keys.py`.
      first: uint32 [rows], the row's first entry.
      count: uint16 [rows], its entries.
      parent: uint32 [rows], the entry of the player's last action before.
      depth: uint16 [rows], how many rows of the player lie before.
      visits: uint32 [rows], how often the row was updated.
      taken: float32 [rows], the parent's average as far as the row's own average has
        taken it in (see `sampling.py`).
      regret: float32 [entries], cumulative counterfactual regrets, the acting player's.
      average: float32 [entries], the average strategy in sequence form, unnormalised.
      baseline: float32 [entries], guesses of player 0's utility after the action; empty
        if the table was made without.

    The columns have room for more; what lies behind `rows` and `entries` is 0.
    """

    def __init__(self, max_bytes: int, max_actions: int, *, baselines: bool) -> None:
        """Lays out the columns.

        Args:
          max_bytes: what all rows may take, with what a strategy takes that is made of
            them in the end.
          max_actions: the most actions of a row.
          baselines: whether there is a column of baselines.

        Raises:
          GameTooLargeError: not even one row fits.
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
        # Rows are read as if all had `max_actions` entries.
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
        """How many infosets there are."""
        return self._index.rows

    @property
    def nbytes(self) -> int:
        """What the rows take now, with a strategy that is made of them in the end."""
        return self.rows * self._row + self.entries * self._entry

    @property
    def limit(self) -> int:
        """What `nbytes` may become."""
        return self._max_bytes + ROOTS * self._entry

    def find(self, keys: np.ndarray) -> np.ndarray:
        """int64 [n], the rows of keys, uint64 [n, 2]; -1 where there is none."""
        return self._index.find(keys)

    def insert(
        self, keys: np.ndarray, count: np.ndarray, parent: np.ndarray, depth: np.ndarray
    ) -> np.ndarray:
        """Takes in keys that are not in the table; equal ones get one row.

        Where the memory is used up, rows are refused, from then on all of them, which
        is said once.

        Args:
          keys: uint64 [n, 2].
          count: integers [n], legal actions.
          parent: integers [n], the entry of the player's last action.
          depth: integers [n], rows of the player before.

        Returns:
          int64 [n], the rows; -1 where they were refused.
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
        """Multiplies averages, and what rows have taken of them, by a power of two.

        Strategies stay as they are, but for sums that become too small for float32.
        """
        for column in (self.average[: self.entries], self.taken[: self.rows]):
            np.ldexp(column, power, out=column)

    def state(self) -> dict[str, np.ndarray]:
        """All columns up to the last row: views, which the next batch changes."""
        rows = {name: getattr(self, name)[: self.rows] for name in _ROWS}
        entries = {
            name: getattr(self, name)[: self.entries] for name in _ENTRIES | _BASELINE
        }
        return {**rows, **entries, "full": np.array(self.full)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Puts back what `state` gave, in place of all rows.

        Args:
          state: its columns are taken out one by one, so that no two copies of the
            table are held at once.

        Raises:
          ValueError: the rows do not fit into this table, or the columns are others.
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
