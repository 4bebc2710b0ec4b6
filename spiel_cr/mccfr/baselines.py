"""Baselines, control variates of sampled values.

A baseline b(h, a) guesses player 0's utility after action a at history h; the better it
is, the less a sampled value varies. It must not depend on the sample that it is used
for, so a batch reads the old table and leaves a new one. Tables cover chance outcomes
like actions, and serve the updates of both players (the other's utility is minus this).

  average   one entry for each infoset-action or outcome of a chance history: decayed
            mean of the sampled values after it (Schmid et al. 2019, section "Choice of
            baselines"; they have one for each player's updates, at histories of others
            by what that player knows there, which compiled games do not record).
  history   the same for each history (Davis et al. 2020, learned history baselines).
  expected  for each history, the current strategies' expectation over the entries
            below, backed up along the sampled histories; at terminals the utility. No
            sampling noise enters (after Davis et al. 2020, predictive baselines, but
            under the strategies that were sampled with, not the next ones).
  oracle    the exact values under the current strategies: a pass over all histories a
            batch, for tests and comparisons.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.mccfr import sample_tree
from spiel_cr.mccfr.sample_tree import consecutive
from spiel_cr.sequence_form import treeplex

# None; float [T + A]; or one float [n + 1 + A] for each level but the first.
Table: TypeAlias = jax.Array | tuple[jax.Array, ...] | None


class Visit(NamedTuple):
    """The M visits of a batch at one depth.

    Attributes:
      history: int32 [M], index in the level.
      row: int32 [M], first entry of its actions in tables over actions.
      sigma: float [A, M], the strategy; 0 beyond the last action.
      legal: bool [A, M], False beyond the last action; None: all are legal.
      over: bool [M], whether the game is over there; None: nowhere.
      chosen: int32 [M], the followed action; None where there can be several.
      slots: int32 [A, M], the place of each followed action's visit at the next depth,
        past its end if an action was not followed; None where one is followed.
      rho: float [M] of the chosen action, or [A, M]: the probability that a trajectory
        here follows the action; positive wherever it was followed.
      weight: float [M], w(h), negative for player 1's updates; 0 where the visit is not
        to be updated.
      own: float [M] or None, what the visit adds to sampled averages.
      in_tree: bool [M] or None, whether the visit may teach baselines; None: all may.
    """

    history: jax.Array
    row: jax.Array
    sigma: jax.Array
    legal: jax.Array | None
    over: jax.Array | None
    chosen: jax.Array | None
    slots: jax.Array | None
    rho: jax.Array
    weight: jax.Array
    own: jax.Array | None
    in_tree: jax.Array | None


class Learning(NamedTuple):
    """Baselines while a batch is on its way up.

    Attributes:
      table: the new baselines so far.
      sums, counts: float [T + A], sampled values by entry ("average"); else None.
      below: float [M], new expectations at the visits one depth below ("expected").
    """

    table: Table
    sums: jax.Array | None
    counts: jax.Array | None
    below: jax.Array | None


def init(
    kind: str, tree: sample_tree.SampleTree, plan: sample_tree.Plan, dtype: np.dtype
) -> Table:
    """Baselines of zero, numpy arrays."""
    width = sample_tree.max_width(plan)
    if kind == "none":
        return None
    if kind == "average":
        return np.zeros(len(tree.row_of) + width, dtype)  # type: ignore[return-value]
    sizes = [len(level.row) + width for level in tree.levels[1:]]
    return tuple(np.zeros(size, dtype) for size in sizes)  # type: ignore[misc]


def rows(
    table: Table, depth: int, level: sample_tree.SampleLevel, visit: Visit
) -> jax.Array | None:
    """float [A, M], baselines of all actions of the visits of a depth."""
    if table is None:
        return None
    first = visit.row
    if isinstance(table, tuple):
        table, first = table[depth], level.first_child[visit.history]
    found = table[consecutive(first, len(visit.sigma))]
    return found if visit.legal is None else jnp.where(visit.legal, found, 0)


def start(kind: str, table: Table, utilities: jax.Array) -> Learning:
    """Before the way up.

    Args:
      kind: of baseline.
      table: the baselines that the batch read.
      utilities: float [M], at the visits of the last depth.
    """
    sums = jnp.zeros_like(table) if isinstance(table, jax.Array) else None
    below = utilities if kind == "expected" else None
    return Learning(table, sums, sums, below)


def learn(
    config: MCCFRConfig,
    learning: Learning,
    depth: int,
    level: sample_tree.SampleLevel,
    visit: Visit,
    estimates: jax.Array,
) -> Learning:
    """Takes in the sampled values one depth below.

    Args:
      config: kind of baseline and decay.
      learning: so far.
      depth: of the visits.
      level: theirs.
      visit: the visits.
      estimates: float [M'], sampled values at the next depth's visits.
    """
    table = learning.table
    if config.baseline in ("none", "oracle"):
        return learning
    if visit.chosen is not None:
        actions, seen, below = visit.chosen, estimates, learning.below
        # Finished trajectories choose something too.
        followed = visit.in_tree
        if visit.over is not None:
            followed = ~visit.over if followed is None else followed & ~visit.over
    else:
        assert visit.slots is not None
        actions = jnp.arange(visit.sigma.shape[0], dtype=jnp.int32)[:, None]
        seen = _at(estimates, visit.slots)
        followed = visit.slots < len(estimates)
        if visit.in_tree is not None:
            followed = followed & visit.in_tree[None]
        below = None if learning.below is None else _at(learning.below, visit.slots)
    if config.baseline == "average":
        assert learning.sums is not None and learning.counts is not None
        # Entry 0 is player 0's empty sequence, which nobody reads.
        row = visit.row if visit.chosen is not None else visit.row[None]
        entry = row + actions
        entry = entry if followed is None else jnp.where(followed, entry, 0)
        sums = learning.sums.at[entry].add(seen)
        counts = learning.counts.at[entry].add(1)
        return learning._replace(sums=sums, counts=counts)
    assert isinstance(table, tuple)
    old = table[depth]
    first = level.first_child[visit.history]
    child = (first if visit.chosen is not None else first[None]) + actions
    child = child if followed is None else jnp.where(followed, child, len(old) - 1)
    if config.baseline == "history":
        counts = jnp.zeros_like(old).at[child].add(1)[child]
        share = (1 - (1 - config.decay) ** counts) / counts
        new = old.at[child].add(share * (seen - old[child]))
        return learning._replace(table=(*table[:depth], new, *table[depth + 1 :]))
    assert below is not None
    new = old.at[child].set(below)
    table = (*table[:depth], new, *table[depth + 1 :])
    fresh = rows(table, depth, level, visit)
    assert fresh is not None
    expected = treeplex.sum_rows(visit.sigma * fresh)
    if visit.over is not None:
        expected = jnp.where(visit.over, level.utility[visit.history], expected)
    return learning._replace(table=table, below=expected)


def finish(config: MCCFRConfig, learning: Learning) -> Table:
    """The baselines after the batch."""
    if config.baseline != "average":
        return learning.table
    table, sums, counts = learning.table, learning.sums, learning.counts
    assert isinstance(table, jax.Array) and sums is not None and counts is not None
    # As if the mean of the batch came as often as the entry was visited.
    share = 1 - (1 - config.decay) ** counts
    return table + share * (sums / jnp.maximum(counts, 1) - table)


def refresh(
    tree: sample_tree.SampleTree, plan: sample_tree.Plan, strategy: jax.Array
) -> tuple[jax.Array, ...]:
    """The oracle: exact values of all histories under the strategies.

    Args:
      tree: the histories.
      plan: their widths.
      strategy: float [T + A], see `descent.Tables`.

    Returns:
      As `init` lays them out.
    """
    pad = sample_tree.max_width(plan)
    values = tree.levels[-1].utility
    tables: list[jax.Array] = []
    for shape, level in zip(plan[-2::-1], tree.levels[-2::-1], strict=True):
        padded = jnp.concatenate([values, jnp.zeros(pad, values.dtype)])
        tables.append(padded)
        actions = jnp.arange(shape.width, dtype=jnp.int32)[:, None]
        played = strategy[consecutive(level.row, shape.width)]
        sigma = jnp.where(actions < level.num_actions[None], played, 0)
        below = padded[consecutive(level.first_child, shape.width)]
        mine = treeplex.sum_rows(sigma * below)
        values = jnp.where(level.num_actions > 0, mine, level.utility)
    return tuple(reversed(tables))


def _at(values: jax.Array, places: jax.Array) -> jax.Array:
    """values[places], 0 past the end."""
    return values.at[places].get(mode="fill", fill_value=0)
