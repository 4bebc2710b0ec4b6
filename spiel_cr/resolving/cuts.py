"""Where each of a layer's subgames is cut off at public states.

A forest (`gadget.py`) is cut off as a whole. A player in a match solves one subgame of
it, with the values of that subgame's own states, in arrays that are equal in shape for
all subgames of the layer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import Groups
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.gadget import CutPlace, attach_cut
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.values import RangeValues, ValueFunction


class Alike(NamedTuple):
    """Values of one of several sets of public states.

    Attributes:
      below: the values; of all selections in equal shapes.
      places: by player int [J0], int [J1], where the ranges of the selection's infosets
        stand among those of `below`.
      sizes: how many ranges `below` takes of either player.
    """

    below: RangeValues
    places: tuple[np.ndarray, np.ndarray]
    sizes: tuple[int, int]

    def spread(
        self, arrays: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Something for each of its infosets, as long as `sizes`; elsewhere 0."""
        spread = []
        for array, place, size in zip(arrays, self.places, self.sizes, strict=True):
            spread.append(np.zeros(size, array.dtype))
            spread[-1][place] = array
        return spread[0], spread[1]


class SubgameCut(NamedTuple):
    """Where one subgame is cut off, in logical numbers of its own.

    Attributes:
      values: of the public states there.
      sequences: for i and for o, int32 [J], the sequence by which each of the states'
        infosets is reached.
      root: int32 [J of i], index into `Subgame.roots` of the one above each.
    """

    values: Alike
    sequences: tuple[np.ndarray, np.ndarray]
    root: np.ndarray


class LayerCut:
    """Where the subgames of a layer are cut off, as a forest has it.

    Attributes:
      sequences: for i and for o, int32 [J], sequences of the forest, by which the
        states' infosets are reached.
      groups: for i and for o, which of these belong to which subgame.
      counts: by player, for each level, the most sequences of any subgame that are cut
        off.
    """

    def __init__(
        self,
        cut: CutPlace,
        player: int,
        numbers: Sequence[int],
        sequences: tuple[np.ndarray, np.ndarray],
        labels: tuple[np.ndarray, np.ndarray],
        decisions: tuple[Decisions, Decisions],
    ) -> None:
        """Lays out the values of each subgame's states.

        Args:
          cut: of the forest.
          player: i.
          numbers: of the subgames.
          sequences: see there.
          labels: for i and for o, int32 [J], the subgame of each.
          decisions: for i and for o, those of the forest.
        """
        self._player = player
        self.sequences = sequences
        self.groups = Groups(labels[0]), Groups(labels[1])
        states = cut.states
        subgame = np.zeros(len(states), np.int64)
        subgame[states.state[player]] = labels[0]
        selections = [states.select(states.numbers[subgame == n]) for n in numbers]
        alike = lay_out_alike(cut.function, cut.tree, states, selections)
        self._values = dict(zip(numbers, alike, strict=True))
        most = [
            _most_by_level(*fragments)
            for fragments in zip(sequences, labels, decisions, strict=True)
        ]
        self.counts = (most[0], most[1]) if player == 0 else (most[1], most[0])

    def of(
        self,
        number: int,
        sequences: tuple[np.ndarray, np.ndarray],
        root: np.ndarray,
    ) -> SubgameCut:
        """One subgame's; what comes is in its own numbers, see `SubgameCut`."""
        return SubgameCut(self._values[number], sequences, root)

    def attach(
        self, form: SequenceForm, cut: SubgameCut, own: np.ndarray
    ) -> SequenceForm:
        """A subgame's game with its values beyond the cut.

        Args:
          form: the game as far as the cut.
          cut: where that is.
          own: float64 [J of i], what i's reach there is to be multiplied by.
        """
        sequences = cut.sequences
        weights = own, np.ones(len(sequences[1]))
        if self._player == 1:
            sequences, weights = sequences[::-1], weights[::-1]
        return attach_cut(
            form,
            cut.values.below,
            cut.values.spread(sequences),
            cut.values.spread(weights),
            counts=self.counts,
        )


def _most_by_level(
    sequences: np.ndarray, labels: np.ndarray, decisions: Decisions
) -> list[int]:
    """For each level of a player, the most of some sequences with one label."""
    owner, levels = decisions.owner[sequences], decisions.levels()
    counts = []
    for level in range(int(levels.max(initial=-1)) + 1):
        mine = np.append(levels, -1)[owner] == level
        counts.append(int(np.bincount(labels[mine]).max(initial=0)))
    return counts


def lay_out_alike(
    function: ValueFunction,
    tree: CompiledGame,
    states: PublicStates,
    selections: Sequence[PublicStates],
) -> list[Alike]:
    """Values of several sets of public states, in arrays of equal shapes.

    A function that cannot pad lays all states out once. Every selection then has the
    values of all, at ranges of zero but for its own: an iteration takes longer.

    Args:
      function: the values.
      tree: the compiled game.
      states: the states of all selections.
      selections: selected from these, each state in at most one.
    """
    padded = function.lay_out_alike(tree, states, selections)
    if padded is not None:
        first, second = (
            max((len(selection.infosets[p]) for selection in selections), default=0)
            for p in range(2)
        )
        return [
            Alike(below, _own_places(selection), (first, second))
            for below, selection in zip(padded, selections, strict=True)
        ]
    below = function.lay_out(tree, states)
    sizes = len(states.infosets[0]), len(states.infosets[1])
    return [
        Alike(below, places_in(states, selection), sizes) for selection in selections
    ]


def places_in(
    states: PublicStates, selection: PublicStates
) -> tuple[np.ndarray, np.ndarray]:
    """By player int64 [J0], int64 [J1], where the infosets of some states stand.

    Args:
      states: the states.
      selection: selected from these.
    """
    kept = np.searchsorted(states.numbers, selection.numbers)
    first, second = (np.flatnonzero(np.isin(state, kept)) for state in states.state)
    return first, second


def _own_places(selection: PublicStates) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(selection.infosets[0])), np.arange(len(selection.infosets[1]))
