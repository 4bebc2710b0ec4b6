"""What a player may believe of what it does not see, where the others' policy is known.

P(h | s) is proportional to chance times the others' reach of h (Bayes), over all
histories h that give the player the information s; its own reach cancels.

On OpenSpiel's states: `belief = StatePosterior(game, player, policy)`, then at each of
the player's decisions `belief.update(state)`, of which only what the player knows is
looked at. `belief.states` and `belief.weights` are the histories and their
probabilities, `belief.sample(random)` draws one. All histories are followed where they
are few, else particles of them. On compiled games, of all infosets at once:
`tree_posterior.beliefs(tree, player, behaviour)`.
"""

from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.beliefs.array_belief import ArrayBelief
from spiel_cr.policies.beliefs.particles import Belief, effective_size
from spiel_cr.policies.beliefs.state_posterior import StatePosterior

__all__ = [
    "ArrayBelief",
    "Belief",
    "StatePosterior",
    "effective_size",
    "tree_posterior",
]
