"""Leaf values from a user's own function of states or histories."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.leaf_values import AnyGame, HistoryValues

Sees = Literal["states", "histories"]


class LeafValue(HistoryValues):
    """What the game is worth where a lookahead ends, by a function of one's own.

    `ResolvingConfig(depth=2, leaf=LeafValue(function), ...)` calls it with all
    histories of a layer at once. It gives one number for each, whatever the players'
    ranges are, so no lookahead that ends in it is sound (docs/leaves.md).

    Attributes:
      sees: what the function is given.
    """

    def __init__(self, function: Callable[..., Any], sees: Sees = "states") -> None:
        """Takes a function.

        Args:
          function: gives player 0's expected utility at L histories, [L] numbers, in
            the game's units. None of the histories is terminal.
          sees: what the function is given. "states": a list [L] of `pyspiel.State`s.
            "histories": the compiled game and the numbers of histories.

        Raises:
          ValueError: no function, or it sees something else.
        """
        if not callable(function):
            raise ValueError(f"function={function!r} cannot be called; give a function")
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
