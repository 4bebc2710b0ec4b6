"""The histories of a lookahead tree in columns, and how they are expanded."""

import copy

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import CHANCE, TERMINAL, actions_to
from spiel_cr.games.opening.batched_rules import BrokenRulesError
from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.resolving.lookahead.frontier import TreeRows

# Length of the columns at first; it doubles as they fill.
_FIRST_LENGTH = 1 << 10


class Ids:
    """Numbers for histories, shared by trees that are made of each other."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> np.ndarray:
        """int64 [count], numbers that no history has yet."""
        self._next += count
        return np.arange(self._next - count, self._next)


class NodeTable:
    """Histories in the order in which they were found: parents before children.

    The children of a history are contiguous. Columns hold `used` histories, at most
    `capacity`, and are longer than that.

    Attributes:
      capacity: the most histories.
      used: how many there are.
      ids: where their numbers come from.
      marks: numbers of histories, ascending, at which all infosets were whole on each
        level; the first is what the table began with.
      id: int64, numbers that stay when other histories are dropped; ascending.
      parent: int32, -1 at the root.
      depth: int32, moves from the root.
      first: int32, the first child; -1: not expanded.
      chance: float64, probability of the chance moves from the root.
      player_reach: Each player's reach probability, float64 [n, 2], by the blueprint,
        or by uniform play without one (`growth.py`).
      spread: float64, how uncertain the leaf value is, as far as that was asked for;
        else that of the parent.
      value: float64 [n, k], leaf values as far as they were asked for, else NaN.
      stub: bool, what a dropped move leads to.
      states, action, player, label, observation, utility, num_actions: as in `Nodes`;
        stubs have no actions.
    """

    def __init__(self, capacity: int, ids: Ids, nodes: Nodes) -> None:
        """A root.

        Args:
          capacity: the most histories.
          ids: where their numbers come from.
          nodes: the root alone.
        """
        length = min(capacity, _FIRST_LENGTH)
        self.capacity = capacity
        self.used = 0
        self.ids = ids
        self.marks: list[int] = []
        self.id = np.empty(length, np.int64)
        self.parent = np.empty(length, np.int32)
        self.depth = np.empty(length, np.int32)
        self.first = np.empty(length, np.int32)
        self.num_actions = np.empty(length, np.int32)
        self.stub = np.zeros(length, bool)
        self.chance = np.empty(length, np.float64)
        self.player_reach = np.ones((length, 2), np.float64)
        self.spread = np.ones(length, np.float64)
        self.value = np.empty((length, 1), np.float64)
        self.utility = np.empty(length, np.float64)
        self.states = np.empty((length, *nodes.states.shape[1:]), nodes.states.dtype)
        self.action = np.empty(length, np.int32)
        self.player = np.empty(length, np.int8)
        self.label = np.empty(length, np.int32)
        self.observation = np.empty(length, np.int32)
        self._append(nodes, np.full(1, -1))
        self.depth[0], self.chance[0] = 0, 1.0
        self.marks.append(1)

    def nodes(self, rows: np.ndarray) -> Nodes:
        """Some histories; stubs look like terminals."""
        columns = [
            np.ones(len(rows)) if name == "factor" else getattr(self, name)[rows]
            for name in Nodes._fields
        ]
        return Nodes(*columns)

    def add_children(
        self, parents: np.ndarray, nodes: Nodes, which: np.ndarray
    ) -> None:
        """Adds the children of some histories.

        Args:
          parents: int64 [p], rows that are not expanded.
          nodes: n children, those of one parent together.
          which: int64 [n], ascending, the index in `parents` of the parent of each.
        """
        counts = np.bincount(which, minlength=len(parents))
        self.first[parents] = self.used + np.cumsum(counts) - counts
        parent = parents[which]
        new = self._append(nodes, parent)
        self.depth[new] = self.depth[parent] + 1
        self.chance[new] = self.chance[parent] * nodes.factor
        self.player_reach[new] = self.player_reach[parent]
        for p in range(2):
            acts = self.player[parent] == p
            self.player_reach[new, p] /= np.where(acts, self.num_actions[parent], 1)
        self.spread[new] = self.spread[parent]

    def _append(self, nodes: Nodes, parent: np.ndarray) -> slice:
        """Fills in what does not depend on the parents' columns."""
        count = len(parent)
        if self.used + count > self.capacity:
            raise AssertionError("more children than there are legal actions")
        new = slice(self.used, self.used + count)
        self._lengthen(new.stop)
        for name, column in nodes._asdict().items():
            if name != "factor":
                getattr(self, name)[new] = column
        self.id[new] = self.ids.take(count)
        self.parent[new] = parent
        self.first[new] = -1
        self.value[new] = np.nan
        self.stub[new] = False
        self.used = new.stop
        return new

    def take(self, kept: np.ndarray) -> "NodeTable":
        """A copy of some rows, ascending, with their parents and all siblings.

        Of the children of a history all are kept, or none.
        """
        table, count = copy.copy(self), len(kept)
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(table, name, column[kept])
        table.used, table.marks = count, [count]
        place = np.full(self.used, -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        for rows in (table.parent, table.first):
            rows[:] = np.where(rows >= 0, place[rows], -1)
        return table

    def truncate(self, most: int) -> None:
        """Takes the last expansions back until at most `most` rows are left.

        Infosets stay whole, and what the table began with stays.
        """
        while len(self.marks) > 1 and self.marks[-1] > most:
            self.marks.pop()
        left = self.marks[-1]
        if self.states.dtype == object:
            self.states[left : self.used] = None
        self.used = left
        first = self.first[:left]
        first[first >= left] = -1

    def frontier(self) -> np.ndarray:
        """int64, rows that can be expanded."""
        used = self.used
        return np.flatnonzero((self.num_actions[:used] > 0) & (self.first[:used] < 0))

    def path_to(self, row: int) -> list[int]:
        """Actions from the root to a row, chance included."""
        return actions_to(self.parent, self.action, row)

    def children(self, rows: np.ndarray) -> np.ndarray:
        """int64, the children of expanded rows."""
        return ranges(self.first[rows], self.num_actions[rows])

    def rows(self) -> TreeRows:
        """All histories, ending at the frontier and at stubs; leaves are worth 0."""
        used = self.used
        leaf = self.first[:used] < 0
        ends = leaf & ((self.num_actions[:used] > 0) | self.stub[:used])
        return TreeRows(
            id=self.id[:used],
            parent=self.parent[:used],
            first=self.first[:used].astype(np.int64),
            num_children=np.where(leaf, 0, self.num_actions[:used]).astype(np.int64),
            action=self.action[:used],
            player=np.where(ends, np.int8(TERMINAL), self.player[:used]),
            label=self.label[:used],
            observation=self.observation[:used],
            chance=self.chance[:used],
            utility=self.utility[:used].copy(),
            frontier=ends,
        )

    def expand_rows(self, simulator: LabelledSimulator, rows: np.ndarray) -> None:
        """Expands some histories of the frontier."""
        try:
            children = simulator.children(self.states[rows], self.player[rows])
        except BrokenRulesError as error:
            error.history = int(rows[error.history])
            raise
        self.add_children(rows, *children)

    def infosets(self, rows: np.ndarray) -> np.ndarray:
        """int64 [n], equal exactly within infosets; each chance node stands alone."""
        code = self.label[rows].astype(np.int64) * 2 + self.player[rows]
        return np.where(self.player[rows] == CHANCE, -1 - rows, code)

    def _lengthen(self, count: int) -> None:
        """Makes columns long enough for `count` rows."""
        length = len(self.id)
        if count <= length:
            return
        length = min(self.capacity, max(count, 2 * length))
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                longer = np.zeros((length, *column.shape[1:]), column.dtype)
                longer[: self.used] = column[: self.used]
                setattr(self, name, longer)
