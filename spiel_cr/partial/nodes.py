"""Second stage, a growing tree's histories: columns of fixed length, filled from 0."""

import numpy as np

from spiel_cr.compilation import numbering
from spiel_cr.partial.simulator import Nodes

# Histories expanded between two looks at the clock.
_CHUNK = 1 << 13
# Room that columns have at first; it doubles as they fill.
_FIRST_ROOM = 1 << 10


class Ids:
    """Numbers for histories, shared by trees that are made of each other."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> np.ndarray:
        """int64 [count], numbers that nobody was given."""
        self._next += count
        return np.arange(self._next - count, self._next)


class Rows:
    """Histories in the order in which they were found: parents before children.

    The children of one are contiguous. Columns hold `used` histories, at most `room`,
    and are longer than that.

    Attributes:
      room: how many histories there may be.
      used: how many there are.
      ids: where their numbers come from.
      marks: how many there were whenever all infosets were whole on each level:
        ascending; the first is what there was at the beginning.
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

    def __init__(self, room: int, ids: Ids) -> None:
        """No histories yet."""
        self.room = room
        self.used = 0
        self.ids = ids
        self.marks: list[int] = []
        room = min(room, _FIRST_ROOM)
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
            shape = (len(self.id), *nodes.handles.shape[1:])
            self.handles = np.empty(shape, nodes.handles.dtype)
        self._lengthen(self.used + count)
        assert self.handles is not None
        self.handles[here] = nodes.handles
        self.id[here] = self.ids.take(count)
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
        copy, count = Rows(self.room, self.ids), len(kept)
        copy._lengthen(count)
        for name, column in vars(copy).items():
            if isinstance(column, np.ndarray):
                column[:count] = getattr(self, name)[kept]
        assert self.handles is not None
        shape = (len(copy.id), *self.handles.shape[1:])
        copy.handles = np.empty(shape, self.handles.dtype)
        copy.handles[:count] = self.handles[kept]
        copy.used, copy.marks = count, [count]
        place = np.full(self.used, -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        for column in (copy.parent, copy.first):
            rows = column[:count]
            rows[:] = np.where(rows >= 0, place[rows], -1)
        return copy

    def truncate(self, most: int) -> None:
        """Takes the last expansions back until at most so many rows are left.

        Infosets stay whole, and what there was at the beginning stays.
        """
        while len(self.marks) > 1 and self.marks[-1] > most:
            self.marks.pop()
        self.cut(self.marks[-1])

    def cut(self, left: int) -> None:
        """Takes back all but the first rows; no family may be cut in two."""
        assert self.handles is not None
        if self.handles.dtype == object:
            self.handles[left : self.used] = None
        self.used = left
        first = self.first[:left]
        first[first >= left] = -1

    def codes(self, rows: np.ndarray, *, levels: bool = False) -> np.ndarray:
        """int64 [n], equal exactly within infosets, or within those on one level.

        A chance node stands alone.
        """
        code = self.label[rows].astype(np.int64) * 2 + self.player[rows]
        if levels:
            code = code << 20 | self.depth[rows]
        draws = self.player[rows] == numbering.CHANCE
        code[draws] = -1 - rows[draws]
        return code

    def ends(self, rows: np.ndarray) -> np.ndarray:
        """int64, how many rows there will be after each infoset, if these expand."""
        last = np.flatnonzero(np.diff(self.codes(rows), append=np.iinfo(np.int64).max))
        return self.used + np.cumsum(self.legal[rows], dtype=np.int64)[last]

    def halves(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows in two parts, between infosets; all of them if that is one infoset."""
        cuts = np.flatnonzero(np.diff(self.codes(rows))) + 1
        return np.split(rows, cuts[len(cuts) // 2 :][:1])

    def obliged(self, since: int, expanded: np.ndarray) -> np.ndarray:
        """int64, new rows to be expanded since others of their infosets are.

        Args:
          since: the first new row.
          expanded: codes, by level, of what is expanded.
        """
        new = np.arange(since, self.used)
        new = new[(self.legal[new] > 0) & (self.player[new] >= 0)]
        return new[np.isin(self.codes(new, levels=True), expanded)]

    def _lengthen(self, count: int) -> None:
        """Makes columns long enough for so many rows."""
        length = len(self.id)
        if count <= length:
            return
        length = min(self.room, max(count, 2 * length))
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                longer = np.zeros((length, *column.shape[1:]), column.dtype)
                longer[: self.used] = column[: self.used]
                setattr(self, name, longer)

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
        _, group = np.unique(self.codes(frontier), return_inverse=True)
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
