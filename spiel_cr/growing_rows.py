"""Second stage, a growing tree's histories: columns of fixed length, filled from 0."""

import numpy as np

from spiel_cr import numbering
from spiel_cr.growing_source import Nodes

__all__ = ["Rows"]

# Histories expanded between two looks at the clock.
_CHUNK = 1 << 13


class Rows:
    """Histories in the order in which they were found: parents before children.

    The children of one are contiguous. All columns have room for `room` histories and
    hold `used`.

    Attributes:
      used: how many there are.
      next_id: what the next one will be called.
      id: int64, numbers that stay when others are dropped; ascending.
      parent: int32, -1 at the root.
      action: int32, -1 at the root.
      player: int8, who acts in the game itself.
      label, told: int32, see `Nodes`.
      depth: int32, moves from the root.
      legal: int32, number of moves; 0 at terminals and stubs.
      first: int32, the first child; -1: not expanded.
      chance: float64, probability of chance's moves on the way.
      reach: float64, priority: by default, chance and uniform play.
      utility: float64, player 0's at terminals, else 0.
      value: float64, leaf values as far as they were asked for, else NaN.
      stub: bool, what a dropped move leads to.
      handles: the states; None: there are none yet.
    """

    def __init__(self, room: int, next_id: int) -> None:
        """No histories yet."""
        self.room = room
        self.used = 0
        self.next_id = next_id
        self.id = np.empty(room, np.int64)
        self.parent = np.empty(room, np.int32)
        self.action = np.empty(room, np.int32)
        self.player = np.empty(room, np.int8)
        self.label = np.empty(room, np.int32)
        self.told = np.empty(room, np.int32)
        self.depth = np.empty(room, np.int32)
        self.legal = np.empty(room, np.int32)
        self.first = np.empty(room, np.int32)
        self.chance = np.empty(room, np.float64)
        self.reach = np.empty(room, np.float64)
        self.utility = np.empty(room, np.float64)
        self.value = np.empty(room, np.float64)
        self.stub = np.zeros(room, bool)
        self.handles: np.ndarray | None = None

    def states(self, rows: np.ndarray) -> np.ndarray:
        """[n, ...], the states of some rows."""
        assert self.handles is not None
        return self.handles[rows]

    def append(self, nodes: Nodes, parent: np.ndarray) -> None:
        """Adds histories; `parent` are their parents' rows, -1 at the root."""
        count = len(parent)
        if self.used + count > self.room:
            raise AssertionError("more children than there are legal actions")
        here = slice(self.used, self.used + count)
        if self.handles is None:
            shape = (self.room, *nodes.handles.shape[1:])
            self.handles = np.empty(shape, nodes.handles.dtype)
        self.handles[here] = nodes.handles
        self.id[here] = self.next_id + np.arange(count)
        self.next_id += count
        self.parent[here] = parent
        self.action[here] = nodes.action
        self.player[here] = nodes.player
        self.label[here] = nodes.label
        self.told[here] = nodes.told
        self.legal[here] = nodes.legal
        self.first[here] = -1
        self.utility[here] = nodes.utility
        self.value[here] = np.nan
        self.stub[here] = False
        if self.used:
            self.depth[here] = self.depth[parent] + 1
            self.chance[here] = self.chance[parent] * nodes.factor
            draws = self.player[parent] == numbering.CHANCE
            share = np.where(draws, nodes.factor, 1 / self.legal[parent])
            self.reach[here] = self.reach[parent] * share
        else:
            self.depth[here], self.chance[here], self.reach[here] = 0, 1.0, 1.0
        self.used += count

    def take(self, kept: np.ndarray) -> "Rows":
        """A copy of some rows, ascending; parents and all siblings must be among them.

        What is kept of a family is all of it or nothing.
        """
        copy, count = Rows(self.room, self.next_id), len(kept)
        for name, column in vars(copy).items():
            if isinstance(column, np.ndarray):
                column[:count] = getattr(self, name)[kept]
        assert self.handles is not None
        copy.handles = np.empty_like(self.handles)
        copy.handles[:count] = self.handles[kept]
        copy.used = count
        place = np.full(self.used, -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        for column in (copy.parent, copy.first):
            rows = column[:count]
            rows[:] = np.where(rows >= 0, place[rows], -1)
        return copy

    def truncate(self, most: int) -> None:
        """Takes back the last expansions, until at most so many rows are left."""
        first = self.first[: self.used]
        starts = np.append(np.sort(first[first >= 0]), self.used)
        left = int(starts[np.searchsorted(starts, most, side="right") - 1])
        assert self.handles is not None
        if self.handles.dtype == object:
            self.handles[left : self.used] = None
        self.used = left
        first = first[:left]
        first[first >= left] = -1

    def frontier(self) -> np.ndarray:
        """int64, rows that can be expanded."""
        legal, first = (
            self.legal[: self.used],
            self.first[: self.used],
        )
        return np.flatnonzero((legal > 0) & (first < 0))

    def choose(
        self, frontier: np.ndarray, room: int, *, best_first: bool
    ) -> list[np.ndarray]:
        """Whole infosets in order of reach, in chunks of rows.

        Args:
          frontier: rows that can be expanded.
          room: how many children they may have at most.
          best_first: take only those that are reached half as often as the first one,
            or more.
        """
        code = self.label[frontier].astype(np.int64) * 2 + self.player[frontier]
        draws = self.player[frontier] == numbering.CHANCE
        code[draws] = -1 - frontier[draws]
        _, group = np.unique(code, return_inverse=True)
        cost = np.bincount(group, weights=self.legal[frontier]).astype(np.int64)
        reach = np.bincount(group, weights=self.reach[frontier])
        order = np.argsort(-reach, kind="stable")
        chosen = reach >= reach.max() / 2 if best_first else np.ones(len(cost), bool)
        if cost[chosen].sum() > room:
            prices = zip(order.tolist(), cost[order].tolist(), strict=True)
            for number, price in prices:
                if price > room:
                    chosen[number] = False
                elif chosen[number]:
                    room -= price
        place = np.empty(len(cost), np.int64)
        place[order] = np.arange(len(order))
        rows = np.flatnonzero(chosen[group])
        rows = rows[np.argsort(place[group[rows]], kind="stable")]
        ends = np.flatnonzero(np.diff(place[group[rows]], append=-1))  # of infosets
        cuts, last = [], 0
        for end in ends.tolist():
            if end + 1 - last >= _CHUNK:
                cuts.append(end + 1)
                last = end + 1
        return [part for part in np.split(frontier[rows], cuts) if len(part)]

    def breadth_first(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows as compiled games order them, and where levels begin."""
        first, count = self.first[: self.used], self.legal[: self.used]
        levels = [np.zeros(1, np.int64)]
        while True:
            parents = levels[-1][first[levels[-1]] >= 0]
            if not len(parents):
                break
            counts = count[parents].astype(np.int64)
            ends = np.cumsum(counts)
            starts = np.repeat(first[parents] - (ends - counts), counts)
            levels.append(starts + np.arange(ends[-1]))
        sizes = [len(level) for level in levels]
        return np.concatenate(levels), np.concatenate([[0], np.cumsum(sizes)])
