"""Signal games that somebody declares for a game that OpenSpiel bundles.

Such a game has no method to declare itself. For it there are entry points of the group
`spiel_cr.signals`, named after the game: functions of the loaded game that return its
declaration, which has the fields of `game.SignalGame` but may be of classes that know
nothing of this package, or raise ValueError saying why the game is not of this shape.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import pyspiel

from spiel_cr.common import memory
from spiel_cr.signals import kernel_boards
from spiel_cr.signals.game import (
    Betting,
    HandKernel,
    Hands,
    Kernel,
    SignalGame,
    Terms,
)


def is_declared(game: pyspiel.Game) -> bool:
    """Whether there is a function that declares games of this name."""
    return _declaring(game.get_type().short_name) is not None


def of_bundled(
    game: pyspiel.Game,
    *,
    rounds: int | None = None,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame | None:
    """The game as a signal game, if somebody declares games of its name.

    Args:
      game: a loaded game.
      rounds: only its first rounds, after which hands are compared on all cards to
        come; None: all. If its declaring function takes no rounds, None is returned.
      progress: show on stderr how far hands are compared.
      memory_limit: as for `compile_game`; of the first rounds alone.

    Raises:
      GameTooLargeError: comparing hands takes more memory than the limit.
      ValueError: these parameters make no signal game, or one that is not supported;
        says why.
      InvalidGameError: the declaration's parts do not fit each other.
    """
    name = game.get_type().short_name
    declare = _declaring(name)
    if declare is None:
        return None
    chosen = {} if rounds is None else {"rounds": rounds}
    if rounds is not None and "rounds" not in inspect.signature(declare).parameters:
        return None
    try:
        declared = declare(game, **chosen)
    except ValueError as error:
        raise ValueError(f"{name} as a signal game: {error}") from error
    signal_game = from_declaration(
        game, declared, progress=progress, memory_limit=memory_limit
    )
    signal_game.check()
    return signal_game


@functools.cache
def _declaring(name: str) -> Callable[..., Any] | None:
    """What declares the games of a name."""
    for point in metadata.entry_points(group="spiel_cr.signals", name=name):
        declare: Callable[..., Any] = point.load()
        return declare
    return None


def from_declaration(
    game: pyspiel.Game,
    declared: Any,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> SignalGame:
    """Takes a declaration over.

    Args:
      game: that is declared.
      declared: an object with the fields of a `SignalGame`, all but `game`; its
        kernels have those of `HandKernel`, or rollouts (`kernel_boards.of_rollouts`).
      progress: show on stderr how far hands are compared.
      memory_limit: as for `of_bundled`.
    """
    tree = declared.betting
    betting = Betting(tree.player, tree.parent, tree.action, tree.round)
    first, second = declared.parents
    return SignalGame(
        game=game,
        betting=betting,
        parents=(tuple(first), tuple(second)),
        kernels=_kernels(game, declared.kernels, progress, memory_limit),
        terms=Terms(*declared.terms),
        reader=declared.reader,
    )


def _kernels(
    game: pyspiel.Game,
    declared: Sequence[Any],
    progress: bool,
    memory_limit: memory.Limit,
) -> tuple[Kernel, ...]:
    """All kernels; either all are rollouts or none is."""
    if all(hasattr(kernel, "hands") for kernel in declared):
        return tuple(map(_kernel, declared))
    made = kernel_boards.of_rollouts(
        declared, progress=progress, memory_limit=memory_limit, what=str(game)
    )
    return tuple(made)


def _kernel(declared: Any) -> HandKernel:
    first, second = declared.hands
    hands = Hands(*first), Hands(*second)
    return HandKernel(declared.round, declared.shape, hands, declared.showdown)
