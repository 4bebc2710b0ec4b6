"""Values of several sets of public states in arrays of equal shapes.

A player in a match solves one subgame at a time, and all subgames of a layer share one
program. So the values at their cuts must have equal shapes, too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
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
