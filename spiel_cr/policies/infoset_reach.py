"""Reach probabilities of the infosets of a game tree, and their descriptions."""

from collections.abc import Sequence

import numpy as np

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.conversions import Behaviours


def others_reach(tree: GameTree, player: int, other: np.ndarray) -> np.ndarray:
    """Return the reach of opponent and chance at a player's infosets, float64 [I].

    Args:
      tree: The game tree.
      player: The player of the infosets.
      other: The opponent's strategy in sequence form, float64 [S'].
    """
    reach = other[tree.histories.sequence[1 - player]]
    return infoset_sums(tree, player, tree.histories.chance * reach)


def infoset_sums(tree: GameTree, player: int, values: np.ndarray) -> np.ndarray:
    """Return sums of histories' values [N] at a player's infosets, float64 [I]."""
    acts = np.flatnonzero(tree.histories.player == player)
    infoset, count = tree.histories.infoset[acts], len(tree.infosets[player])
    return np.bincount(infoset, values[acts], minlength=count)


def action_values(tree: GameTree, player: int, behaviours: Behaviours) -> np.ndarray:
    """Return a player's expected utility after each of its sequences, float64 [S].

    It is conditional on the infoset of the last action, and NaN if chance and the other
    player never lead there.

    Args:
      tree: The game tree.
      player: The player of the sequences, whose utility it is.
      behaviours: Action probabilities of both players, float64 [S].
    """
    counterfactual, _ = conversions.action_values(tree, behaviours)
    other = conversions.reach_from_behaviour(
        tree.decisions[1 - player], behaviours[1 - player]
    )
    # The last number is for the empty sequence, whose owner is -1.
    reach = np.append(others_reach(tree, player, other), 1.0)
    reach = reach[tree.decisions[player].owner]
    values = np.full(len(reach), np.nan)
    return np.divide(counterfactual[player], reach, out=values, where=reach > 0)


def probabilities(tree: GameTree, behaviours: Behaviours) -> list[np.ndarray]:
    """Return the reach probabilities of all infosets, float64 [I] of each player."""
    reach = reach_of(tree.sequence_form, behaviours)
    return [
        reach[player][infosets.decisions.parent]
        * others_reach(tree, player, reach[1 - player])
        for player, infosets in enumerate(tree.infosets)
    ]


def greatest(values: Sequence[np.ndarray], most: int) -> list[tuple[int, int]]:
    """Return the infosets with the largest positive numbers, the largest first.

    Args:
      values: Numbers of all infosets, float64 [I] of each player.
      most: Largest number of infosets.

    Returns:
      Pairs of player and infoset.
    """
    every = np.concatenate(values)
    order = np.argsort(-every, kind="stable")[:most]
    first = len(values[0])
    return [
        (1, place - first) if place >= first else (0, place)
        for place in order[every[order] > 0].tolist()
    ]


def described(
    tree: GameTree, player: int, infoset: int
) -> tuple[str, slice, tuple[str, ...]]:
    """Describe an infoset in words.

    Returns:
      The information state in one line; the sequences of the infoset's actions; and
      OpenSpiel's names of the actions.
    """
    infosets = tree.infosets[player]
    first = int(infosets.decisions.first_sequence[infoset])
    state = tree.state_at(int(infosets.history[infoset]))
    names = tuple(state.action_to_string(player, a) for a in state.legal_actions())
    lines = infosets.keys[infoset].splitlines()
    key = " / ".join(line.strip() for line in lines if line.strip())
    return key, slice(first, first + len(names)), names
