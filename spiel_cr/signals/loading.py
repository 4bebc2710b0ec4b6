"""The signal game of an OpenSpiel game, where somebody has declared it."""

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.checks import check_whole
from spiel_cr.compilation import vectorised
from spiel_cr.compilation.loading import load_game
from spiel_cr.signals import bundled
from spiel_cr.signals.declaring import declaration
from spiel_cr.signals.declaring.rules import declares
from spiel_cr.signals.game import SignalGame

# Of the deals on which a declaration is checked.
_SEED = 0


def signal_game(
    game: str | pyspiel.Game,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame:
    """Builds the signal game that is declared for an OpenSpiel game.

    A game declares its signals by its vectorised rules (see `declaring.rules`). Others
    are declared by entry points of the group `spiel_cr.signals` (see `bundled`).

    Args:
      game: OpenSpiel game string or game: two players, zero-sum.
      progress: show on stderr how many deals were played, where it takes long.
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
            progress=progress,
            memory_limit=memory_limit,
        )
    found = bundled.of_bundled(game)
    if found is not None:
        return found
    raise ValueError(
        f"{game}: nobody has declared its signals; give its vectorised game a method "
        f"`signal` (docs/signals.md), or compile the game"
    )


def declared_rounds(
    game: str | pyspiel.Game,
    rounds: int,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame | None:
    """The first rounds of a game alone, where somebody has declared these.

    Args:
      game: OpenSpiel game string or game.
      rounds: how many, at least 1.
      progress: show on stderr how far hands are compared.
      memory_limit: as for `compile_game`.

    Returns:
      The game that ends after these rounds, where hands are compared on all cards to
      come; None: nobody has declared it.

    Raises:
      As `bundled.of_bundled`.
    """
    check_whole(rounds, "rounds", 1)
    return bundled.of_bundled(
        load_game(game), rounds=rounds, progress=progress, memory_limit=memory_limit
    )


def declared(game: str | pyspiel.Game) -> bool:
    """Whether somebody has declared the signals of a game; builds nothing.

    Where a game cannot be loaded, it raises what `signal_game` raises.
    """
    game = load_game(game)
    rules = vectorised.of_game(game)
    if rules is not None and declares(rules):
        return True
    return bundled.is_declared(game)
