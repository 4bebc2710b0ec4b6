"""What histories are worth at which a lookahead or a lookahead tree ends.

`HistoryValues` give one fixed number for each history, whatever the players' ranges, or
k among which the opponent chooses by what it knows. A lookahead that ends in fixed ones
is not sound, not even with the values of an equilibrium: those are right only if both
go on to play that equilibrium, whatever was played before, and the solver then plays as
if nobody could do anything else (docs/partial.md has figures).

Histories come in any of the three forms in which a game can be held: as numbers of a
compiled game, as the array of states of batched rules, or as OpenSpiel's states.
"""

import abc
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_choice
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import history_values

AnyGame: TypeAlias = GameTree | BatchedRules | pyspiel.Game
Sees = Literal["states", "histories"]


class HistoryValues(abc.ABC):
    """What histories are worth: k numbers each, whatever the players' ranges are.

    A solution above such values has no guarantee in the whole game.

    Attributes:
      k: among how many numbers the opponent of the resolving player chooses, by what it
        knows; 1: each history has a fixed one.
    """

    k: int = 1

    @abc.abstractmethod
    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        """Values histories at which the game is cut off.

        Args:
          game: says in which form the histories are given: the compiled game, the
            batched rules, or OpenSpiel's game.
          histories: none of them terminal. Of a compiled game their numbers, int64 [L]
            (`game.histories.actions_to(h)` leads to one); of batched rules its
            array of states, [L, ...]; of OpenSpiel's game an object array [L] of its
            states, which must not be changed.
          player: i, the resolving player; of k > 1 numbers the other one chooses.

        Returns:
          float64 [L, k], or [L] where k is 1, player 0's expected utility, in the
          game's units.
        """


def leaf_utilities(
    value: HistoryValues, game: AnyGame, histories: np.ndarray, player: int = 0
) -> np.ndarray:
    """float64 [L, k], what a leaf value says of some histories, see `HistoryValues`.

    Raises:
      ValueError: what it says has another shape, or is no finite numbers.
    """
    values = np.asarray(value(game, histories, player), np.float64)
    count = len(histories)
    shapes = [(count, value.k)] + [(count,)] * (value.k == 1)
    if values.shape not in shapes or not np.isfinite(values).all():
        raise ValueError(
            f"the leaf value gave an array of shape {values.shape} for {count} "
            f"histories and k={value.k}, or something that is no finite number"
        )
    return values.reshape(count, value.k)


class UniformValue(HistoryValues):
    """Exact values when both players play all actions alike from there on.

    Only for compiled games, which alone hold all that can follow.
    """

    def __init__(self) -> None:
        """Knows no game yet."""
        self._cache: tuple[GameTree, np.ndarray] | None = None

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        assert isinstance(game, GameTree)
        if self._cache is None or self._cache[0] is not game:
            self._cache = game, history_values(game, None)
        return self._cache[1][histories]


class LeafValue(HistoryValues):
    """Values at the end of a lookahead by a function of the caller.

    `ResolvingConfig(depth=2, leaf=LeafValue(function), ...)` calls the function with
    all histories of a layer at once. The function returns one number for each history,
    whatever the players' ranges are, so no lookahead that ends in it is sound
    (docs/leaves.md).

    Attributes:
      sees: Kind of the function's arguments, see `__init__`.
    """

    def __init__(self, function: Callable[..., Any], sees: Sees = "states") -> None:
        """Wrap a function.

        Args:
          function: Function that returns player 0's expected utility at L histories,
            [L] numbers, in the game's units. No history is terminal.
          sees: Kind of the function's arguments. "states": a list [L] of
            `pyspiel.State`. "histories": the game tree and the numbers of histories.

        Raises:
          ValueError: If `function` is not callable, or `sees` is unknown.
        """
        if not callable(function):
            raise ValueError(f"function={function!r} must be callable; give a function")
        self._function = function
        self.sees: Sees = check_choice(sees, "sees", get_args(Sees))

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", type(self._function).__name__)
        return f"LeafValue({name}, sees={self.sees!r})"

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        """float64 [L]; see `HistoryValues`."""
        if self.sees == "histories":
            return np.asarray(self._function(game, histories), np.float64)
        assert isinstance(game, GameTree)
        states = [game.state_at(history) for history in histories.tolist()]
        return np.asarray(self._function(states), np.float64)
