"""Construction of the public-tree game that is declared for an OpenSpiel game.

A game written in Python may have a method `public_tree_declaration`. Games that
OpenSpiel bundles do not have such a method. For them there are entry points of the
group `spiel_cr.public_tree`, named after the game: functions of the loaded game. Both
return batched rules that declare private states, or a declaration, which has the fields
of `game.PublicTreeGame`, but may use classes that do not depend on this package. If the
game cannot be declared, they raise ValueError with the reason.
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
from spiel_cr.games.public_tree.payoff_matrices import BoardHands, HandMatrix
from spiel_cr.games.public_tree.public_nodes import Betting, LeafTerms

# Group of the entry points that declare bundled games, by name.
_GROUP = "spiel_cr.public_tree"
# Seed of the deals on which a declaration is checked.
_SEED = 0


def public_tree_game(
    game: Openable, *, progress: bool | None = None, memory_limit: memory.Limit = None
) -> PublicTreeGame:
    """Build the public-tree game that is declared for an OpenSpiel game.

    A game declares its private states by its batched rules (see
    `declaration.public_tree_rules`). Others are declared by entry points of the group
    `spiel_cr.public_tree`.

    Args:
      game: OpenSpiel game string, game or open game: two players, zero-sum.
      progress: Whether to print the number of deals played so far on stderr, if this
        takes long.
      memory_limit: Largest memory of the game; see `build_tree`.

    Returns:
      The public-tree game.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      GameTooLargeError: If its public tree needs more memory than the limit.
      InvalidGameError: If the declaration contradicts the game. The message says where.
      ValueError: If the game has not two players, is neither zero-sum nor a spot with
        rake, or does not declare private states.
    """
    opened = open_game(game, general_sum=True)
    declared = opened.rules if declares(opened.rules) else _declaration(opened.game)
    if declares(declared):
        return declaration.build(
            opened.game,
            declared,  # type: ignore[arg-type]
            np.random.default_rng(_SEED),
            progress=progress,
            memory_limit=memory_limit,
        )
    if declared is not None:
        form = from_declaration(opened.game, declared)
        form.check()
        return form
    raise ValueError(
        f"{opened.game}: the game does not declare private states; add a method "
        f"`private_state` to its batched rules (docs/how-to/representations.md), or "
        f"build the game tree"
    )


def declared(opened: Opened) -> bool:
    """Return whether a game declares private states, without building anything."""
    return declares(opened.rules) or _declarer(opened.game) is not None


def _declarer(game: pyspiel.Game) -> Callable[[Any], Any] | None:
    """Return the method or entry point that declares a game, if there is one."""
    method = getattr(type(game), "public_tree_declaration", None)
    return method or registered(_GROUP, game.get_type().short_name)


def _declaration(game: pyspiel.Game) -> Any:
    """Return what a game's method or entry point declares; None if it has neither.

    Raises:
      ValueError: If the game cannot be declared with these parameters.
    """
    declare = _declarer(game)
    try:
        return None if declare is None else declare(game)
    except ValueError as error:
        name = game.get_type().short_name
        raise ValueError(f"{name} in public-tree form: {error}") from error


def from_declaration(game: pyspiel.Game, declared: Any) -> PublicTreeGame:
    """Convert a declaration to a public-tree game.

    Args:
      game: The game that is declared.
      declared: Object with the fields of a `PublicTreeGame`, except `game`; its payoff
        matrices have the fields of `HandMatrix`.
    """
    tree = declared.betting
    betting = Betting(tree.player, tree.parent, tree.action, tree.round)
    first, second = declared.parents
    rake = getattr(declared, "rake", None)
    return PublicTreeGame(
        game=game,
        betting=betting,
        parents=(tuple(first), tuple(second)),
        payoff_matrices=tuple(map(_matrix, declared.payoff_matrices)),
        terms=LeafTerms(*declared.terms),
        reader=declared.reader,
        rake=None if rake is None else LeafTerms(*rake),
    )


def _matrix(declared: Any) -> HandMatrix:
    first, second = declared.hands
    hands = BoardHands(*first), BoardHands(*second)
    return HandMatrix(declared.round, declared.shape, hands, declared.showdown)
