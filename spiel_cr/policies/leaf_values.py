"""Values of histories at the leaves of a depth-limited lookahead or a lookahead tree.

`HistoryValues` are one fixed number per history, whatever the players' ranges are, or k
numbers among which the opponent chooses by its information. A lookahead with fixed
values is not sound, even with values of an equilibrium: these are correct only if both
players then follow that equilibrium, whatever they played before, and the solver plays
as if neither player could deviate from it (docs/explanation/depth-limits.md has
results).

Histories are given in one of three ways: as numbers of a game tree, as an array of
states of batched rules, or as OpenSpiel's states.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import history_values

# Owner of histories: a game tree or batched rules; None for OpenSpiel's states.
AnyGame: TypeAlias = GameTree | BatchedRules | None
Sees = Literal["states", "histories"]


class HistoryValues(abc.ABC):
    """Values of histories: k numbers each, whatever the players' ranges are.

    A solution above such values has no guarantee in the complete game.

    Attributes:
      k: Number of values from which the opponent of the re-solving player chooses, by
        its information. If it is 1, each history has a fixed value.
    """

    k: int = 1

    @abc.abstractmethod
    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        """Compute values of histories at which the game is cut off.

        Args:
          game: The owner of the histories: a game tree or batched rules. None: they are
            OpenSpiel's states.
          histories: Non-terminal histories. Of a game tree their numbers, int64 [L]
            (`game.histories.actions_to(h)` leads to one); of batched rules an array of
            states, [L, ...]; of OpenSpiel's states an object array [L], which must not
            be changed.
          player: The re-solving player, i; the other one chooses among k > 1 values.

        Returns:
          Player 0's expected utility in the game's units, float64 [L, k], or [L] if k
          is 1.
        """


def leaf_utilities(
    value: HistoryValues, game: AnyGame, histories: np.ndarray, player: int = 0
) -> np.ndarray:
    """Return the values of some histories, float64 [L, k], see `HistoryValues`.

    Raises:
      ValueError: If the values have another shape, or are not finite.
    """
    values = np.asarray(value(game, histories, player), np.float64)
    count = len(histories)
    shapes = [(count, value.k)] + [(count,)] * (value.k == 1)
    if values.shape not in shapes or not np.isfinite(values).all():
        raise ValueError(
            f"leaf: returned an array of shape {values.shape} for {count} histories "
            f"and k={value.k}, or a value that is not finite; return finite numbers"
        )
    return values.reshape(count, value.k)


class TreeLeafValues(HistoryValues):
    """Leaf values that are computed for all histories of a game tree at once."""

    _cache: tuple[GameTree, Sequence[np.ndarray]] | None = None

    @abc.abstractmethod
    def values(self, tree: GameTree) -> Sequence[np.ndarray]:
        """Return the values of all histories for each re-solving player, [N(, k)]."""

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        tree = cast(GameTree, game)
        if self._cache is None or self._cache[0] is not tree:
            self._cache = tree, self.values(tree)
        return self._cache[1][player][histories]


class UniformValue(TreeLeafValues):
    """Exact values if both players act uniformly at random from a history on.

    Available for game trees only, which contain all continuations.
    """

    def values(self, tree: GameTree) -> Sequence[np.ndarray]:
        return [history_values(tree)] * 2


class LeafValue(HistoryValues):
    """Leaf values of a lookahead that a function of the caller computes.

    `ResolvingConfig(depth=2, leaf=LeafValue(function), ...)` calls the function with
    all histories of a layer at once. The function returns one number for each history,
    whatever the players' ranges are, so no lookahead that ends in it is sound
    (docs/explanation/depth-limits.md).

    Attributes:
      sees: Kind of the function's arguments, see `__init__`.

    Example:
      >>> import spiel_cr
      >>> leaf = spiel_cr.LeafValue(lambda states: [0.0 for state in states])
      >>> config = spiel_cr.ResolvingConfig(depth=2, leaf=leaf, iterations=100)
      >>> result = spiel_cr.resolve("kuhn_poker", config)
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
        """Return float64 [L]; see `HistoryValues`."""
        tree = cast(GameTree, game)
        if self.sees == "histories":
            values = self._function(tree, histories)
        else:
            states = [tree.state_at(history) for history in histories.tolist()]
            values = self._function(states)
        return np.asarray(values, np.float64) - payoff_offset(tree.game)
