"""The histories of a compiled game in one array each, for walks of one trajectory.

`sample_tree` lays histories out by depth, for a batch that moves down together. Here
they are by number, with what many of them share kept once: a *point* is an infoset of
player 0, of player 1, or a chance history, in this order, and last comes one without
actions, where all finished games are. Tables over actions have the T entries of
`sample_tree`.
"""

from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.solvers.mccfr.sample_tree import NOBODY, SampleTree, host


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
      balanced: float [T], see `sample_tree.SampleTree`.
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


def build(tree: CompiledGame, samples: SampleTree, exponent: int) -> FlatTree:
    """Lays out the same histories; numpy arrays.

    Args:
      tree: the compiled game.
      samples: its histories, from `sample_tree.build` and `rescale`.
      exponent: payoffs and tolerances are the game's over 2^exponent.
    """
    entries = len(samples.row_of)
    rows = _joined(samples, "row")
    counts, player = _joined(samples, "num_actions"), _joined(samples, "player")
    # A point is where a row of entries begins; finished games have none.
    acts = player != NOBODY
    begins = np.zeros(entries + 1, bool)
    begins[rows[acts]] = True
    number = np.cumsum(begins, dtype=np.int32) - 1
    first = np.flatnonzero(begins).astype(np.int32)
    points = len(first) + 1
    point = np.where(acts, number[rows], points - 1).astype(np.int32)
    code = np.full(points, NOBODY, np.int32)
    code[point[acts]] = 4 * counts[acts] + player[acts]
    parent, tolerance = _parents_and_tolerances(tree, number, points, entries)
    tolerance = np.ldexp(tolerance, -exponent)
    depths = tree.histories.by_depth
    children = [
        np.asarray(level.first_child)[:-1].astype(np.int64) + here.stop
        for level, here in zip(samples.levels, depths, strict=True)
    ]
    arrays = FlatTree(
        first_child=host(np.concatenate(children).astype(np.int32)),
        point=host(point),
        utility=host(_joined(samples, "utility")),
        first=host(np.append(first, 0).astype(np.int32)),
        code=host(code),
        parent=host(parent),
        tolerance=host(tolerance),
        balanced=host(np.asarray(samples.balanced)[:entries]),
        target=None,
        decides=host(
            np.array(
                [
                    [(np.asarray(level.player) == p).any() for level in samples.levels]
                    for p in range(2)
                ]
            )
        ),
    )
    if samples.levels[0].target is not None:
        parts = [
            np.asarray(level.target)[: len(level.row) - 1] for level in samples.levels
        ]
        arrays = arrays._replace(target=host(np.concatenate(parts)))
    return arrays


def _parents_and_tolerances(
    tree: CompiledGame, number: np.ndarray, points: int, entries: int
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
            for level in tree.form.arrays[p].levels
            for block in level.tolerance
        ]
        by_position = np.concatenate([np.zeros(1), *blocks])
        end = offset + decisions.num_sequences
        tolerance[offset:end] = by_position[tree.form.layouts[p].sequences]
        offset = end
    return parent, tolerance


def _joined(samples: SampleTree, column: str) -> np.ndarray:
    """A column of all levels without their last rows."""
    return np.concatenate(
        [np.asarray(getattr(level, column))[:-1] for level in samples.levels]
    )
