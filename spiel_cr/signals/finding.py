"""The signal game of any game that has one, and whether to prefer it."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import pyspiel

from spiel_cr.common import atomic, memory
from spiel_cr.common.errors import GameTooLargeError
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

    Signals suit large games, and those that list deals of probability zero, which
    OpenSpiel's tools walk through and may refuse.

    Args:
      game: a loaded game.
      memory_limit: what compiling may take, as for `solve`.
    """
    if not loading.declared(game):
        return Preference(False, "")
    impossible = impossible_outcomes(game.new_initial_state())
    if impossible:
        why = f"OpenSpiel lists {len(impossible):,} deals of probability zero, too"
        return Preference(True, why)
    most = min(_MANY, memory.room_for(memory.parse_limit(memory_limit)))
    histories = memory.estimate_histories(game, room=most)
    said = memory.describe_histories(histories)
    if histories > most:
        why = f"{said}, more than the {most:,} up to which games are compiled"
        return Preference(True, why)
    return Preference(False, f"{said}, and games are compiled up to {most:,}")


def impossible_outcomes(state: pyspiel.State) -> list[int]:
    """Outcomes of chance that are listed with probability zero; [] elsewhere."""
    if not state.is_chance_node():
        return []
    return [action for action, chance in state.chance_outcomes() if not chance > 0]


@contextlib.contextmanager
def naming_signals(game: Game) -> Iterator[None]:
    """While a game is compiled: where it is too large, says that it declares signals.

    Args:
      game: that is compiled.
    """
    try:
        yield
    except GameTooLargeError as error:
        if isinstance(game, CompiledGame) or not loading.declared(game):
            raise
        raise GameTooLargeError(
            f"{error}; or take the form of signals, which this game declares "
            f"(form='signals', --form signals), and a full-width algorithm such as cfr+"
        ) from error


def find_signals(
    game: Game,
    *,
    memory_limit: memory.Limit = None,
    cache: atomic.Path | None = None,
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
