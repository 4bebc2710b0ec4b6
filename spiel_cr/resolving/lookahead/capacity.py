"""Padded shapes with slack, so that nothing is compiled during a match.

A compiled function depends on the shapes of its arrays. The subgames of a lookahead
player all differ, so each is built in one of a few padded shapes (see
`layout.PaddedShape`), which are learnt from subgames of the warm-up matches.
"""

import numpy as np

from spiel_cr.games.sequence_form.layout import (
    PaddedShape,
    PaddedShapes,
    common_shapes,
    fits,
)

# New shapes are larger than needed by these factors: the numbers of infosets and rows,
# the length of rows, the actions per infoset; and they have this many levels more.
# Iterations take longer where places are empty; a subgame that fits no shapes loses
# histories, which is worse.
_MORE_PLACES = 2.5
_LONGER_ROWS = 2.0
_MORE_ACTIONS = 1.25
_MORE_LEVELS = 2
# Factors of the last shapes, which take what fits none of those learnt: the numbers of
# infosets of a level, and the actions of the first one.
_LAST_PLACES = 2.0
_LAST_LONGER = 3
# A game gets shapes of its own where the smallest ones that it fits are larger than
# those would be by this factor.
_WASTE = 4.0
# Shapes learnt at most, but for the last ones. Further subgames that fit none widen the
# last ones learnt.
_MOST_SHAPES = 2


class Capacities:
    """Padded shapes for games in sequence form."""

    def __init__(self) -> None:
        """Start without shapes."""
        self._shapes: list[PaddedShapes] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._shapes)

    def find(self, need: PaddedShapes) -> PaddedShapes | None:
        """Return the smallest shapes in which a game fits; None if there are none."""
        fitting = [shapes for shapes in self._shapes if fits(need, shapes)]
        return min(fitting, key=size_of, default=None)

    def learn(self, need: PaddedShapes) -> PaddedShapes | None:
        """Return shapes in which a game fits, new ones if necessary and allowed."""
        fit, wide = self.find(need), _with_slack(need)
        if self._closed:
            return fit
        full = len(self._shapes) == _MOST_SHAPES
        if fit is not None and (full or size_of(fit) <= _WASTE * size_of(wide)):
            return fit
        if full:
            wide = common_shapes([self._shapes.pop(), wide])
        self._shapes.append(wide)
        return wide

    def close(self) -> PaddedShapes:
        """Add and return the last shapes, wider than all of them together."""
        players = []
        for shape in common_shapes(self._shapes):
            # What lies on one level here may lie on another one there.
            places = max(map(len, shape.levels), default=0)
            actions = max((int(x.max(initial=0)) for x in shape.levels), default=0)
            level = _more(np.full(places, actions), 1.0, _LAST_PLACES)
            # A gadget may have one infoset that leads to all others.
            level[:1] *= _LAST_LONGER
            # Of however many rows the n-th longest has at most 1/n of all entries.
            entries = int(shape.rows.sum())
            rows = entries // np.arange(1, entries + 1)
            players.append(PaddedShape((level,) * len(shape.levels), rows))
        self._shapes.append((players[0], players[1]))
        self._closed = True
        return self._shapes[-1]


def size_of(shapes: PaddedShapes) -> int:
    """Return the number of array entries that an iteration processes."""
    return sum(int(s.rows.sum()) + sum(map(len, s.levels)) for s in shapes)


def _with_slack(need: PaddedShapes) -> PaddedShapes:
    """Return larger shapes of the same kind."""
    players = []
    for shape in need:
        levels = [_more(counts, _MORE_ACTIONS) for counts in shape.levels]
        levels += levels[-1:] * _MORE_LEVELS
        players.append(PaddedShape(tuple(levels), _more(shape.rows, _LONGER_ROWS)))
    return players[0], players[1]


def _more(
    descending: np.ndarray, longer: float, more: float = _MORE_PLACES
) -> np.ndarray:
    """Return more places, with the same shares of large and small ones."""
    count = len(descending)
    if not count:
        return descending
    places = np.arange(int(np.ceil(more * count)) + 2)
    taken = descending[np.minimum(places / more, count - 1).astype(np.int64)]
    return np.ceil(taken * longer).astype(np.int64)
