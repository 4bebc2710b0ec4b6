"""Outcome-sampling MCCFR on one subgame, compiled once for all subgames of a shape.

The algorithm is that of `mccfr` (Lanctot et al. 2009; baselines after Schmid et al.
2019 and Davis et al. 2020). A subgame is solved for only some milliseconds in a match,
so nothing may be compiled for it alone. Here depths, players and iterations are loops
of one compiled function over padded tables. It compiles in about a second, and serves
every subgame that fits into its shape. There are two further differences from `mccfr`:

  - A trajectory starts at one of the subgame's roots. In the gadget above the roots the
    opponent always follows. The value of terminating is known, so it is not sampled.
    For updates of the resolving player, roots are drawn in proportion to their reach
    times the opponent's current probability of following.
  - The opponent's sampled values at its augmented infosets of the next layer are
    averaged over iterations. These mean counterfactual values under the iterates are
    unbiased estimates. The gadget of the next layer uses them.

A table has the shape [A, R]: R rows (infosets of both players, augmented infosets of
this layer, and chance histories) with A entries each, one for each action or outcome.
Types `float` are the dtype of the solve, float32.
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
    """Padded tables of a subgame.

    The sizes are N histories, R rows, K roots, G augmented infosets of the next layer,
    and A actions. Each of N, R, K and G includes a last place for "none" and may
    include padding.

    Attributes:
      level: The histories; children are consecutive. `row` is R - 1 at terminals, and
        `utility` is player 0's utility divided by `_SharedTables.scale`.
      next_augmented: Index of the next layer's augmented infoset to which a history
        belongs, int32 [N]; G - 1 if it is not a root of the next layer.
      owner: Player to whom each row belongs, int32 [R]; 2 for chance and padding.
      uniform: Uniform strategies in the players' rows and outcome probabilities in
        chance's rows, float [A, R]; 0 at padding.
      explore: Strategy with which outcome sampling explores, float [A, R].
      parent: Entry of the owner's last action before each row, int32 [R], as an index
        into a flattened table (action x R + row); A x R if it has none in this subgame.
        Only the rows of the resolving player are used.
      root: Histories of the roots, int32 [K].
      gadget: Row of each root's augmented infoset, int32 [K]; R - 1 without a gadget.
      share: Reach of each root by chance and the resolving player, divided by the sum
        over all roots, float [K].
      terminate: Player 0's utility if the opponent terminates, in the units of
        `level.utility`, float [K].
      resolving: The resolving player i, int32 scalar.
      depths: Largest number of actions from a root to the end, int32 scalar.
      levels: Largest number of infosets of i on a path, int32 scalar.
      target: Mask of the roots at which a share delta of the trajectories starts, bool
        [K]; None if matches are not targeted.
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
    target: jax.Array | None


class SubgameProblem(NamedTuple):
    """A subgame, and the random points that all subgames share.

    Attributes:
      tree: The subgame.
      points: Evenly spread points in [0, 1), float [D + 1, B], where D is the maximum
        depth and B the number of trajectories in a batch. Each batch uses them with
        random shifts.
    """

    tree: SubgameTree
    points: jax.Array


class SubgameState(NamedTuple):
    """State of a sampled solve of a subgame.

    Attributes:
      regrets: Cumulative regrets, float [A, R].
      strategy: Current strategies, float [A, R], with outcome probabilities in chance's
        rows.
      average: Weighted mean over iterations of the resolving player's realisation plan,
        float [A, R]; 0 in all other rows.
      values: The opponent's mean counterfactual values under the iterates at the
        augmented infosets below, in its own utility, float [G]. They are divided by the
        roots' total reach and by `_SharedTables.scale`.
      baseline: Baselines, float [N + A] by history or [A x R] by entry, see
        `solvers/mccfr/baselines.py`. None if no baselines are used.
      iteration: Number of iterations performed, int32 scalar.
      weight: Sum of the averaging weights of all iterations, divided by the weight of
        the last one, float scalar.
      key: Data of JAX's random key for the next iteration, uint32 [2].
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
    """Return the initial state: uniform strategies, and zero regrets and baselines.

    Args:
      tree: The subgame, as numpy arrays.
      groups: Number of augmented infosets below, including padding, G.
      config: Settings of the algorithm.
      seed: Seed for all random choices.

    Returns:
      The state, as numpy arrays.
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
    """Perform one iteration: for each player, a batch of trajectories and an update.

    Args:
      problem: The subgame and the random points.
      state: State after the previous iteration.
      config: Settings of the algorithm. Updates alternate if `config.alternating`;
        otherwise both players' updates use the strategies before the iteration.
    """
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
    """Sample a batch for one player; update its regrets, strategy and averages.

    Args:
      problem: The subgame and the random points.
      state: The state before the update.
      strategy: Strategies that are played, float [A, R].
      player: Player to update, int32 scalar.
      config: Settings of the algorithm.
    """
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
    """Return randomly shifted points in [0, 1), float [D + 1, B].

    Shifts are independent across depths. `mccfr` describes how a batch uses the points.
    """
    shift = jax.random.uniform(key, (len(points), 1), points.dtype)
    return (points + shift) % 1


