"""Outcome sampling of one subgame: a program of loops over padded tables.

Monte Carlo CFR as in `mccfr` (Lanctot et al. 2009; baselines after Schmid et al. 2019
and Davis et al. 2020), written for subgames, which are met once and solved for
milliseconds: depths, players and iterations are loops, not operations written out, so a
program compiles in about a second, and serves every subgame that fits into its shape.
What differs from `mccfr` besides:

  - A trajectory starts at one of the subgame's roots. At the gadget above it the
    opponent always follows, and what terminating is worth is known, so nothing is
    sampled there. For the resolving player's updates roots are drawn in proportion to
    how often the opponent follows, too.
  - Sampled values of the opponent are also kept where its augmented infosets of the
    next layer are: its mean counterfactual values there under the iterates, which the
    next gadget needs. They are unbiased.

Tables have a column for each of R rows (infosets of both players, augmented infosets,
histories of chance) and A entries in each, the actions.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import quick_options
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.cfr import regret_matching
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.cfr.solver import jitted_loop
from spiel_cr.solvers.mccfr import baselines, descent, sample_tree, trajectories

TERMINATE, FOLLOW = 0, 1


class SubgameTree(NamedTuple):
    """A subgame, padded: N histories, R rows, K roots, G augmented infosets below.

    Every N, R, K and G includes at least one place that stands for "none", the last.

    Attributes:
      level: The histories; children are consecutive. `row` is R - 1 where the game is
        over, and `utility` is over `_SharedTables.scale`.
      next_augmented: int32 [N], the next layer's augmented infoset that the history
        belongs to; G - 1 without.
      owner: int32 [R], the player whose row it is; 2 chance and padding.
      uniform: float [A, R], uniform strategies at players' rows and probabilities at
        those of chance; 0 at padding.
      explore: float [A, R], how outcome sampling explores.
      parent: int32 [R], entry of the owner's last action in a flat table (action times
        R plus row); A R for none in this subgame.
      root: int32 [K], the roots.
      gadget: int32 [K], the row of each root's augmented infoset; R - 1 without.
      share: float [K], reach of each root by chance and the resolving player, over
        their sum.
      terminate: float [K], player 0's utility, in the units of `utility`, where the
        opponent terminates.
      resolving: int32 scalar, i, the resolving player.
      depths: int32 scalar, the largest number of actions after a root.
      levels: int32 scalar, the largest number of i's infosets on a way down.
    """

    level: sample_tree.SampleLevel
    next_augmented: jax.Array
    owner: jax.Array
    uniform: jax.Array
    explore: jax.Array
    parent: jax.Array
    root: jax.Array
    gadget: jax.Array
    share: jax.Array
    terminate: jax.Array
    resolving: jax.Array
    depths: jax.Array
    levels: jax.Array


class SubgameProblem(NamedTuple):
    """A subgame and the random points that all subgames share.

    Attributes:
      tree: the subgame.
      points: float [D + 1, B], evenly spread points of which each batch uses a randomly
        shifted copy. D depths at most.
    """

    tree: SubgameTree
    points: jax.Array


class SubgameState(NamedTuple):
    """State of a sampled solve of a subgame.

    Attributes:
      regrets, strategy: float [A, R], cumulative regrets and the current strategies;
        chance's probabilities in its own rows.
      average: float [A, R], i's weighted mean sequence form; 0 in all other rows.
      values: float [G], o's mean counterfactual values at the augmented infosets below
        under the iterates, over the roots' reach and `_SharedTables.scale`.
      baseline: float [N + A] or [A R], see `solvers/mccfr/baselines.py`; None without.
      iteration: int32 scalar, iterations done.
      weight: float scalar, sum of their averaging weights in units of the last one.
      key: uint32 [2], of JAX's random numbers to come.
    """

    regrets: jax.Array
    strategy: jax.Array
    average: jax.Array
    values: jax.Array
    baseline: jax.Array | None
    iteration: jax.Array
    weight: jax.Array
    key: jax.Array


def init(
    tree: SubgameTree, groups: int, config: MCCFRConfig, *, seed: int
) -> SubgameState:
    """Uniform strategies, zero regrets and baselines; numpy arrays.

    Args:
      tree: the subgame, numpy arrays.
      groups: G, the number of augmented infosets below, padding included.
      config: algorithm.
      seed: of all random numbers.
    """
    zeros: Any = np.zeros_like(tree.uniform)
    dtype, width = zeros.dtype, len(zeros)
    by_history = config.baseline != "average"
    entries = len(tree.level.row) + width if by_history else zeros.size
    baseline: Any = np.zeros(entries, dtype)
    return SubgameState(
        regrets=zeros,
        strategy=tree.uniform,
        average=zeros,
        values=np.zeros(groups, dtype),  # type: ignore[arg-type]
        baseline=None if config.baseline == "none" else baseline,
        iteration=np.zeros((), np.int32),  # type: ignore[arg-type]
        weight=np.zeros((), dtype),  # type: ignore[arg-type]
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
    )


def step(
    problem: SubgameProblem, state: SubgameState, config: MCCFRConfig
) -> SubgameState:
    """One iteration: a batch of trajectories and an update for each player."""
    t = (state.iteration + 1).astype(state.weight.dtype)
    weight = 1 + state.weight * ((t - 1) / t) ** config.gamma
    state = state._replace(iteration=state.iteration + 1, weight=weight)
    before = state.strategy

    def half(p: jax.Array, now: SubgameState) -> SubgameState:
        played = now.strategy if config.alternating else before
        return _update(problem, now, played, p, config)

    return jax.lax.fori_loop(0, 2, half, state)


def _update(
    problem: SubgameProblem,
    state: SubgameState,
    strategy: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> SubgameState:
    """Regrets, next strategy and averages of one player, from one batch."""
    tree = problem.tree
    key, draw_key = jax.random.split(jax.random.wrap_key_data(state.key))
    draws = _draw(problem.points, draw_key)
    values, below, baseline = _sample(tree, state, strategy, draws, player, config)
    means = treeplex.sum_rows(strategy * values)
    t = state.iteration.astype(strategy.dtype)
    padding = tree.uniform == 0
    regrets, matched = regret_matching.update(
        config.rule,
        state.regrets,
        jnp.where(padding, 0, values - means[None]),
        tree.uniform,
        jnp.where(padding, jnp.inf, 0),
        t,
    )
    updates = (tree.owner == player)[None]
    resolves = player == tree.resolving
    share = 1 / state.weight
    added = jax.lax.cond(
        resolves, lambda: _reach(tree, state.strategy), lambda: state.average
    )
    average = state.average + share * (added - state.average)
    mean_values = state.values + share * (below - state.values)
    return state._replace(
        regrets=jnp.where(updates, regrets, state.regrets),
        strategy=jnp.where(updates, matched, state.strategy),
        average=jnp.where(updates & resolves, average, state.average),
        values=jnp.where(resolves, state.values, mean_values),
        baseline=baseline,
        key=jax.random.key_data(key),
    )


def _draw(points: jax.Array, key: jax.Array) -> jax.Array:
    """float [D + 1, B] in [0, 1), independent over depths; see `mccfr`."""
    shift = jax.random.uniform(key, (len(points), 1), points.dtype)
    return (points + shift) % 1


def _reach(tree: SubgameTree, strategy: jax.Array) -> jax.Array:
    """float [A, R], the sequence form of players' strategies, by i's levels."""

    def deeper(_: jax.Array, reach: jax.Array) -> jax.Array:
        above = jnp.append(reach.reshape(-1), 1.0)[tree.parent]
        return strategy * above[None]

    return jax.lax.fori_loop(1, tree.levels, deeper, strategy)


def _sample(
    tree: SubgameTree,
    state: SubgameState,
    strategy: jax.Array,
    draws: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Samples a batch of trajectories for one player's update.

    Args:
      tree: the subgame.
      state: of the solve; its baselines are read, and learned anew.
      strategy: float [A, R], what is played.
      draws: float [D + 1, B], from `_draw`: one row a depth, and roots.
      player: int32 scalar, whose values are sampled.
      config: exploration and baselines.

    Returns:
      Counterfactual values of the updating player's actions, float [A, R], and at
      augmented infosets of the next layer, float [G]; and the new baselines.
    """
    width, rows = strategy.shape
    batch = descent.Batch(
        strategy=strategy.reshape(-1),
        explore=tree.explore.reshape(-1),
        stride=rows,
        player=player,
        config=config,
    )
    shape = sample_tree.Depth(width, full=False, players=None)
    at_level = descent.LevelBatch(batch, tree.level, shape)
    place, origin = _start(tree, batch, strategy, draws[-1])
    max_depth = len(draws) - 1

    def down(
        d: jax.Array,
        carried: tuple[descent.TrajectoryPositions, descent.TrajectoryVisits],
    ) -> tuple[descent.TrajectoryPositions, descent.TrajectoryVisits]:
        positions, visits = carried
        visit, positions = descent.descend(at_level, positions, draws[d])
        return positions, jax.tree.map(
            lambda rows, row: rows.at[d].set(row), visits, visit
        )

    first, _ = jax.eval_shape(lambda: descent.descend(at_level, origin, draws[0]))
    visits = jax.tree.map(
        lambda row: jnp.zeros((max_depth, *row.shape), row.dtype), first
    )
    positions, visits = jax.lax.fori_loop(0, tree.depths, down, (origin, visits))
    estimate = tree.level.utility[positions.history]
    rising = trajectories.Rising(
        estimate=estimate,
        values=jnp.zeros_like(batch.strategy),
        learning=baselines.start(config.baseline, state.baseline, estimate),
    )
    sign = 1 - 2 * player

    def up(
        k: jax.Array, carried: tuple[trajectories.Rising, jax.Array]
    ) -> tuple[trajectories.Rising, jax.Array]:
        rising, next_augmented = carried
        visit = jax.tree.map(lambda rows: rows[tree.depths - 1 - k], visits)
        rising = trajectories.climb(at_level, visit, rising)
        value = visit.weight * sign * rising.estimate
        return rising, next_augmented.at[tree.next_augmented[visit.history]].add(value)

    start = rising, jnp.zeros_like(state.values)
    rising, next_augmented = jax.lax.fori_loop(0, tree.depths, up, start)
    # At the gadget: terminating is worth what is given, following what was sampled.
    weight = sign * origin.weight
    gadget = tree.gadget[place]
    values = rising.values.at[gadget + TERMINATE * rows].add(
        weight * tree.terminate[place]
    )
    values = values.at[gadget + FOLLOW * rows].add(weight * rising.estimate)
    baseline = baselines.finish(config.decay, rising.learning)
    return values.reshape(strategy.shape), next_augmented, baseline


