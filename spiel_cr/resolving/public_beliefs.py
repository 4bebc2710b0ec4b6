"""Beliefs of a re-solving player on a public tree."""

import numpy as np

from spiel_cr.abstraction.outcomes import deal_weights
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of
from spiel_cr.resolving.layer_subgames import or_ones
from spiel_cr.resolving.public_decomposition import PublicDecomposition


def public_beliefs(
    d: PublicDecomposition,
    node: int,
    private_state: int,
    reach: np.ndarray,
    other_reach: np.ndarray,
    opponent_values: np.ndarray | None,
    nash_conv: float,
) -> BotBeliefs:
    """Return the beliefs of i about a subgame: a public node and a board.

    Args:
      d: Layers of the game.
      node: The public node, at which i acts.
      private_state: Private state of i.
      reach: i's reach of the node by its private state, float64 [H of i].
      other_reach: o's reach by its private state, float64 [H of o].
      opponent_values: o's counterfactual values by private state, float64 [H of o].
        None: the subgame is the complete game.
      nash_conv: NashConv of the solution, weighted by the reach of chance and i.
    """
    game, i, o = d.game, d.player, 1 - d.player
    round_ = int(game.betting.round[node])
    labels = d.boards[round_]
    held = np.arange(len(reach)) == private_state
    own, other = (np.flatnonzero(labels[p] == labels[i][held]) for p in (i, o))
    names, other_names = (
        [game.reader.name(p, round_, k) for k in states.tolist()]
        for p, states in ((i, own), (o, other))
    )
    likely = deal_weights(game, o, round_, held.astype(float))[other]
    if (likely * other_reach[other]).any():
        likely = likely * other_reach[other]
    everything = np.ones(len(other_reach))
    dealt = deal_weights(game, i, round_, everything)[own]
    weight, values = dealt * or_ones(reach[own]), None
    if opponent_values is not None:
        nash_conv /= float(weight.sum())
        divisor = deal_weights(game, o, round_, reach)[other]
        reached, offset = divisor > 0, payoff_offset(game.game)
        if reached.any():
            numbers = offset - opponent_values[other][reached] / divisor[reached]
            reached_names = np.array(other_names)[reached].tolist()
            values = dict(zip(reached_names, numbers.tolist(), strict=True))
    return BotBeliefs(
        i,
        distribution_of(other_names, likely),
        distribution_of(names, weight),
        values,
        nash_conv,
    )
