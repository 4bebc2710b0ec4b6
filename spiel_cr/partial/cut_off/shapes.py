"""Where a gadget game is cut off, and padded shapes of what is beyond the cut."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.lookahead.frontier import Frontier, FrontierFunction
from spiel_cr.lookahead.set_network import Capacity, capacity_of
from spiel_cr.resolving.gadget import attach_cut
from spiel_cr.sequence_form.decisions import Decisions
from spiel_cr.sequence_form.layout import SequenceForm

# New shapes are larger than needed by these factors: of states and infosets in all, and
# of a state's infosets.
_MORE, _WIDER = 1.5, 1.2


class CutPlace(NamedTuple):
    """Where a gadget game is cut off.

    Attributes:
      frontier: the public states there.
      sequences: by player int32 [J0], int32 [J1], the game's sequence by which each of
        the states' infosets is reached.
      weights: by player float64 [J0], float64 [J1], what the player's reach of that
        sequence is to be multiplied by: i's reach of the root above.
    """

    frontier: Frontier
    sequences: tuple[np.ndarray, np.ndarray]
    weights: tuple[np.ndarray, np.ndarray]

    def with_one_choice(self, opponent: int, count: int) -> "CutPlace":
        """The same in the game that `max_margin` makes of `count` augmented infosets.

        Two sequences of o at each become one: what comes after them moves up.
        """
        own = self.sequences[opponent]
        moved = np.where(own <= 2 * count, (own + 1) // 2, own - count)
        pair = (self.sequences[0], moved) if opponent else (moved, self.sequences[1])
        return self._replace(sequences=pair)


class CutShape(NamedTuple):
    """A shape of what is beyond a cut.

    Attributes:
      values: of the public states.
      counts: for each player and level, how many of its infosets at the cut are reached
        by sequences there.
    """

    values: Capacity
    counts: tuple[tuple[int, ...], tuple[int, ...]]


class CutShapes:
    """The one shape in which all cuts so far fit."""

    def __init__(self) -> None:
        """None yet."""
        self._known = CutShape(Capacity({}, (0, 0)), ((), ()))
        self._closed = False

    def close(self) -> None:
        """Nothing is learnt after this."""
        self._closed = True

    def learn(
        self, cut: CutPlace, decisions: tuple[Decisions, Decisions]
    ) -> CutShape | None:
        """A shape in which a cut fits; None: it is closed, and does not.

        Args:
          cut: of a game.
          decisions: the game's.
        """
        need = _shape_of(cut, decisions)
        if _joined(self._known, need) != self._known:
            if self._closed:
                return None
            self._known = _joined(self._known, _with_slack(need))
        return self._known


def attach(
    form: SequenceForm, cut: CutPlace, function: FrontierFunction, shape: CutShape
) -> SequenceForm:
    """A game that is cut off, with its values beyond the cut.

    Args:
      form: the game as far as the cut.
      cut: where that is.
      function: says what the public states are worth.
      shape: to pad to.
    """
    spread = [
        tuple(
            np.pad(own, (0, size - len(own)))
            for own, size in zip(both, shape.values.sizes, strict=True)
        )
        for both in (cut.sequences, cut.weights)
    ]
    counts = [
        _level_counts(mine, len(tree.levels))
        for mine, tree in zip(shape.counts, form.arrays, strict=True)
    ]
    return attach_cut(
        form,
        function.lay_out_frontier(cut.frontier, shape.values),
        (spread[0][0], spread[0][1]),
        (spread[1][0], spread[1][1]),
        counts=(counts[0], counts[1]),
    )


def _level_counts(counts: Sequence[int], levels: int) -> list[int]:
    return [*counts[:levels], *[0] * (levels - len(counts))]


def _shape_of(cut: CutPlace, decisions: tuple[Decisions, Decisions]) -> CutShape:
    counts = []
    for sequences, own in zip(cut.sequences, decisions, strict=True):
        owner = own.owner[sequences[sequences > 0]]
        counts.append(tuple(np.bincount(own.levels()[owner]).tolist()))
    return CutShape(capacity_of([cut.frontier.public]), (counts[0], counts[1]))


def _with_slack(need: CutShape) -> CutShape:
    def more(count: int, factor: float = _MORE) -> int:
        return int(np.ceil(factor * count))

    groups = {
        number: (more(count), more(first, _WIDER), more(second, _WIDER))
        for number, (count, first, second) in need.values.groups.items()
    }
    first, second = (more(size) for size in need.values.sizes)
    counts = [tuple(more(count) for count in own) for own in need.counts]
    return CutShape(Capacity(groups, (first, second)), (counts[0], counts[1]))


def _joined(one: CutShape, other: CutShape) -> CutShape:
    """The smallest shape in which all fits that fits either."""
    groups: dict[int, tuple[int, int, int]] = {}
    for number in sorted({*one.values.groups, *other.values.groups}):
        pair = (_group(shape.values.groups, number) for shape in (one, other))
        count, first, second = map(max, zip(*pair, strict=True))
        groups[number] = count, first, second
    sizes = map(max, zip(one.values.sizes, other.values.sizes, strict=True))
    counts = [
        tuple(map(max, itertools.zip_longest(*pair, fillvalue=0)))
        for pair in zip(one.counts, other.counts, strict=True)
    ]
    first, second = sizes
    return CutShape(Capacity(groups, (first, second)), (counts[0], counts[1]))


def _group(
    groups: Mapping[int, tuple[int, int, int]], number: int
) -> tuple[int, int, int]:
    return groups.get(number, (0, 0, 0))
