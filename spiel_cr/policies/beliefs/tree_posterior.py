"""What a player believes, on a compiled game.

The opponent's policy is fixed and known. Then the probability of a history given what
the responder knows is chance times the opponent's reach, normalised: the responder's
own reach is the same at all histories of its infoset and cancels (perfect recall).
"""

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions


def check_opponent(
    tree: GameTree, player: int, other_behaviour: np.ndarray
) -> np.ndarray:
    """Returns the opponent's strategy, float64 [S'], or raises ValueError.

    Args:
      tree: the compiled game.
      player: the responder, 0 or 1.
      other_behaviour: the opponent's action probabilities.
    """
    other = 1 - check_choice(player, "player", (0, 1))
    return conversions.check_behaviour(tree, other, other_behaviour)


def weights(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """float64 [N], chance times the opponent's reach of each history.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.
    """
    decisions = tree.infosets[1 - player].decisions
    reach = conversions.reach_from_behaviour(decisions, other_behaviour)
    histories = tree.histories
    return histories.chance * reach[histories.sequence[1 - player]]


def reached(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """bool [I], the responder's infosets that chance and the opponent can lead to."""
    decides = np.flatnonzero(tree.histories.player == player)
    total = np.bincount(
        tree.histories.infoset[decides],
        weights=weights(tree, player, other_behaviour)[decides],
        minlength=len(tree.infosets[player]),
    )
    return total > 0


def beliefs(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """The responder's exact posterior over histories.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.

    Returns:
      float64 [N], at the responder's decisions the probability of the history given its
      infoset, 0 elsewhere. Where the opponent's policy never leads to an infoset, it is
      taken to have played uniformly before.
    """
    histories = tree.histories
    decides = np.flatnonzero(histories.player == player)
    infoset = histories.infoset[decides]
    count = len(tree.infosets[player])
    uniform = conversions.uniform_behaviour(tree.infosets[1 - player].decisions)
    result = np.zeros(len(histories))
    sources = [weights(tree, player, b) for b in (other_behaviour, uniform)]
    for source in sources:
        weight = source[decides]
        total = np.bincount(infoset, weights=weight, minlength=count)
        done = np.bincount(infoset, weights=result[decides], minlength=count) > 0
        new = (total[infoset] > 0) & ~done[infoset]
        result[decides[new]] = weight[new] / total[infoset[new]]
    return result


def transitions(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """float64 [N], the probability of the move into each history where the opponent or
    chance made it; 1 where the responder did, and at the root.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.
    """
    # The responder's own moves count for 1.
    ones = np.ones(tree.infosets[player].decisions.num_sequences)
    both = (ones, other_behaviour) if player == 0 else (other_behaviour, ones)
    return np.concatenate([np.ones(1), conversions.move_probabilities(tree, both)])
