"""The signal game of any game that has one, and whether to prefer it."""

from typing import NamedTuple

import pyspiel

from spiel_cr.common import memory, storage
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.signals import loading
from spiel_cr.signals.detecting import detection
from spiel_cr.signals.game import SignalGame

FORMS = ("auto", "compiled", "signals")

# With more histories than these, games that declare their signals are not compiled.
_MANY = 1_000_000


class Preference(NamedTuple):
    """Which form suits a game.

    Attributes:
      signals: whether it is that of signals; else the compiled game.
      why: half a sentence; empty where there was no choice.
    """

    signals: bool
    why: str


def prefer(game: pyspiel.Game, memory_limit: memory.Limit = None) -> Preference:
    """Chooses a form; nothing is built. Takes up to a second where there is a choice.

    Args:
      game: a loaded game.
      memory_limit: what compiling may take, as for `solve`.
    """
    if not loading.declared(game):
        return Preference(False, "")
    most = min(_MANY, memory.room_for(memory.parse_limit(memory_limit)))
    histories = memory.estimate_histories(game, room=most)
    said = memory.describe_histories(histories)
    return Preference(histories > most, f"{said}, and compiled would be up to {most:,}")


def find_signals(
    game: Game,
    *,
    memory_limit: memory.Limit = None,
    cache: storage.Path | None = None,
    progress: bool = False,
) -> SignalGame:
    """The signal game that a game declares; of others as it is found in the tree.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      memory_limit: as for `solve`, and so are all others.

    Raises:
      GameTooLargeError: it takes more memory than the limit.
      ValueError: the game has no signals, as where actions are not public; says why.
    """
    if not isinstance(game, CompiledGame):
        if loading.declared(game):
            return loading.signal_game(
                game, progress=progress, memory_limit=memory_limit
            )
        game = as_compiled(
            game, memory_limit=memory_limit, cache=cache, progress=progress
        )
    return detection.detect(game)
