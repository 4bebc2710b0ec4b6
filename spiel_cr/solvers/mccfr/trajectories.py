"""Batches of sampled trajectories: descent through the histories and backward pass.

Here trajectories follow one action at each history, as in outcome sampling (Lanctot et
al. 2009). External and average-strategy sampling are in `branching_walk.py`, targets in
`walk.py`. Let rho(a|h) be the probability that a trajectory at h follows a, and b a
baseline that does not depend on the sample. Then the estimates

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased (Schmid et al. 2019, equations 9 to 12, for one action; the estimates are
linear in the children, so this also holds for several actions). Let w(h) be the reach
of the others divided by the probability that a trajectory visits h. Then w(h) u(h, a)
is an unbiased sample of the contribution of h to the counterfactual value of a.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.mccfr import baselines, descent, sample_tree
from spiel_cr.solvers.mccfr.sample_tree import take


class Sample(NamedTuple):
    """Result of a batch.

    Attributes:
      values: Estimated counterfactual value of each of the updating player's sequences,
        as the player's own utility in the tree's units, float [T + A]; 0 if not
        visited.
      baseline: Baselines after this batch.
      roots: Each trajectory's estimate of player 0's utility, float [B].
    """

    values: jax.Array
    baseline: baselines.Table
    roots: jax.Array


class Rising(NamedTuple):
    """Sums of a batch during the backward pass.

    Attributes:
      estimate: Player 0's sampled utility at the depth below, float [B].
      values: Counterfactual values of the updating player's actions, float [T].
      learning: State of the baselines.
    """

    estimate: jax.Array
    values: jax.Array
    learning: baselines.Learning


def sample(
    tree: sample_tree.SampleTree,
    depths: sample_tree.Depths,
    batch: descent.Batch,
    baseline: baselines.Table,
    draws: jax.Array,
    shares: jax.Array,
) -> Sample:
    """Sample a batch of trajectories for one player's update.

    Args:
      tree: Histories by depth.
      depths: Facts about each depth, from `sample_tree.build`.
      batch: Batch of trajectories.
      baseline: Baselines as in `baselines.py`.
      draws: Random numbers in [0, 1), float [D, B], uniform and independent over depths
        for each trajectory; the last row is not used. Numbers of different trajectories
        may depend on each other.
      shares: Weight of each trajectory in all sums, float [B]; 1 / B for means.
    """
    config, last = batch.config, len(depths) - 1
    levels = [
        descent.LevelBatch(batch, *one) for one in zip(tree.levels, depths, strict=True)
    ]
    positions = descent.TrajectoryPositions(jnp.zeros(shares.shape, jnp.int32), shares)
    visits: list[descent.TrajectoryVisits] = []
    for depth in range(last):
        visit, positions = descent.descend(levels[depth], positions, draws[depth])
        visits.append(visit)
    estimate = tree.levels[-1].utility[positions.history]
    flat = None if isinstance(baseline, tuple) else baseline
    rising = Rising(
        estimate=estimate,
        values=jnp.zeros_like(batch.strategy),
        learning=baselines.start(config.baseline, flat, estimate),
    )
    tables: list[jax.Array] = []
    for depth in reversed(range(last)):
        if isinstance(baseline, tuple):
            learning = baselines.start(
                config.baseline, baseline[depth], rising.learning.below
            )
            rising = rising._replace(learning=learning)
        rising = climb(levels[depth], visits[depth], rising)
        if rising.learning.table is not None:
            tables.append(rising.learning.table)
    learned: baselines.Table = tuple(reversed(tables))
    if not isinstance(baseline, tuple):
        learned = baselines.finish(config, rising.learning)
    return Sample(rising.values, learned, rising.estimate)


def climb(
    at_level: descent.LevelBatch, visit: descent.TrajectoryVisits, rising: Rising
) -> Rising:
    """Compute the values of one depth from those of the next depth.

    Args:
      at_level: Batch at this depth.
      visit: Visits at this depth.
      rising: Sums so far; the estimates are those of the next depth's visits.
    """
    batch, level, _ = at_level
    view = descent.look(at_level, visit.history)
    # The backward pass has not yet updated the baselines of this depth.
    table, base = rising.learning.table, jnp.zeros_like(rising.estimate)
    guess = None
    if table is not None:
        guess = baselines.rows(at_level, table, visit.history)
        base = take(guess, visit.chosen)
    # u(h, a) - b(h, a) is zero except for the followed action.
    excess = (rising.estimate - base) / visit.rho
    expected = take(view.sigma, visit.chosen) * excess
    if guess is not None:
        expected = expected + treeplex.sum_rows(view.sigma * guess)
    if view.over is not None:
        utility = level.utility[visit.history]
        expected = jnp.where(view.over, utility, expected)
    values = rising.values
    if at_level.decides:
        weight = jnp.where(view.is_updating, visit.weight * (1 - 2 * batch.player), 0)
        entry = view.row + batch.stride * visit.chosen
        values = values.at[entry].add(weight * excess)
        if guess is not None:
            values = values.at[view.entries].add(weight[None] * guess)
    learning = baselines.learn(at_level, visit, rising.learning, rising.estimate)
    return Rising(expected, values, learning)
