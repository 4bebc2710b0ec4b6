"""The signal game of an OpenSpiel game, where somebody has declared it."""

import functools
from collections.abc import Callable
from importlib import metadata

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.compilation import vectorised
from spiel_cr.compilation.loading import load_game
from spiel_cr.signals import declaration
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.rules import declares

_GROUP = "spiel_cr.signals"
# Of the deals on which a declaration is checked.
_SEED = 0


def signal_game(
    game: str | pyspiel.Game,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame:
    """Builds the signal game that is declared for an OpenSpiel game.

    A game declares its signals by its vectorised rules (see `signals.rules`). Others
    are declared by entry points of the group `spiel_cr.signals`, named after the game:
    functions of the loaded game that return a SignalGame.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum.
      progress: say on stderr what is done where it takes long.
      memory_limit: as for `compile_game`.

    Returns:
      The signal game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: its public tree takes more memory than the limit.
      InvalidGameError: the declaration is not true; says where.
      ValueError: the game is not two-player zero-sum, or nobody has declared its
        signals.
    """
    game = load_game(game)
    rules = vectorised.of_game(game)
    if rules is not None and declares(rules):
        return declaration.build(
            game,
            rules,  # type: ignore[arg-type]
            np.random.default_rng(_SEED),
            memory_limit=memory_limit,
        )
    bundled = _bundled(game.get_type().short_name)
    if bundled is not None:
        return bundled(game)
    raise ValueError(
        f"{game}: nobody has declared its signals; give its vectorised game a method "
        f"`signal` (docs/signals.md), or compile the game"
    )


def declared(game: str | pyspiel.Game) -> bool:
    """Whether somebody has declared the signals of a game; builds nothing.

    Raises:
      As `signal_game`, where a game cannot be loaded.
    """
    game = load_game(game)
    rules = vectorised.of_game(game)
    if rules is not None and declares(rules):
        return True
    return _bundled(game.get_type().short_name) is not None


@functools.cache
def _bundled(name: str) -> Callable[..., SignalGame] | None:
    """What makes the signal game of a bundled game, if somebody wrote it."""
    for point in metadata.entry_points(group=_GROUP, name=name):
        make: Callable[..., SignalGame] = point.load()
        return make
    return None
