"""Beliefs: probabilities of hidden histories, given a known policy of the opponent.

P(h | s) is proportional to the reach of h by chance and the opponent (Bayes), over all
histories h with the player's information s; the player's own reach cancels.

On OpenSpiel's states: make `belief = StatePosterior(game, player, policy)`, and call
`belief.update(state)` at each decision of the player. Only the player's information is
used. `belief.states` and `belief.weights` are the histories and their probabilities,
and `belief.sample(random)` draws one. All histories are followed if they are few,
otherwise particles. On game trees, for all infosets at once:
`tree_posterior.beliefs(tree, player, behaviour)`.
"""

from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.beliefs.array_belief import ArrayBelief
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs
from spiel_cr.policies.beliefs.particles import Belief, effective_size
from spiel_cr.policies.beliefs.state_posterior import StatePosterior

__all__ = [
    "ArrayBelief",
    "Belief",
    "BotBeliefs",
    "StatePosterior",
    "effective_size",
    "tree_posterior",
]
