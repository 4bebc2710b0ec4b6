"""Depth-limited lookahead: where subgames are cut off.

A subgame is cut off where its histories are `depth` moves below its roots, but never
before the player's own next turn in a new subgame: continual resolving needs the values
there. What a history is worth where it is cut off comes from a leaf value
(`policies/leaf_values.py`).
"""

import numpy as np

from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.policies.leaf_values import LeafValue, leaf_utilities
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import Lookahead


def look_ahead(
    decomposition: Decomposition, number: int, depth: int, value: LeafValue
) -> Lookahead:
    """Cuts a layer's subgames off.

    Args:
      decomposition: from `decompose`.
      number: the layer, from 1.
      depth: moves (chance included) below the layer's roots, or, in layer 1, below the
        start of the game; where the player's next turn in a new subgame comes later,
        the cut is there.
      value: what histories are worth at the cut.

    Raises:
      ValueError: a depth below 1, or values that are no finite numbers.
    """
    check_iterations(depth, name="depth")
    d, histories = decomposition, decomposition.tree.histories
    # Moves below the last root, -1 above all roots.
    moves = np.full(len(histories), -1, np.int64)
    is_root = np.zeros(len(histories), bool)
    is_root[d.roots[d.layer[d.roots] == number] if number > 1 else 0] = True
    within = np.zeros(len(histories), bool)
    cut = np.zeros(len(histories), bool)
    new = (d.layer > number) & (histories.player != TERMINAL)
    for level in histories.by_depth:
        root = is_root[level]
        if level.start:
            above = histories.parent[level]
            moves[level] = np.where(moves[above] >= 0, moves[above] + 1, -1)
            within[level] = within[above] & ~cut[above]
        moves[level][root], within[level][root] = 0, True
        cut[level] = within[level] & new[level] & (moves[level] >= depth)
    leaves = np.flatnonzero(cut)
    ends = np.flatnonzero(within & (histories.player == TERMINAL))
    values = leaf_utilities(value, d.tree, leaves)
    first, second = (np.zeros(len(infosets), bool) for infosets in d.tree.infosets)
    kept = first, second
    for p in range(2):
        kept[p][histories.infoset[within & ~cut & (histories.player == p)]] = True
    return Lookahead(
        histories=np.concatenate([ends, leaves]),
        values=np.concatenate([histories.utility[ends], values]),
        kept=kept,
    )
