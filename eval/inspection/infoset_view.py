"""Last stage: what a strategy does at each infoset, and what that is worth."""

from typing import NamedTuple

import numpy as np

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import variance
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of


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
      own_reach: probability that the player's own actions lead here.
      others_reach: the same of opponent and chance, summed over the histories.
      value: counterfactual value under the strategy, own perspective, the game's units,
        weighted by `others_reach`.
      best_value: the same where the player plays a best response from here on.
      actions: legal ones.
    """

    player: int
    number: int
    key: str
    own_reach: float
    others_reach: float
    value: float
    best_value: float
    actions: tuple[ActionView, ...]

    @property
    def gain(self) -> float:
        """What a best response from here on would gain, weighted like the values."""
        return self.best_value - self.value


def look(
    tree: CompiledGame, strategy: tuple[np.ndarray, np.ndarray]
) -> tuple[list[InfosetView], list[InfosetView]]:
    """Every infoset of both players.

    Args:
      tree: the compiled game.
      strategy: for each player float64 [S], action probabilities by logical sequence.
    """
    form = tree.form
    reach = reach_of(form, strategy)
    of_actions, _ = variance.action_values(tree, strategy)
    views: list[list[InfosetView]] = []
    for player, infosets in enumerate(tree.infosets):
        own, other = strategy[player], reach[1 - player]
        values = best_responses.infoset_values(form, player, other, own)
        best = best_responses.infoset_values(form, player, other)
        others = _others_reach(tree, player, other)
        names = action_names(tree, player)
        decisions = infosets.decisions
        first, counts = decisions.first_sequence, decisions.num_actions
        mine = []
        for number, key in enumerate(infosets.keys):
            rows = range(first[number], first[number] + counts[number])
            actions = tuple(
                ActionView(
                    int(infosets.actions[s - 1]),
                    names[s - 1],
                    float(own[s]),
                    float(of_actions[player][s]),
                )
                for s in rows
            )
            mine.append(
                InfosetView(
                    player,
                    number,
                    key,
                    float(reach[player][decisions.parent[number]]),
                    float(others[number]),
                    float(values[number]),
                    float(best[number]),
                    actions,
                )
            )
        views.append(mine)
    return views[0], views[1]


def action_names(tree: CompiledGame, player: int) -> list[str]:
    """OpenSpiel's words for each sequence's last action, by sequence - 1."""
    infosets, names = tree.infosets[player], []
    first, counts = infosets.decisions.first_sequence, infosets.decisions.num_actions
    for number, history in enumerate(infosets.history):
        state = tree.state_at(history)
        begin = first[number] - 1
        for action in infosets.actions[begin : begin + counts[number]]:
            names.append(state.action_to_string(player, int(action)))
    return names


def _others_reach(tree: CompiledGame, player: int, other: np.ndarray) -> np.ndarray:
    """float64 [I], reach of opponent and chance."""
    histories = tree.histories
    mine = np.flatnonzero(histories.player == player)
    weight = histories.chance[mine] * other[histories.sequence[1 - player][mine]]
    count = len(tree.infosets[player])
    return np.bincount(histories.infoset[mine], weight, minlength=count)
