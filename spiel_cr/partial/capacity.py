"""Third stage: rooms of fixed shape, so that a player of a growing game never compiles.

A program belongs to the shapes of its arrays. The subgames that a player meets in a
growing game all differ; each is laid out in one of a few rooms (see `PaddedShape`), which
are learnt, with slack, from subgames met before the first match.
"""

import numpy as np

from spiel_cr.sequence_form import layout

# A new room has places for so many times the infosets and rows that are needed, for
# rows and infosets so many times as long, and so many levels more. Where room is left
# iterations take longer; a subgame that fits no room loses histories, which is worse.
_MORE_PLACES = 2.5
_LONGER_ROWS = 2.0
_MORE_ACTIONS = 1.25
_MORE_LEVELS = 2
# The same for the last room, which takes what fits none of those learnt; and how much
# longer its first row is.
_LAST_PLACES = 1.25
_LAST_LONGER = 3
# A game gets a room of its own where the smallest one that it fits is so many times as
# large as that would be.
_WASTE = 4.0
# Capacities learnt at most, but for the last one. Of further subgames those that fit none
# widen the last one.
_MOST_ROOMS = 6


class Capacities:
    """Capacities for games in sequence form."""

    def __init__(self) -> None:
        """None yet."""
        self._rooms: list[layout.PaddedShapes] = []

    def __len__(self) -> int:
        return len(self._rooms)

    def find(self, need: layout.PaddedShapes) -> layout.PaddedShapes | None:
        """The smallest room in which a game fits; None: there is none."""
        fitting = [room for room in self._rooms if layout.fits(need, room)]
        return min(fitting, key=_size, default=None)

    def learn(self, need: layout.PaddedShapes) -> layout.PaddedShapes:
        """A room in which a game fits, a new one if need be."""
        found, own = self.find(need), _stretched(need)
        full = len(self._rooms) == _MOST_ROOMS
        if found is not None and (full or _size(found) <= _WASTE * _size(own)):
            return found
        if full:
            own = layout.common_shapes([self._rooms.pop(), own])
        self._rooms.append(own)
        return own

    def close(self) -> layout.PaddedShapes:
        """Adds, and gives, a last room, wider than all of them together."""
        room = []
        for mine in layout.common_shapes(self._rooms):
            levels = tuple(
                np.full(len(wide), wide.max(initial=0))
                for wide in (_more(counts, 1.0, _LAST_PLACES) for counts in mine.levels)
            )
            rows = _more(mine.rows, 1.0, _LAST_PLACES)
            # The first one is that of the empty sequence, where a gadget's values are.
            rows[:1] *= _LAST_LONGER
            room.append(layout.PaddedShape(levels, rows))
        self._rooms.append((room[0], room[1]))
        return self._rooms[-1]


def _size(room: layout.PaddedShapes) -> int:
    """What an iteration has to go through."""
    return sum(int(s.rows.sum()) + sum(map(len, s.levels)) for s in room)


def _stretched(need: layout.PaddedShapes) -> layout.PaddedShapes:
    """More room of the same kind."""
    players = []
    for mine in need:
        levels = [_more(counts, _MORE_ACTIONS) for counts in mine.levels]
        levels += levels[-1:] * _MORE_LEVELS
        players.append(
            layout.PaddedShape(tuple(levels), _more(mine.rows, _LONGER_ROWS))
        )
    return players[0], players[1]


def _more(
    descending: np.ndarray, longer: float, more: float = _MORE_PLACES
) -> np.ndarray:
    """More places, by the same shares of large and small ones."""
    count = len(descending)
    if not count:
        return descending
    places = np.arange(int(np.ceil(more * count)) + 2)
    taken = descending[np.minimum(places / more, count - 1).astype(np.int64)]
    return np.ceil(taken * longer).astype(np.int64)
