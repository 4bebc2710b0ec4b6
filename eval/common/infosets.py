"""Infosets of a compiled game by their strings."""

import numpy as np

from spiel_cr.games.tree.tree import GameTree


def members(tree: GameTree, player: int) -> dict[str, np.ndarray]:
    """The histories of each of a player's infosets, by its information state.

    Args:
      tree: the compiled game.
      player: who acts there.

    Returns:
      int [n] for each string.
    """
    histories = tree.histories
    player_histories = np.flatnonzero(histories.player == player)
    player_histories = player_histories[
        np.argsort(histories.infoset[player_histories], kind="stable")
    ]
    ends = np.cumsum(np.bincount(histories.infoset[player_histories]))
    groups = np.split(player_histories, ends[:-1])
    # Without any infosets there is still one group, of no histories.
    return dict(zip(tree.infosets[player].keys, groups, strict=False))
