"""One batch of sampled trajectories, down the histories and up again.

Every scheme is one rule for which actions a trajectory follows, and how likely: outcome
sampling follows one action everywhere (Lanctot et al. 2009), external sampling all of
the updating player's, average-strategy sampling some of them (Gibson et al. 2012). With
rho(a|h) the probability that a trajectory at h follows a, and b any baseline that does
not depend on the sample, the estimates

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased (Schmid et al. 2019, equations 9 to 12, for one action; linear in the
children, so also for several), and so is w(h) u(h, a) as a sample of what h adds to the
counterfactual value of a, where w(h) is the reach of the others divided by the
probability that a trajectory comes by.

Targeting (Lisý et al. 2015) lets a share of the trajectories follow only actions that
lead to the target. What counts is the probability q = delta q_targeted + (1 - delta)
q_free over whole prefixes, so rho(a|h) = q(ha) / q(h); both factors are carried along.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.mccfr import baselines, descent, sample_tree
from spiel_cr.mccfr.sample_tree import consecutive, take
from spiel_cr.sequence_form import treeplex


class Sample(NamedTuple):
    """What a batch gives.

    Attributes:
      values: float [T + A], estimated counterfactual value of each of the updating
        player's sequences, its own utility, in the tree's units; 0 where not visited.
      visits: float [T + A], at infosets' first entries: own reach over sampling
        probability, for sampled averages; None otherwise.
      baseline: the baselines after this batch.
      known: the incremental tree after this batch.
      roots: float [B], each trajectory's estimate of player 0's utility.
    """

    values: jax.Array
    visits: jax.Array | None
    baseline: baselines.Table
    known: jax.Array | None
    roots: jax.Array


def sample(
    tree: sample_tree.SampleTree,
    tables: descent.Tables,
    draws: jax.Array,
    targeted: jax.Array | None,
    shares: jax.Array,
    *,
    plan: sample_tree.Plan,
    player: int,
    config: MCCFRConfig,
) -> Sample:
    """Samples a batch of trajectories for one player's update.

    Args:
      tree: the histories.
      tables: strategies and baselines.
      draws: float [D - 1, B] in [0, 1), uniform and independent over depths for each
        trajectory. Those of different trajectories may depend on each other.
      targeted: bool [B], who is targeted; None without targets.
      shares: float [B], weight of each trajectory in all sums; 1 / B for means.
      plan: from `sample_tree.build`.
      player: whose values are sampled.
      config: scheme, exploration and baselines.
    """
    size = shares.shape[0]
    batch = descent.Batch(tree, tables, targeted, plan, player, config, size)
    front = descent.top(batch, shares)
    visits: list[baselines.Visit] = []
    known = tables.known
    for depth in range(len(plan) - 1):
        visit, known, front = descent.descend(batch, known, front, draws, depth)
        visits.append(visit)
    return _climb(batch, visits, front, known)


def _climb(
    batch: descent.Batch,
    visits: list[baselines.Visit],
    front: descent.Front,
    known: jax.Array | None,
) -> Sample:
    """Values from the last depth to the root."""
    config, tables = batch.config, batch.tables
    estimate = batch.tree.levels[-1].utility[front.history]
    learning = baselines.start(config.baseline, tables.baseline, estimate)
    values = mass = jnp.zeros_like(tables.strategy)
    visited = values if config.averaging == "sampled" else None
    for depth in reversed(range(len(visits))):
        visit, level = visits[depth], batch.tree.levels[depth]
        guess = baselines.rows(tables.baseline, depth, level, visit)
        entries = consecutive(visit.row, len(visit.sigma))
        if visit.chosen is not None:
            # u(h, a) - b(h, a) is zero but for the followed action.
            base = 0 if guess is None else take(guess, visit.chosen)
            excess = (estimate - base) / visit.rho
            expected = take(visit.sigma, visit.chosen) * excess
            entry, added = visit.row + visit.chosen, visit.weight * excess
        else:
            assert visit.slots is not None
            base = 0 if guess is None else guess
            below = estimate.at[visit.slots].get(mode="fill", fill_value=0)
            followed = visit.slots < len(estimate)
            excess = jnp.where(followed, (below - base) / visit.rho, 0)
            expected = treeplex.sum_rows(visit.sigma * excess)
            entry, added = entries, visit.weight[None] * excess
        if guess is not None:
            expected = expected + treeplex.sum_rows(visit.sigma * guess)
        if batch.player in batch.plan[depth].players:
            values = values.at[entry].add(added)
            if config.baseline == "average":
                mass = mass.at[visit.row].add(visit.weight)
            elif guess is not None:
                values = values.at[entries].add(visit.weight[None] * guess)
            if visited is not None and visit.own is not None:
                visited = visited.at[visit.row].add(visit.own)
        learning = baselines.learn(config, learning, depth, level, visit, estimate)
        estimate = expected
        if visit.over is not None:
            estimate = jnp.where(visit.over, level.utility[visit.history], expected)
    if config.baseline == "average":
        assert isinstance(tables.baseline, jax.Array)
        size = len(batch.tree.row_of)
        spread = tables.baseline[:size] * mass[batch.tree.row_of]
        values = values.at[:size].add(spread)
    learned = baselines.finish(config, learning)
    return Sample(values, visited, learned, known, estimate)
