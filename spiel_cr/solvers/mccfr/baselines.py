"""Baselines, the control variates of sampled values.

A baseline b(h, a) estimates player 0's utility after action a at history h. The better
the estimate, the lower the variance of sampled values. A baseline must not depend on
the sample in which it is used, so a batch reads the old table and returns a new one (if
trajectories are sampled one at a time, the next trajectory uses the new table). Tables
treat chance outcomes like actions. They serve the updates of both players, because the
other player's utility is the negative.

  average   One entry for each infoset-action pair or outcome of a chance history: the
            decayed mean of the sampled values after it (Schmid et al. 2019, section
            "Choice of baselines"; there, each player's updates have their own table,
            indexed at the other player's histories by the information of the updating
            player, which game trees do not record).
  expected  For each history, the current strategies' expectation over the entries
            below, backed up along the sampled histories; at terminals the utility.
            Sampling noise does not enter (after Davis et al. 2020, predictive
            baselines, but with the strategies that were sampled, not the next ones).
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr import descent, sample_tree
from spiel_cr.solvers.mccfr.sample_tree import consecutive

# None without baselines; one float [T + A] ("average"); or one float [n + 1 + A] for
# each level except the first ("expected").
Table: TypeAlias = jax.Array | tuple[jax.Array, ...] | None


class Learning(NamedTuple):
    """State of a batch's baselines during the backward pass.

    Attributes:
      table: New baselines of the level so far ("expected"), or those before the batch
        because the new ones are computed at the end ("average"); None without
        baselines.
      sums, counts: Sums and numbers of sampled values by entry ("average"); otherwise
        None.
      below: New expectations at the visits one depth below, float [B] ("expected").
    """

    table: jax.Array | None
    sums: jax.Array | None
    counts: jax.Array | None
    below: jax.Array | None


def init(
    kind: str, tree: sample_tree.SampleTree, depths: sample_tree.Depths, dtype: np.dtype
) -> Table:
    """Return baselines of zero, as numpy arrays."""
    if kind == "none":
        return None
    if kind == "average":
        return np.zeros(len(tree.balanced), dtype)  # type: ignore[return-value]
    width = sample_tree.max_width(depths)
    sizes = [len(level.row) + width for level in tree.levels[1:]]
    return tuple(np.zeros(size, dtype) for size in sizes)  # type: ignore[misc]


def _places(at_level: descent.LevelBatch, history: jax.Array) -> tuple[jax.Array, int]:
    """Return the entry of each history's first baseline, int32 [B], and the stride."""
    if at_level.batch.config.baseline == "average":
        return at_level.level.row[history], at_level.batch.stride
    return at_level.level.first_child[history], 1


def rows(
    at_level: descent.LevelBatch, table: jax.Array, history: jax.Array
) -> jax.Array:
    """Return the baselines of all actions of visits, float [A, B]; 0 at padding.

    Args:
      at_level: Batch at one depth.
      table: Baselines of the level, float.
      history: Histories of the visits, int32 [B].
    """
    first, stride = _places(at_level, history)
    guesses = table[consecutive(first, at_level.shape.width, stride)]
    return descent.mask(guesses, descent.look(at_level, history).legal)


def start(kind: str, table: jax.Array | None, below: jax.Array | None) -> Learning:
    """Return the state of the baselines before the backward pass.

    Args:
      kind: Kind of baseline.
      table: Baselines so far of all levels, or of the next level; None without
        baselines.
      below: Utilities at the visits of the last depth, or expectations at the visits of
        the level below, float [B].
    """
    if kind == "average" and table is not None:
        nothing = jnp.zeros_like(table)
        return Learning(table, sums=nothing, counts=nothing, below=None)
    return Learning(table, None, None, below if kind == "expected" else None)


def learn(
    at_level: descent.LevelBatch,
    visit: descent.TrajectoryVisits,
    learning: Learning,
    estimates: jax.Array,
) -> Learning:
    """Update baselines with the sampled values of the next depth.

    Args:
      at_level: Batch at one depth.
      visit: Visits at this depth.
      learning: State of the baselines.
      estimates: Sampled values at the next depth's visits, float [B].
    """
    table = learning.table
    if table is None:
        return learning
    view = descent.look(at_level, visit.history)
    first, stride = _places(at_level, visit.history)
    entry = first + stride * visit.chosen
    if view.over is not None:
        # Finished trajectories write to the last entry, which is never read.
        entry = jnp.where(view.over, len(table) - 1, entry)
    if learning.sums is not None and learning.counts is not None:
        sums = learning.sums.at[entry].add(estimates)
        return learning._replace(sums=sums, counts=learning.counts.at[entry].add(1))
    assert learning.below is not None
    new = table.at[entry].set(learning.below)
    fresh = rows(at_level, new, visit.history)
    expected = treeplex.sum_rows(view.sigma * fresh)
    if view.over is not None:
        utility = at_level.level.utility[visit.history]
        expected = jnp.where(view.over, utility, expected)
    return learning._replace(table=new, below=expected)


def finish(config: MCCFRConfig, learning: Learning) -> jax.Array | None:
    """Return the baselines after the batch, of the level or of all levels."""
    if learning.table is None or learning.sums is None or learning.counts is None:
        return learning.table
    mean = learning.sums / jnp.maximum(learning.counts, 1)
    if config.learning is not None:
        new = config.learning.call(learning.table, mean, learning.counts)
        return jnp.where(learning.counts > 0, new, learning.table)
    # Equivalent to one update with the batch mean for each visit of the entry.
    share = 1 - (1 - config.decay) ** learning.counts
    return learning.table + share * (mean - learning.table)
