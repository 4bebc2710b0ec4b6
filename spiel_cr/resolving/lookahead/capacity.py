"""Padded shapes with spare capacity, so that nothing is compiled during a match.

A compiled function depends on the shapes of its arrays. The subgames of a lookahead
player all differ, so each is built in one of a few padded shapes (see
`layout.PaddedShape`), which are learned from subgames of the warm-up matches.
"""

import numpy as np

from spiel_cr.games.sequence_form.layout import (
    PaddedShape,
    PaddedShapes,
    common_shapes,
    fits,
)

# New shapes are larger than the game that needs them: by these factors in the number of
# infosets and rows, the length of rows and the number of actions per infoset, and by
# this number of additional levels. Padding makes iterations slower, but a subgame that
# fits no shapes must be truncated, which is worse.
_MORE_PLACES = 2.5
_LONGER_ROWS = 2.0
_MORE_ACTIONS = 1.25
_MORE_LEVELS = 2
# Factors for the widest shapes, which hold subgames that fit no learned shapes: for the
# number of infosets on a level, and for the actions of the level's first infoset.
_LAST_PLACES = 2.0
_LAST_LONGER = 3
# New shapes are added for a game if the smallest ones in which it fits are larger than
# the new ones would be by this factor.
_WASTE = 4.0
# Maximum number of learned shapes, without the widest ones of `close`. When it is
# reached, a subgame that fits none enlarges the shapes that were learned last.
_MOST_SHAPES = 2


class Capacities:
    """A small set of padded shapes for games in sequence form."""

    def __init__(self) -> None:
        """Start without shapes."""
        self._shapes: list[PaddedShapes] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._shapes)

    def find(self, need: PaddedShapes) -> PaddedShapes | None:
        """Return the smallest known shapes in which a game fits, or None."""
        fitting = [shapes for shapes in self._shapes if fits(need, shapes)]
        return min(fitting, key=size_of, default=None)

    def learn(self, need: PaddedShapes) -> PaddedShapes | None:
        """Return shapes in which a game fits; add new shapes if necessary and allowed.

        Args:
          need: Exact shapes of the game, one for each player.

        Returns:
          The shapes. None if the game fits no shapes and `close` was called.
        """
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
        """Add shapes wider than all others together; afterwards none are added.

        Returns:
          The shapes that were added. They hold subgames that fit no learned shapes.
        """
        players = []
        for shape in common_shapes(self._shapes):
            # Infosets of one level may be on another level in the next subgame.
            places = max(map(len, shape.levels), default=0)
            actions = max((int(x.max(initial=0)) for x in shape.levels), default=0)
            level = _more(np.full(places, actions), 1.0, _LAST_PLACES)
            # A max-margin gadget has one infoset with many actions.
            level[:1] *= _LAST_LONGER
            # For any number of rows, the n-th longest has at most 1/n of all entries.
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
    """Return shapes that are larger than the given ones by the factors above."""
    players = []
    for shape in need:
        levels = [_more(counts, _MORE_ACTIONS) for counts in shape.levels]
        levels += levels[-1:] * _MORE_LEVELS
        players.append(PaddedShape(tuple(levels), _more(shape.rows, _LONGER_ROWS)))
    return players[0], players[1]


def _more(
    descending: np.ndarray, longer: float, more: float = _MORE_PLACES
) -> np.ndarray:
    """Return an enlarged list of sizes with about the same distribution.

    Args:
      descending: Sizes, int64 [n], from the largest to the smallest.
      longer: Factor by which each size grows.
      more: Factor by which the number of sizes grows.
    """
    count = len(descending)
    if not count:
        return descending
    places = np.arange(int(np.ceil(more * count)) + 2)
    taken = descending[np.minimum(places / more, count - 1).astype(np.int64)]
    return np.ceil(taken * longer).astype(np.int64)
