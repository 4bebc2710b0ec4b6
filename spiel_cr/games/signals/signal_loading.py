"""The signal game of an OpenSpiel game, where somebody has declared it."""

import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.signals import bundled
from spiel_cr.games.signals.declaring import declaration
from spiel_cr.games.signals.declaring.signal_rules import declares
from spiel_cr.games.signals.game import SignalGame

# Of the deals on which a declaration is checked.
_SEED = 0


def signal_game(
    game: Openable,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame:
    """Builds the signal game that is declared for an OpenSpiel game.

    A game declares its signals by its vectorised rules (see `declaring.rules`). Others
    are declared by entry points of the group `spiel_cr.signals` (see `bundled`).

    Args:
      game: OpenSpiel game string, game or open game: two players, zero-sum.
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
    opened = open_game(game)
    plain, rules = opened.game, opened.rules
    if rules is not None and declares(rules):
        return declaration.build(
            plain,
            rules,  # type: ignore[arg-type]
            np.random.default_rng(_SEED),
            progress=progress,
            memory_limit=memory_limit,
        )
    found = bundled.of_bundled(plain)
    if found is not None:
        return found
    raise ValueError(
        f"{plain}: nobody has declared its signals; give its vectorised game a method "
        f"`signal` (docs/signals.md), or compile the game"
    )


def declared(game: Openable) -> bool:
    """Whether somebody has declared the signals of a game; builds nothing.

    Where a game cannot be loaded, it raises what `signal_game` raises.
    """
    opened = open_game(game)
    if opened.rules is not None and declares(opened.rules):
        return True
    return bundled.is_declared(opened.game)
