"""What a strategy does at each infoset, and what that is worth."""

from typing import NamedTuple

import numpy as np

from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses, conversions, met
from spiel_cr.policies.best_responses import reach_of

# For each player float64 [S], action probabilities by logical sequence.
Strategy = tuple[np.ndarray, np.ndarray]


class ActionView(NamedTuple):
    """An action at an infoset.

    Attributes:
      action: OpenSpiel's number.
      name: OpenSpiel's words for it.
      probability: under the strategy.
      value: counterfactual value of taking it here and following the strategy
        afterwards; own perspective, the game's units, weighted by `others_reach`.
    """

    action: int
    name: str
    probability: float
    value: float


class InfosetView(NamedTuple):
    """An infoset under a strategy of both players.

    Attributes:
      player: who acts.
      number: of the infoset among the player's.
      key: information-state string.
      player_reach: probability that the player's own actions lead here.
      others_reach: the same of opponent and chance, summed over the histories.
      value: counterfactual value under the strategy, own perspective, the game's units,
        weighted by `others_reach`.
      best_value: the same where the player plays a best response from here on.
      actions: legal ones.
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
        """What a best response from here on would gain, weighted like the values."""
        return self.best_value - self.value


def view_infosets(
    tree: GameTree, strategy: Strategy
) -> tuple[list[InfosetView], list[InfosetView]]:
    """Return every infoset of both players.

    Args:
      tree: the compiled game.
      strategy: of both players.
    """
    form = tree.sequence_form
    reach = reach_of(form, strategy)
    of_actions, _ = conversions.action_values(tree, strategy)
    views: tuple[list[InfosetView], list[InfosetView]] = ([], [])
    for player, infosets in enumerate(tree.infosets):
        behaviour, other, count = strategy[player], reach[1 - player], len(infosets)
        decisions = infosets.decisions
        others = met.others_reach(tree, player, other)
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
    """Return OpenSpiel's words for each sequence's last action, by sequence - 1."""
    infosets, names = tree.infosets[player], []
    ends = np.cumsum(infosets.decisions.num_actions)[:-1]
    legal = np.split(infosets.actions, ends)
    # Without any infosets there is still one part, of no actions.
    for history, actions in zip(infosets.history, legal, strict=False):
        state = tree.state_at(history)
        names += [state.action_to_string(player, a) for a in actions.tolist()]
    return names
