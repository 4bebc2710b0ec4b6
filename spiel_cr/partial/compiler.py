"""Compiles a game that is too large to be compiled whole, down to a frontier."""

import pyspiel

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.partial.tree import PartialTree, no_capacity
from spiel_cr.policies.leaf_values import HistoryValue


def compile_partial(
    game: str | pyspiel.Game,
    max_histories: int,
    leaf: str | HistoryValue,
    *,
    observations: bool = False,
    vectorised: bool = True,
) -> CompiledGame:
    """Compiles at most `max_histories` histories of a game.

    Whole levels are compiled as long as they fit, and of the next one whole infosets,
    those first that chance and uniform play lead to.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
      max_histories: the most histories to compile.
      leaf: what the histories at the frontier are worth, which are terminals of the
        compiled game (`CompiledGame.frontier` tells which): "rollouts" or
        "rollouts(n=4,seed=0)", the mean of random rollouts, or a function, see
        `HistoryValue`, which is given states of the vectorised game or of OpenSpiel.
      observations: also record the observations of the player who does not act.
      vectorised: play by the game's own rules on arrays, if it has them.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, a player forgets something, or
        there is no room for a decision of each player.
    """
    partial = PartialTree.start(
        *(game, max_histories),
        leaf=leaf,
        observations=observations,
        vectorised=vectorised,
    )
    partial.grow()
    tree = partial.compile().tree
    for player, infosets in enumerate(tree.infosets):
        if not (partial.is_whole or len(infosets)):
            raise no_capacity(partial, player)
    return tree
