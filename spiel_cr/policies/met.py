"""How often play comes to the decisions of a compiled game, and what is done there."""

from collections.abc import Sequence

import numpy as np

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.conversions import Behaviours


def others_reach(tree: GameTree, player: int, other: np.ndarray) -> np.ndarray:
    """float64 [I], reach of opponent and chance at a player's infosets.

    Args:
      tree: the compiled game.
      player: whose infosets.
      other: float64 [S'], the opponent's strategy in sequence form.
    """
    histories = tree.histories
    player_rows = np.flatnonzero(histories.player == player)
    weight = (
        histories.chance[player_rows]
        * other[histories.sequence[1 - player][player_rows]]
    )
    count = len(tree.infosets[player])
    return np.bincount(histories.infoset[player_rows], weight, minlength=count)


def probabilities(tree: GameTree, behaviours: Behaviours) -> list[np.ndarray]:
    """For each player float64 [I], how probable it is that play comes to an infoset."""
    reach = reach_of(tree.sequence_form, behaviours)
    return [
        reach[player][infosets.decisions.parent]
        * others_reach(tree, player, reach[1 - player])
        for player, infosets in enumerate(tree.infosets)
    ]


def greatest(values: Sequence[np.ndarray], most: int) -> list[tuple[int, int]]:
    """(player, infoset) of the largest positive numbers, the largest first.

    Args:
      values: for each player float64 [I].
      most: how many.
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
    """An infoset for people.

    Returns:
      Its information state in one line; the sequences that end at it; and OpenSpiel's
      words for their actions.
    """
    infosets = tree.infosets[player]
    first = int(infosets.decisions.first_sequence[infoset])
    state = tree.state_at(int(infosets.history[infoset]))
    names = tuple(state.action_to_string(player, a) for a in state.legal_actions())
    lines = infosets.keys[infoset].splitlines()
    key = " / ".join(line.strip() for line in lines if line.strip())
    return key, slice(first, first + len(names)), names
