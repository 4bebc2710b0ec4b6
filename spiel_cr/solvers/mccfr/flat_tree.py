"""Histories of a game tree in flat arrays, for sampling single trajectories.

Data that several histories share is stored once for a *point*. A point is an infoset of
player 0, an infoset of player 1, or a chance history, in this order. The last point has
no actions and belongs to all terminal histories. Tables over actions have the T entries
that `sample_tree` describes.
"""

from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.mccfr.sample_tree import NO_PLAYER, Columns, leads_to


class FlatTree(NamedTuple):
    """Arrays over N histories, P points, T entries and D depths.

    Attributes:
      first_child: Number of the first child, int32 [N]; arbitrary at terminals.
      point: Point of each history, int32 [N].
      utility: Player 0's utility at terminals, in the solver's units, float [N].
      first: First entry of each point, int32 [P].
      code: Four times the number of actions, plus the acting player, int32 [P]; players
        are 0, 1, 2 for chance and 3 for terminals.
      parent: Entry of an infoset's parent sequence, int32 [P]; 0 at other points.
      tolerance: Largest regret that rounding alone can cause in one iteration, float
        [T].
      balanced: Balanced strategy as in `sample_tree.Columns`, float [T].
      target: Mask of histories that targeted trajectories may visit, bool [N] or None.
      decides: Mask of the depths with a history where a player acts, bool [2, D].
      roots: Entries of the players' empty sequences, int32 [2].
    """

    first_child: jax.Array
    point: jax.Array
    utility: jax.Array
    first: jax.Array
    code: jax.Array
    parent: jax.Array
    tolerance: jax.Array
    balanced: jax.Array
    target: jax.Array | None
    decides: jax.Array
    roots: jax.Array


def build(
    tree: GameTree,
    columns: Columns,
    exponent: int = 0,
    target: np.ndarray | None = None,
) -> FlatTree:
    """Build the arrays for sampling single trajectories, as numpy arrays.

    Args:
      tree: Game tree.
      columns: Result of `sample_tree.columns_of`.
      exponent: Binary exponent of the scale; payoffs and tolerances are divided by
        2^exponent.
      target: Histories that targeted trajectories must pass through, bool [N]; None: no
        targeting.

    Raises:
      ValueError: If the target is empty or has another length.
    """
    entries, player = len(columns.balanced), columns.player
    # Each row of entries belongs to one point. Terminal histories have no row.
    acts = player != NO_PLAYER
    begins = np.zeros(entries + 1, bool)
    begins[columns.row[acts]] = True
    number = np.cumsum(begins, dtype=np.int32) - 1
    first = np.flatnonzero(begins).astype(np.int32)
    points = len(first) + 1
    point = np.where(acts, number[columns.row], points - 1).astype(np.int32)
    code = np.full(points, NO_PLAYER, np.int32)
    code[point[acts]] = 4 * columns.num_actions[acts] + player[acts]
    parent, tolerance = _parents_and_tolerances(tree, number, points, entries)
    decides = [
        [(player[level] == p).any() for level in tree.histories.by_depth]
        for p in range(2)
    ]
    roots = [0, tree.infosets[0].decisions.num_sequences]
    return FlatTree(
        first_child=typed(columns.first_child.astype(np.int32)),
        point=typed(point),
        utility=treeplex.divide(typed(tree.histories.utility), exponent),
        first=typed(np.append(first, 0).astype(np.int32)),
        code=typed(code),
        parent=typed(parent),
        tolerance=treeplex.divide(typed(tolerance), exponent),
        balanced=typed(columns.balanced),
        target=None if target is None else typed(leads_to(tree, target)),
        decides=typed(np.array(decides)),
        roots=typed(np.array(roots, np.int32)),
    )


def _parents_and_tolerances(
    tree: GameTree, number: np.ndarray, points: int, entries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parent sequences of infosets and the tolerances of regrets.

    Args:
      tree: Game tree.
      number: Point that owns each entry, int32 [T + 1].
      points: Number of points.
      entries: Number T of entries of the tables over actions.

    Returns:
      Entries of the parent sequences, int32 [points], 0 at chance; tolerances in game
      units, float64 [T].
    """
    parent, tolerance = np.zeros(points, np.int32), np.zeros(entries)
    offset = 0
    for p, infosets in enumerate(tree.infosets):
        decisions = infosets.decisions
        parent[number[decisions.first_sequence + offset]] = decisions.parent + offset
        blocks = [
            np.asarray(block).reshape(-1)
            for level in tree.sequence_form.arrays[p].levels
            for block in level.tolerance
        ]
        by_position = np.concatenate([np.zeros(1), *blocks])
        end = offset + decisions.num_sequences
        tolerance[offset:end] = by_position[tree.sequence_form.layouts[p].sequences]
        offset = end
    return parent, tolerance
