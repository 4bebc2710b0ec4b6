"""A game too large to be compiled whole, compiled down to a frontier."""

import pyspiel

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.partial.simulator import EdgeValue
from spiel_cr.partial.tree import PartialTree


def compile_partial(
    game: str | pyspiel.Game,
    max_histories: int,
    edge: str | EdgeValue,
    *,
    observations: bool = False,
    vectorised: bool = True,
) -> CompiledGame:
    """Compiles as much of a game as there is room for.

    Whole levels are compiled as long as they fit, and of the next one whole infosets,
    those first that chance and uniform play lead to.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
      max_histories: the most histories to compile.
      edge: what the other histories at the frontier are worth, which are terminals of
        the compiled game: "rollout", "rollout(n=4,seed=0)" (the mean of random
        rollouts), or what a function says, from an array of states (`pyspiel.State`s,
        or those of the game's vectorised rules) to float64 [n], player 0's utilities.
        `CompiledGame.frontier` tells which ones.
      observations: also record what the player who does not act is told.
      vectorised: play by the game's own rules on arrays, if it has them.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, a player forgets something, or
        there is no room for a decision of each player.
    """
    part = PartialTree(
        game, max_histories, edge=edge, observations=observations, vectorised=vectorised
    )
    part.grow()
    if len(part) == 1 and not part.is_whole:
        raise ValueError(
            f"max_histories={max_histories} has no room for the first moves of "
            f"{part.game}; raise it"
        )
    tree = part.compile().tree
    for player, infosets in enumerate(tree.infosets):
        if tree.frontier is not None and not len(infosets):
            raise ValueError(
                f"max_histories={max_histories} has no room for a decision of player "
                f"{player} in {part.game}; raise it"
            )
    return tree