def _start(
    tree: SubgameTree, batch: descent.Batch, strategy: jax.Array, draw: jax.Array
) -> tuple[jax.Array, descent.TrajectoryPositions]:
    """int32 [B], the root of each trajectory; and all trajectories there.

    Roots are drawn by the opponent's reach, too, for the resolving player's updates.

    Args:
      tree: the subgame.
      batch: whose values are sampled, and how.
      strategy: float [A, R], what is played.
      draw: float [B] in [0, 1).
    """
    resolves = batch.player == tree.resolving
    gadget = tree.gadget
    follow = jnp.where(gadget < len(tree.owner) - 1, strategy[FOLLOW, gadget], 1)
    reach = jnp.where(resolves, tree.share * follow, tree.share)
    total = reach.sum()
    scaled = reach / jnp.where(total > 0, total, 1)
    place = _locate(jnp.where(total > 0, scaled, tree.share), draw)
    weight = jnp.full(draw.shape, total / draw.size, draw.dtype)
    return place, descent.TrajectoryPositions(tree.root[place], weight)


def _locate(chance: jax.Array, draw: jax.Array) -> jax.Array:
    """int32 [B], places drawn with probabilities [K]."""
    reached = jnp.cumsum(chance)
    draw = jnp.minimum(draw, descent.BELOW_ONE) * reached[-1]
    place = jnp.searchsorted(reached, draw, side="right")
    return jnp.minimum(place, len(chance) - 1).astype(jnp.int32)


@functools.cache
def jitted_run() -> Any:
    """`(problem, state, iterations, *, config)` to the state afterwards, jitted."""
    return jitted_loop(step, options=quick_options())


def compilations() -> int:
    """How many programs this process has compiled for sampled subgames."""
    return int(jitted_run()._cache_size())
