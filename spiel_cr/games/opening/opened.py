"""A game is opened once: loaded, checked, and its rules on arrays looked up.

`open_game` is called by public functions, at the door. What lies behind takes an
`Opened`, a compiled game, a signal game or a source of histories, and asks nothing
twice.
"""

import dataclasses
import functools
from typing import Protocol, TypeAlias

import pyspiel

from spiel_cr.games.opening import estimate, vectorised
from spiel_cr.games.opening.loading import load_game
from spiel_cr.games.opening.vectorised import VectorisedGame


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """A game that keeps what two-player zero-sum games promise.

    Attributes:
      game: sequential.
    """

    game: pyspiel.Game

    @functools.cached_property
    def rules(self) -> VectorisedGame | None:
        """The game's rules on arrays, if it has them."""
        return vectorised.of_game(self.game)

    def estimate(self, room: float) -> float:
        """About how many histories there are; see `estimate.estimate_histories`.

        Args:
          room: the estimate ends where the number is clearly more or less than this.
        """
        return estimate.estimate_histories(self.game, room=room)


class HasGame(Protocol):
    """A game in another form: compiled, of signals, open."""

    @property
    def game(self) -> pyspiel.Game:
        """The game, loaded and checked."""


# A game as users give it.
Openable: TypeAlias = str | pyspiel.Game | HasGame


def open_game(game: Openable) -> Opened:
    """Loads and checks a game, unless that is done.

    Args:
      game: OpenSpiel game string, game, or one in another form, which was checked
        when that was made.

    Raises:
      pyspiel.SpielError, ValueError, TypeError: as `load_game`.
    """
    if isinstance(game, Opened):
        return game
    if isinstance(game, str | pyspiel.Game) or not hasattr(game, "game"):
        return Opened(load_game(game))
    return Opened(game.game)
