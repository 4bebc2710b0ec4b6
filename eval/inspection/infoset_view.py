"""Probabilities and values of a strategy at each infoset."""

from typing import NamedTuple

import numpy as np

from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses, conversions, infoset_reach
from spiel_cr.policies.best_responses import reach_of

# For each player float64 [S], action probabilities by sequence.
Strategy = tuple[np.ndarray, np.ndarray]


class ActionView(NamedTuple):
    """An action at an infoset.

    Attributes:
      action: OpenSpiel's number of the action.
      name: OpenSpiel's name of the action.
      probability: Probability under the strategy.
      value: Counterfactual value of the action, with the strategy afterwards, in the
        player's utility, weighted by `others_reach`.
    """

    action: int
    name: str
    probability: float
    value: float


class InfosetView(NamedTuple):
    """An infoset under a strategy of both players.

    Attributes:
      player: Player that acts.
      number: Number of the infoset among the player's infosets.
      key: Information-state string.
      player_reach: Probability that the player's actions lead to the infoset.
      others_reach: Probability that the actions of opponent and chance lead there,
        summed over its histories.
      value: Counterfactual value under the strategy, in the player's utility, weighted
        by `others_reach`.
      best_value: Counterfactual value if the player plays a best response from here on.
      actions: Legal actions.
    """

    player: int
    number: int
    key: str
    player_reach: float
    others_reach: float
    value: float
    best_value: float
    actions: tuple[ActionView, ...]

    @property
    def gain(self) -> float:
        """The gain of a best response from here on, weighted like the values."""
        return self.best_value - self.value


def view_infosets(
    tree: GameTree, strategy: Strategy
) -> tuple[list[InfosetView], list[InfosetView]]:
    """Return views of all infosets of both players.

    Args:
      tree: Game tree.
      strategy: Strategy of both players.
    """
    form = tree.sequence_form
    reach = reach_of(form, strategy)
    of_actions, _ = conversions.action_values(tree, strategy)
    views: tuple[list[InfosetView], list[InfosetView]] = ([], [])
    for player, infosets in enumerate(tree.infosets):
        behaviour, other, count = strategy[player], reach[1 - player], len(infosets)
        decisions = infosets.decisions
        others = infoset_reach.others_reach(tree, player, other)
        # Payoffs of a constant-sum game in its own units, weighted alike.
        constant = payoff_offset(tree.game) * others
        values, best_values = (
            best_responses.infoset_values(form, player, other, *each)[:count] + constant
            for each in ((behaviour,), ())
        )
        sequences = zip(
            infosets.actions.tolist(),
            action_names(tree, player),
            behaviour[1:].tolist(),
            (of_actions[player][1:] + constant[decisions.owner[1:]]).tolist(),
            strict=True,
        )
        # Sequences are numbered infoset by infoset.
        actions = [ActionView(*sequence) for sequence in sequences]
        ends = np.cumsum(decisions.num_actions).tolist()
        columns = zip(
            infosets.keys,
            reach[player][decisions.parent].tolist(),
            others.tolist(),
            values.tolist(),
            best_values.tolist(),
            (tuple(actions[a:b]) for a, b in zip([0, *ends], ends, strict=False)),
            strict=True,
        )
        for number, column in enumerate(columns):
            views[player].append(InfosetView(player, number, *column))
    return views


def action_names(tree: GameTree, player: int) -> list[str]:
    """Return OpenSpiel's name of each sequence's last action, by sequence - 1."""
    infosets, names = tree.infosets[player], []
    ends = np.cumsum(infosets.decisions.num_actions)[:-1]
    legal = np.split(infosets.actions, ends)
    # Without any infosets there is one part without actions.
    for history, actions in zip(infosets.history, legal, strict=False):
        state = tree.state_at(history)
        names += [state.action_to_string(player, a) for a in actions.tolist()]
    return names
