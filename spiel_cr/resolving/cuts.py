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
from spiel_cr.resolving.gadget import CutPlace, attach_cut
from spiel_cr.resolving.leaves.alike import Alike, lay_out_alike


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
