"""Beliefs of a re-solving player on a game tree that is cut into layers."""

import numpy as np

from spiel_cr.games.histories import states_at
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of, sums_of
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.layer_subgames import or_ones


def opponent_range(
    tree: GameTree, player: int, infoset: int, other_behaviour: np.ndarray
) -> dict[str, float] | None:
    """Return the probability of each of the opponent's information states.

    Args:
      tree: The game tree.
      player: The player of the infoset, i.
      infoset: The infoset.
      other_behaviour: The opponent's action probabilities, float64 [S of o].

    Returns:
      Probabilities; None if players that do not act have no information states.
    """
    histories = tree.histories
    if histories.observations is None:
        return None
    decides = histories.player == player
    at = np.flatnonzero(decides & (histories.infoset == infoset))
    posterior = tree_posterior.beliefs(tree, player, other_behaviour)
    return distribution_of(_strings(tree, at, 1 - player), posterior[at])


def subgame_beliefs(
    d: Decomposition,
    infoset: int,
    behaviour: np.ndarray,
    opponent_values: np.ndarray | None,
    nash_conv: float | None,
) -> BotBeliefs:
    """Return all beliefs about a subgame but the opponent's range.

    Args:
      d: Layers of the game.
      infoset: Infoset of i in the subgame.
      behaviour: Action probabilities of i, float64 [S of i].
      opponent_values: o's counterfactual values at augmented infosets, float64 [G].
        None: the subgame is the complete game.
      nash_conv: NashConv of the solution, weighted by the reach of chance and i.
    """
    i, histories = d.player, d.tree.histories
    while not d.opens[infoset]:
        infoset = int(d.decisions.owner[d.decisions.parent[infoset]])
    infosets = histories.infoset[d.roots]
    inside = d.player_subgame[infosets] == d.player_subgame[infoset]
    at, augmented = d.roots[inside], d.root_augmented[inside]
    reach = reach_from_behaviour(d.decisions, behaviour)[histories.sequence[i][at]]
    weight = histories.chance[at] * or_ones(reach)
    keys = d.tree.infosets[i].keys
    player_range = distribution_of([keys[k] for k in infosets[inside]], weight)
    values = None
    if opponent_values is not None:
        if nash_conv is not None:
            nash_conv /= float(weight.sum())
        if histories.observations is not None and reach.any():
            total = np.bincount(augmented, weight, len(opponent_values))[augmented]
            each = opponent_values[augmented] / np.where(total > 0, total, 1.0)
            labels = _strings(d.tree, at, 1 - i)
            offset = payoff_offset(d.tree.game)
            numerators = sums_of(labels, weight * (offset - each))
            values = {
                label: numerators[label] / total
                for label, total in sums_of(labels, weight).items()
                if total > 0
            }
    return BotBeliefs(i, None, player_range, values, nash_conv)


def _strings(tree: GameTree, histories: np.ndarray, player: int) -> list[str]:
    """Return a player's information-state strings at histories."""
    strings = [""] * len(histories)
    for index, state in states_at(tree.game, tree.histories, histories):
        strings[index] = state.information_state_string(player)
    return strings