def _reach(tree: SubgameTree, strategy: jax.Array) -> jax.Array:
    """Return realisation plans of the players' strategies, float [A, R].

    Args:
      tree: The subgame.
      strategy: Strategies, float [A, R]. Only the resolving player's rows of the result
        are meaningful, because `tree.levels` counts its infosets.
    """

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
    """Sample a batch of trajectories for one player's update.

    Args:
      tree: The subgame.
      state: State of the solve, whose baselines are used and replaced.
      strategy: Strategies that are played, float [A, R].
      draws: Random numbers from `_draw`, float [D + 1, B]: one row for each depth, and
        the last row for the choice of roots.
      player: Player whose values are sampled, int32 scalar.
      config: Settings of exploration and baselines.

    Returns:
      Sampled counterfactual values of the updating player's actions, float [A, R]; its
      values at augmented infosets of the next layer, float [G]; and the new baselines.
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
    # In the gadget, the value of terminating is known; that of following is sampled.
    weight = sign * origin.weight
    gadget = tree.gadget[place]
    values = rising.values.at[gadget + TERMINATE * rows].add(
        weight * tree.terminate[place]
    )
    values = values.at[gadget + FOLLOW * rows].add(weight * rising.estimate)
    baseline = baselines.finish(config, rising.learning)
    return values.reshape(strategy.shape), next_augmented, baseline


def _start(
    tree: SubgameTree, batch: descent.Batch, strategy: jax.Array, draw: jax.Array
) -> tuple[jax.Array, descent.TrajectoryPositions]:
    """Draw the root of each trajectory.

    For updates of the resolving player, roots are weighted also by the opponent's
    current probability of following.
    With targeting, the probability of a root is the mixture delta q_target +
    (1 - delta) q, and weights are divided by its quotient with q (Lisý et al. 2015).

    Args:
      tree: The subgame.
      batch: The updating player and the settings of the batch.
      strategy: Strategies that are played, float [A, R].
      draw: Random numbers in [0, 1), float [B].

    Returns:
      The index of each trajectory's root in `tree.root`, int32 [B]; and the front of
      all trajectories there.
    """
    resolves = batch.player == tree.resolving
    gadget = tree.gadget
    follow = jnp.where(gadget < len(tree.owner) - 1, strategy[FOLLOW, gadget], 1)
    reach = jnp.where(resolves, tree.share * follow, tree.share)
    total = reach.sum()
    scaled = reach / jnp.where(total > 0, total, 1)
    chance = jnp.where(total > 0, scaled, tree.share)
    weight = jnp.full(draw.shape, total / draw.size, draw.dtype)
    if tree.target is None:
        place = _locate(chance, draw)
    else:
        mass = jnp.where(tree.target, chance, 0).sum()
        delta = jnp.where(mass > 0, batch.config.delta, 0)
        gain = 1 - delta + delta * tree.target / jnp.where(mass > 0, mass, 1)
        place = _locate(chance * gain, draw)
        weight = weight / gain[place]
    return place, descent.TrajectoryPositions(tree.root[place], weight)


def _locate(chance: jax.Array, draw: jax.Array) -> jax.Array:
    """Draw indices by inversion from probabilities, int32 [B].

    Args:
      chance: Probabilities of the indices, float [K]; they need not sum to exactly 1.
      draw: Random numbers in [0, 1), float [B].
    """
    reached = jnp.cumsum(chance)
    draw = jnp.minimum(draw, descent.BELOW_ONE) * reached[-1]
    place = jnp.searchsorted(reached, draw, side="right")
    return jnp.minimum(place, len(chance) - 1).astype(jnp.int32)


@functools.cache
def jitted_run() -> Any:
    """Return the compiled loop, which is created once per process.

    Its call is `jitted_run()(problem, state, iterations, config=...)`, and it returns
    the state after these iterations.
    """
    return jitted_loop(step, options=quick_options())


def compilations() -> int:
    """Return the number of functions compiled so far for sampled subgames."""
    return int(jitted_run()._cache_size())
