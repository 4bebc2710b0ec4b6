"""Infosets of a game tree by their strings."""

import numpy as np

from spiel_cr.games.tree.tree import GameTree


def members(tree: GameTree, player: int) -> dict[str, np.ndarray]:
    """Return the histories of each infoset of a player, by information state string.

    Args:
      tree: Game tree.
      player: Player that acts at the infosets.

    Returns:
      Indices of histories, int [n], for each string.
    """
    histories = tree.histories
    player_histories = np.flatnonzero(histories.player == player)
    player_histories = player_histories[
        np.argsort(histories.infoset[player_histories], kind="stable")
    ]
    ends = np.cumsum(np.bincount(histories.infoset[player_histories]))
    groups = np.split(player_histories, ends[:-1])
    # Without any infosets there is still one empty group.
    return dict(zip(tree.infosets[player].keys, groups, strict=False))
