"""The signal game of an OpenSpiel game, where somebody has declared it.

A game written in Python may have a method `signal_declaration`. A game that OpenSpiel
bundles has no method to declare itself. For it there are entry points of the group
`spiel_cr.public_tree`, named after the game: functions of the loaded game. Both return
its declaration, which has the fields of `game.PublicTreeGame` but may be of classes
that know nothing of this package, or raise ValueError saying why the game is not of
this shape.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.plugins import registered
from spiel_cr.games.opening.opened import Openable, Opened, open_game
from spiel_cr.games.public_tree.declaration import declaration
from spiel_cr.games.public_tree.declaration.public_tree_rules import declares
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, Hands
from spiel_cr.games.public_tree.public_nodes import Betting, Terms

# Entry points of what declares the games of a name.
_GROUP = "spiel_cr.public_tree"
# Of the deals on which a declaration is checked.
_SEED = 0


def public_tree_game(
    game: Openable, *, progress: bool = False, memory_limit: memory.Limit = None
) -> PublicTreeGame:
    """Builds the signal game that is declared for an OpenSpiel game.

    A game declares its private states by its batched rules (see
    `declaration.public_tree_rules`). Others are declared by entry points of the group
    `spiel_cr.public_tree`.

    Args:
      game: OpenSpiel game string, game or open game: two players, zero-sum.
      progress: show on stderr how many deals were played, where it takes long.
      memory_limit: as for `build_tree`.

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
    bundled = of_bundled(plain)
    if bundled is not None:
        return bundled
    raise ValueError(
        f"{plain}: nobody has declared its signals; give its batched rules a method "
        f"`signal` (docs/how-to/representations.md), or compile the game"
    )


def declared(opened: Opened) -> bool:
    """Whether somebody has declared the signals of a game; builds nothing."""
    if opened.rules is not None and declares(opened.rules):
        return True
    return _declarer(opened.game) is not None


def _declarer(game: pyspiel.Game) -> Callable[[Any], Any] | None:
    """What declares a game as it is: its own method, or the entry point of its name."""
    method = getattr(type(game), "signal_declaration", None)
    return method or registered(_GROUP, game.get_type().short_name)


def of_bundled(game: pyspiel.Game) -> PublicTreeGame | None:
    """The game as a signal game, if it, or an entry point of its name, declares it.

    Raises:
      ValueError: these parameters make no signal game, or one that is not supported;
        says why.
      InvalidGameError: the declaration's parts do not fit each other.
    """
    name = game.get_type().short_name
    declare = _declarer(game)
    if declare is None:
        return None
    try:
        declared = declare(game)
    except ValueError as error:
        raise ValueError(f"{name} as a signal game: {error}") from error
    public_tree_game = from_declaration(game, declared)
    public_tree_game.check()
    return public_tree_game


def from_declaration(game: pyspiel.Game, declared: Any) -> PublicTreeGame:
    """Takes a declaration over.

    Args:
      game: that is declared.
      declared: an object with the fields of a `PublicTreeGame`, all but `game`; its
        matrices have those of `HandMatrix`.
    """
    tree = declared.betting
    betting = Betting(tree.player, tree.parent, tree.action, tree.round)
    first, second = declared.parents
    return PublicTreeGame(
        game=game,
        betting=betting,
        parents=(tuple(first), tuple(second)),
        payoff_matrices=tuple(map(_matrix, declared.payoff_matrices)),
        terms=Terms(*declared.terms),
        reader=declared.reader,
    )


def _matrix(declared: Any) -> HandMatrix:
    first, second = declared.hands
    hands = Hands(*first), Hands(*second)
    return HandMatrix(declared.round, declared.shape, hands, declared.showdown)
