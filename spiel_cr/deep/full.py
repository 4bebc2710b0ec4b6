"""Advantages of a whole compiled game, without sampling."""

from collections.abc import Sequence

import numpy as np

from spiel_cr.deep.infosets import CompiledKnowledge
from spiel_cr.deep.memory import Targets
from spiel_cr.policies.conversions import history_values, reach_from_behaviour


def advantages(
    knowledge: CompiledKnowledge, behaviour: Sequence[np.ndarray], player: int
) -> Targets:
    """Every decision of a player as a visit, weighed by the reach of everybody else.

    Args:
      knowledge: of the compiled game.
      behaviour: for each player float64 [S], action probabilities by logical sequence.
      player: whose advantages; own perspective, the game's units.
    """
    tree = knowledge.tree
    histories = tree.histories
    value = history_values(tree, behaviour) * (1 - 2 * player)
    mine = np.flatnonzero(histories.player == player)
    place = np.full(len(histories), -1, np.int64)
    place[mine] = np.arange(len(mine))
    below = 1 + np.flatnonzero(place[histories.parent[1:]] >= 0)
    above = histories.parent[below]
    target = np.zeros((len(mine), knowledge.num_actions))
    target[place[above], histories.action[below]] = value[below] - value[above]
    other = 1 - player
    reach = reach_from_behaviour(tree.infosets[other].decisions, behaviour[other])
    weight = histories.chance[mine] * reach[histories.sequence[other][mine]]
    rows = histories.infoset[mine].astype(np.int64)
    # Many means would lose digits in single precision: these are exact.
    return Targets(rows, knowledge.legal[player][rows], target, weight)
