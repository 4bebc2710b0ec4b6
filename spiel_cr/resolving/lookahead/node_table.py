"""The histories of a lookahead tree, stored in columns, and their expansion."""

import copy

import numpy as np

from spiel_cr.common.arrays import places_in, ranges
from spiel_cr.games.histories import CHANCE, TERMINAL, actions_to
from spiel_cr.games.opening.batched_rules import BrokenRulesError
from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.resolving.lookahead.frontier import TreeRows

# Initial length of the columns; it doubles whenever they are full.
_FIRST_LENGTH = 1 << 10


class Ids:
    """Source of unique ids for histories, shared by trees made from each other."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> np.ndarray:
        """Return ids that no history has yet, int64 [count]."""
        self._next += count
        return np.arange(self._next - count, self._next)


class NodeTable:
    """Histories of a lookahead tree in the order of expansion: parents before children.

    A history is a row. The children of a history are contiguous rows. The columns are
    arrays whose first `used` entries are valid; they are enlarged when they are full. n
    is the number of entries.

    Attributes:
      capacity: Maximum number of histories.
      used: Number of histories.
      ids: Source of the ids.
      marks: Ascending numbers of histories, one after each round of expansions, at
        which all or none of an infoset's histories on one level are expanded. The first
        is the number of histories with which the table was made; `truncate` returns to
        one of these numbers.
      id: Ids, int64 [n], ascending. A history keeps its id when others are dropped.
      parent: Row of the parent, int32 [n]; -1 at the root.
      depth: Number of moves from the root, int32 [n].
      first: Row of the first child, int32 [n]; -1 if the history is not expanded.
      chance: Probability of the chance moves from the root, float64 [n].
      player_reach: Each player's reach probability, float64 [n, 2], by the blueprint,
        or by uniform play without one (`growth.py`).
      spread: Weight of an expansion, float64 [n]: the difference between the largest
        and the smallest leaf value of a history. Until several leaf values of a history
        are computed, it is the weight of the parent; 1 at the root.
      value: Leaf values, player 0's utility, float64 [n, k]; NaN until they are
        computed.
      stub: Whether the history follows a move that was dropped, bool [n].
      states, action, player, label, observation, utility, num_actions: Columns with the
        meaning of the fields of `Nodes`; `num_actions` is 0 at stubs.
    """

    def __init__(self, capacity: int, ids: Ids, nodes: Nodes) -> None:
        """Make a table that consists of a root.

        Args:
          capacity: Maximum number of histories.
          ids: Source of the ids.
          nodes: The root, as a batch of one history.
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
        """Return the histories in some rows; stubs look like terminal histories."""
        columns = [
            np.ones(len(rows)) if name == "factor" else getattr(self, name)[rows]
            for name in Nodes._fields
        ]
        return Nodes(*columns)

    def add_children(
        self, parents: np.ndarray, nodes: Nodes, which: np.ndarray
    ) -> None:
        """Append the children of some histories.

        Args:
          parents: Rows that are not expanded, int64 [p].
          nodes: All n children, grouped by parent in the order of `parents`.
          which: Index into `parents` of each child's parent, int64 [n], ascending.
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
        """Append rows and fill the columns that do not depend on the parents' entries.

        Args:
          nodes: The n histories to append.
          parent: Row of each parent, [n]; -1 for a root.

        Returns:
          The new rows.
        """
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
        """Return a table that contains copies of some rows only.

        Args:
          kept: Ascending rows, with the root and the parent of each other row, and for
            each history all of its children or none.
        """
        table, count = copy.copy(self), len(kept)
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(table, name, column[kept])
        table.used, table.marks = count, [count]
        place = places_in(kept, self.used)
        for rows in (table.parent, table.first):
            rows[:] = np.where(rows >= 0, place[rows], -1)
        return table

    def truncate(self, most: int) -> None:
        """Undo the last rounds of expansions until at most `most` rows are left.

        All or none of an infoset's histories on one level stay expanded. The rows with
        which the table was made are never removed, even if there are more than `most`.
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
        """Return the rows that can be expanded, int64."""
        used = self.used
        return np.flatnonzero((self.num_actions[:used] > 0) & (self.first[:used] < 0))

    def path_to(self, row: int) -> list[int]:
        """Return the actions from the root to a row, including chance outcomes."""
        return actions_to(self.parent, self.action, row)

    def children(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of the children of some expanded rows, int64."""
        return ranges(self.first[rows], self.num_actions[rows])

    def rows(self) -> TreeRows:
        """Return all histories; the frontier and stubs are terminals with utility 0."""
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
        """Expand some histories of the frontier.

        Args:
          simulator: Simulator of the game.
          rows: Rows of the frontier, int64 [n].

        Raises:
          BrokenRulesError: If the batched rules contradict the game; `history` is the
            row.
        """
        try:
            children = simulator.children(self.states[rows], self.player[rows])
        except BrokenRulesError as error:
            error.history = int(rows[error.history])
            raise
        self.add_children(rows, *children)

    def infosets(self, rows: np.ndarray) -> np.ndarray:
        """Return a number for each row, int64 [n], equal exactly within an infoset.

        The number of a chance node is different from all others.
        """
        code = self.label[rows].astype(np.int64) * 2 + self.player[rows]
        return np.where(self.player[rows] == CHANCE, -1 - rows, code)

    def _lengthen(self, count: int) -> None:
        """Enlarge the columns, if necessary, to hold at least `count` rows."""
        length = len(self.id)
        if count <= length:
            return
        length = min(self.capacity, max(count, 2 * length))
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                longer = np.zeros((length, *column.shape[1:]), column.dtype)
                longer[: self.used] = column[: self.used]
                setattr(self, name, longer)
