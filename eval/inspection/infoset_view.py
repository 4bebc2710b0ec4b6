"""Probabilities and values of a strategy at each infoset, and names of infosets."""

from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses, conversions, infoset_reach
from spiel_cr.policies.best_responses import reach_of

from ..table import families

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


def in_words(tree: GameTree, view: InfosetView) -> tuple[str, list[str]]:
    """Return the name of an infoset, see `name_of`, and the names of its actions."""
    state = tree.state_at(int(tree.infosets[view.player].history[view.number]))
    names = [families.name_of(state, action.action) for action in view.actions]
    return name_of(state), names


def name_of(state: pyspiel.State) -> str:
    """Return the infoset of a state in words, such as "J, after Check, Bet".

    The words are the acting player's cards, the public cards and the players' moves. In
    games without drawings, or with hidden moves, the name is the information state
    string in one line.
    """
    player = state.current_player()
    holds, public, _ = seen_by(state, player)
    if not holds or not families.has_open_actions(state.get_game()):
        lines = state.information_state_string(player).splitlines()
        return " / ".join(line.strip() for line in lines if line.strip())
    moves = [name for mover, name in families.moves_of(state) if mover >= 0]
    cards = f"{holds} on {public}" if public else holds
    return f"{cards}, after {', '.join(moves) or 'the deal'}"


def seen_by(state: pyspiel.State, player: int) -> tuple[str, str, Any]:
    """Return the player's cards, the public cards and the board, if drawn."""
    if not families.is_drawn(state.get_game()):
        return "", "", None
    drawn = families.draw(state, player)
    parts = {part["type"]: part for part in drawn.parts}
    shown = parts.get("poker", {}).get("board", [])
    cards = (card["text"] + card["suit"] for card in shown if "text" in card)
    return drawn.holds, " ".join(cards), parts.get("grid")
