"""The histories of a compiled game in one array each, for walks of one trajectory.

What many histories share is kept once: a *point* is an infoset of player 0, of player
1, or a chance history, in this order, and last comes one without actions, where all
finished games are. Tables over actions have the T entries of `sample_tree`.
"""

from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.mccfr.sample_tree import NO_PLAYER, Columns, leads_to


class FlatTree(NamedTuple):
    """N histories, P points, T entries, D depths.

    Attributes:
      first_child: int32 [N], where the game is over anything.
      point: int32 [N].
      utility: float [N], player 0's utility at terminals, in a solver's units.
      first: int32 [P], the first entry of each point.
      code: int32 [P], 4 times the number of actions plus who acts: 0, 1, 2 chance, 3
        nobody.
      parent: int32 [P], the entry of an infoset's parent sequence; 0 elsewhere.
      tolerance: float [T], how large a regret rounding alone leaves in one iteration.
      balanced: float [T], see `sample_tree.Columns`.
      target: bool [N] or None, what targeted trajectories may visit.
      decides: bool [2, D], whether a player acts at some history of a depth.
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


def build(
    tree: GameTree,
    columns: Columns,
    exponent: int = 0,
    target: np.ndarray | None = None,
) -> FlatTree:
    """Lays out the same histories; numpy arrays.

    Args:
      tree: the compiled game.
      columns: of `sample_tree.columns_of`.
      exponent: payoffs and tolerances are the game's over 2^exponent.
      target: bool [N], histories that targeted trajectories must pass through; None:
        no targeting.

    Raises:
      ValueError: an array of another length, or an empty target.
    """
    entries, player = len(columns.balanced), columns.player
    # A point is where a row of entries begins; finished games have none.
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
    )


def _parents_and_tolerances(
    tree: GameTree, number: np.ndarray, points: int, entries: int
) -> tuple[np.ndarray, np.ndarray]:
    """The entry above each infoset, and what regrets are zero up to, in game units.

    Args:
      tree: the compiled game.
      number: int32 [T + 1], of the point that owns each entry.
      points: how many there are.
      entries: T, of tables over actions.

    Returns:
      int32 [points], 0 at chance; float64 [T].
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
