"""Signal games that somebody declares for a game that OpenSpiel bundles.

Such a game has no method to declare itself. For it there are entry points of the group
`spiel_cr.signals`, named after the game: functions of the loaded game that return its
declaration, which has the fields of `game.SignalGame` but may be of classes that know
nothing of this package, or raise ValueError saying why the game is not of this shape.
"""

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pyspiel

from spiel_cr.games.signals.game import Betting, HandKernel, Hands, SignalGame, Terms


def is_declared(game: pyspiel.Game) -> bool:
    """Whether there is a function that declares games of this name."""
    return _declaring(game.get_type().short_name) is not None


def of_bundled(game: pyspiel.Game) -> SignalGame | None:
    """The game as a signal game, if somebody declares games of its name.

    Raises:
      ValueError: these parameters make no signal game, or one that is not supported;
        says why.
      InvalidGameError: the declaration's parts do not fit each other.
    """
    name = game.get_type().short_name
    declare = _declaring(name)
    if declare is None:
        return None
    try:
        declared = declare(game)
    except ValueError as error:
        raise ValueError(f"{name} as a signal game: {error}") from error
    signal_game = from_declaration(game, declared)
    signal_game.check()
    return signal_game


@functools.cache
def _declaring(name: str) -> Callable[[pyspiel.Game], Any] | None:
    """What declares the games of a name."""
    for point in metadata.entry_points(group="spiel_cr.signals", name=name):
        declare: Callable[[pyspiel.Game], Any] = point.load()
        return declare
    return None


def from_declaration(game: pyspiel.Game, declared: Any) -> SignalGame:
    """Takes a declaration over.

    Args:
      game: that is declared.
      declared: an object with the fields of a `SignalGame`, all but `game`; its
        kernels have those of `HandKernel`.
    """
    tree = declared.betting
    betting = Betting(tree.player, tree.parent, tree.action, tree.round)
    first, second = declared.parents
    return SignalGame(
        game=game,
        betting=betting,
        parents=(tuple(first), tuple(second)),
        kernels=tuple(map(_kernel, declared.kernels)),
        terms=Terms(*declared.terms),
        reader=declared.reader,
    )


def _kernel(declared: Any) -> HandKernel:
    first, second = declared.hands
    hands = Hands(*first), Hands(*second)
    return HandKernel(declared.round, declared.shape, hands, declared.showdown)
