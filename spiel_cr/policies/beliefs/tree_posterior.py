"""A player's belief over the histories of a game tree.

The opponent's policy is fixed and known. The probability of a history, given the
responder's information, is then proportional to the reach of chance and the opponent.
With perfect recall, the responder's own reach is the same at all histories of an
infoset and cancels.
"""

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions


def check_opponent(
    tree: GameTree, player: int, other_behaviour: np.ndarray
) -> np.ndarray:
    """Return the opponent's strategy, float64 [S'], or raise ValueError.

    Args:
      tree: The game tree.
      player: The responder, 0 or 1.
      other_behaviour: The opponent's action probabilities.
    """
    other = 1 - check_choice(player, "player", (0, 1))
    return conversions.check_behaviour(tree, other, other_behaviour)


def weights(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """Return the reach of each history by chance and the opponent, float64 [N].

    Args:
      tree: The game tree.
      player: The responder.
      other_behaviour: The opponent's action probabilities, float64 [S'].
    """
    decisions = tree.infosets[1 - player].decisions
    reach = conversions.reach_from_behaviour(decisions, other_behaviour)
    histories = tree.histories
    return histories.chance * reach[histories.sequence[1 - player]]


def beliefs(tree: GameTree, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """Return the responder's exact posterior over histories.

    Args:
      tree: The game tree.
      player: The responder.
      other_behaviour: The opponent's action probabilities, float64 [S'].

    Returns:
      At the responder's decisions the probability of the history given its infoset, 0
      elsewhere, float64 [N]. If the opponent's policy cannot lead to an infoset, the
      posterior assumes that the opponent played uniformly before.
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
    """Return the probability of the move into each history, float64 [N].

    It is 1 at the root and after the responder's own moves.

    Args:
      tree: The game tree.
      player: The responder.
      other_behaviour: The opponent's action probabilities, float64 [S'].
    """
    # The responder's own moves count for 1.
    ones = np.ones(tree.infosets[player].decisions.num_sequences)
    both = ordered_pair(player, ones, other_behaviour)
    return np.concatenate([np.ones(1), conversions.move_probabilities(tree, both)])
