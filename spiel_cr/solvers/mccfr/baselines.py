"""Baselines, control variates of sampled values.

A baseline b(h, a) guesses player 0's utility after action a at history h; the better it
is, the less a sampled value varies. It must not depend on the sample that it is used
for, so a batch reads the old table and leaves a new one (walks of one trajectory at a
time leave it to the next). Tables cover chance outcomes
like actions, and serve the updates of both players (the other's utility is minus this).

  average   one entry for each infoset-action or outcome of a chance history: decayed
            mean of the sampled values after it (Schmid et al. 2019, section "Choice of
            baselines"; they have one for each player's updates, at histories of others
            by what that player knows there, which compiled games do not record).
  expected  for each history, the current strategies' expectation over the entries
            below, backed up along the sampled histories; at terminals the utility. No
            sampling noise enters (after Davis et al. 2020, predictive baselines, but
            under the strategies that were sampled with, not the next ones).
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.mccfr import descent, sample_tree
from spiel_cr.solvers.mccfr.sample_tree import consecutive

# None; float [T + A]; or one float [n + 1 + A] for each level but the first.
Table: TypeAlias = jax.Array | tuple[jax.Array, ...] | None


class Learning(NamedTuple):
    """Baselines of a batch on its way up.

    Attributes:
      table: The new baselines of the level so far ("expected"), or the ones before the
        batch, because the new ones are made at the end ("average"); None without
        baselines.
      sums, counts: Sampled values by entry and their number ("average"); else None.
      below: New expectations at the visits one depth below, float [B] ("expected").
    """

    table: jax.Array | None
    sums: jax.Array | None
    counts: jax.Array | None
    below: jax.Array | None


def init(
    kind: str, tree: sample_tree.SampleTree, plan: sample_tree.Plan, dtype: np.dtype
) -> Table:
    """Return baselines of zero, as numpy arrays."""
    if kind == "none":
        return None
    if kind == "average":
        return np.zeros(len(tree.balanced), dtype)  # type: ignore[return-value]
    width = sample_tree.max_width(plan)
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
    """Return baselines of all actions of visits, float [A, B]; 0 at padding.

    Args:
      at_level: The batch at a depth.
      table: Baselines of the level, float.
      history: Histories of the visits, int32 [B].
    """
    first, stride = _places(at_level, history)
    guesses = table[consecutive(first, at_level.shape.width, stride)]
    return descent.mask(guesses, descent.look(at_level, history).legal)


def start(kind: str, table: jax.Array | None, below: jax.Array | None) -> Learning:
    """Return the state of learning before the way up.

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
    visit: descent.Visit,
    learning: Learning,
    estimates: jax.Array,
) -> Learning:
    """Learn from the sampled values one depth below.

    Args:
      at_level: The batch at a depth.
      visit: The visits of this depth.
      learning: Baselines so far.
      estimates: Sampled values at the next depth's visits, float [B].
    """
    table = learning.table
    if table is None:
        return learning
    view = descent.look(at_level, visit.history)
    first, stride = _places(at_level, visit.history)
    entry = first + stride * visit.chosen
    if view.over is not None:
        # Finished trajectories choose something too; the last entry nobody reads.
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


def finish(decay: float, learning: Learning) -> jax.Array | None:
    """Return the baselines after the batch, of the level or of all levels."""
    if learning.table is None or learning.sums is None or learning.counts is None:
        return learning.table
    # As if the mean of the batch came as often as the entry was visited.
    share = 1 - (1 - decay) ** learning.counts
    mean = learning.sums / jnp.maximum(learning.counts, 1)
    return learning.table + share * (mean - learning.table)
