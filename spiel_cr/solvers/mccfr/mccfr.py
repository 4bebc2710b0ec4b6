"""Monte Carlo CFR: sampled solvers as one compiled step function.

In this module, an iteration samples a batch of outcome-sampling trajectories for each
player (`trajectories.py`) and takes the mean of their estimates of the actions'
counterfactual values. The rest is an iteration of full-width CFR: the same regret rules
on the same blocks (`cfr.update_regrets`) and the same averages. The cost of an
iteration is the time for its trajectories *plus* time linear in the numbers of
sequences and chance outcomes of the game tree, however few are visited. The saving over
full-width CFR is the sum over terminal histories.

`visited.py` samples one trajectory at a time, with any sampling scheme, and updates
only visited infosets. `choice.py` chooses between the two. With a batch of one, both
produce the iterates of the scheme's textbook algorithm, with an exact average.
OpenSpiel's averages include only visited infosets, weighted by sampling, which is
biased.

Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive games";
Schmid et al. 2019, "Variance reduction in Monte Carlo counterfactual regret
minimization (VR-MCCFR) for extensive form games using baselines"; Lisý et al. 2015,
"Online Monte Carlo counterfactual regret minimization for search in imperfect
information games".
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_dtype, check_seed
from spiel_cr.common.jax_utils import cast, spread
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.cfr import cfr, shared_regrets
from spiel_cr.solvers.cfr.bucket_labels import Labels
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.cfr.regret_matching import Rule
from spiel_cr.solvers.cfr.solver import (
    PlayerState,
    Solver,
    SolverFunctions,
    StrategyReader,
    jitted_loop,
)
from spiel_cr.solvers.mccfr import (
    baselines,
    choice,
    descent,
    flat_tree,
    sample_tree,
    trajectories,
    visited,
)
from spiel_cr.solvers.mccfr import sobol_draws as draws


class SampledProblem(NamedTuple):
    """Game in the form that the compiled function uses.

    Attributes:
      trees: Treeplex of each player, of which only the blocks are used.
      samples: Histories by depth.
      points: Evenly spread points, of which each iteration uses a randomly shifted
        copy, float [D, B].
      shared: Buckets of each player, or None if infosets do not share regrets.
    """

    trees: cfr.Trees
    samples: sample_tree.SampleTree
    points: jax.Array
    shared: cfr.Shared


class MCCFRState(NamedTuple):
    """State of a sampled solve.

    Attributes:
      players: State of each player.
      iteration: Number of iterations completed, int scalar.
      weight: Sum of their averaging weights, float scalar, see `cfr.averaging`.
      key: Key of JAX's future random numbers, uint32 [2].
      baseline: Baselines, see `baselines.py`.
    """

    players: tuple[PlayerState, PlayerState]
    iteration: jax.Array
    weight: jax.Array
    key: jax.Array
    baseline: baselines.Table


def init(
    problem: SampledProblem,
    depths: sample_tree.Depths,
    config: MCCFRConfig,
    *,
    seed: int,
) -> MCCFRState:
    """Return uniform strategies, zero regrets and baselines, as numpy arrays.

    Args:
      problem: Game, as numpy arrays.
      depths: Facts about each depth, from `sample_tree.build`.
      config: Settings of the algorithm.
      seed: Seed for all random choices.
    """
    full = cfr.init(problem.trees, shared=problem.shared, custom=config.rule.custom)
    dtype = np.dtype(full.weight.dtype)
    return MCCFRState(
        players=full.players,
        iteration=full.iteration,
        weight=full.weight,
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
        baseline=baselines.init(config.baseline, problem.samples, depths, dtype),
    )


def step(
    problem: SampledProblem,
    state: MCCFRState,
    *,
    depths: sample_tree.Depths,
    config: MCCFRConfig,
) -> MCCFRState:
    """Perform one iteration: a batch of trajectories and an update for each player.

    Args:
      problem: Game in the form that the compiled function uses.
      state: State before the iteration.
      depths: Facts about each depth, from `sample_tree.build`.
      config: Settings of the algorithm.
    """
    iteration = state.iteration + 1
    t = iteration.astype(state.weight.dtype)
    samples = problem.samples
    weight, share = cfr.averaging(config, state.weight, t)
    key, *keys = jax.random.split(jax.random.wrap_key_data(state.key), 3)
    players, baseline = list(state.players), state.baseline
    strategy = strategy_table(samples, depths, state.players)
    for p in range(2):
        if config.alternating and p:
            strategy = strategy_table(samples, depths, (players[0], players[1]))
        batch = descent.Batch(
            strategy=strategy,
            explore=samples.balanced if config.explore == "balanced" else None,
            stride=1,
            player=p,
            config=config,
        )
        drawn = _draw(problem.points, keys[p])
        shares = jnp.full(config.batch, 1 / config.batch, t.dtype)
        sample = trajectories.sample(samples, depths, batch, baseline, drawn, shares)
        baseline = sample.baseline
        players[p] = update_player(
            problem, p, players[p], sample, config.rule, iteration=t, share=share
        )
    return MCCFRState(
        players=(players[0], players[1]),
        iteration=iteration,
        weight=weight,
        key=jax.random.key_data(key),
        baseline=baseline,
    )


def _draw(points: jax.Array, key: jax.Array) -> jax.Array:
    """Return random numbers in [0, 1), float [D, B], independent over depths.

    Args:
      points: First points of a Sobol sequence, float [D, B].
      key: Key of JAX's random numbers, which is consumed.
    """
    # Randomised quasi-Monte Carlo with a shifted point set (Cranley & Patterson 1976):
    # every trajectory's draws are uniform and independent over depths. They always have
    # single precision, so that runs in both dtypes are nearly the same.
    if points.shape[1] == 1:
        # A single trajectory uses the same random numbers as in `visited.py`.
        shift = draws.chunk(key, jnp.int32(0), len(points), 1)
    else:
        shift = jax.random.uniform(key, (len(points), 1), jnp.float32)
    return ((points.astype(jnp.float32) + shift) % 1).astype(points.dtype)


def strategy_table(
    samples: sample_tree.SampleTree,
    depths: sample_tree.Depths,
    players: tuple[PlayerState, PlayerState],
) -> jax.Array:
    """Return strategies and chance probabilities by entry, float [T + A].

    Args:
      samples: Histories by depth.
      depths: Facts about each depth, from `sample_tree.build`.
      players: States of both players.
    """
    parts = [
        _by_position(player)[positions]
        for player, positions in zip(players, samples.positions, strict=True)
    ]
    padding = jnp.zeros(sample_tree.max_width(depths), samples.chance.dtype)
    return jnp.concatenate([*parts, samples.chance, padding])


def update_player(
    problem: SampledProblem,
    player: int,
    state: PlayerState,
    sample: trajectories.Sample,
    rule: Rule,
    *,
    iteration: jax.Array,
    share: jax.Array,
) -> PlayerState:
    """Update regrets, strategy and averages of a player by sampled values.

    Args:
      problem: Game in the form that the compiled function uses.
      player: Player to update.
      state: State of the player before the update.
      sample: Result of a batch for this player.
      rule: Regret rule.
      iteration: Number of the iteration from 1, float scalar.
      share: Weight of this iteration in the averages so far, float scalar.
    """
    samples, tree = problem.samples, problem.trees[player]
    values = sample.values[samples.entries[player]]
    parts = treeplex.by_level(tree.levels, values)
    actions = [level.split(x) for level, x in zip(tree.levels, parts, strict=True)]
    means = list(map(treeplex.infoset_values, state.strategy, actions))
    regrets, next_strategy = cfr.update_regrets(
        rule, tree, problem.shared[player], state, actions, means, iteration
    )
    return PlayerState(
        strategy=next_strategy,
        regrets=regrets,
        reach=treeplex.reach(tree, next_strategy),
        average=state.average + share * (state.reach - state.average),
        values=None,
    )


def _by_position(state: PlayerState) -> jax.Array:
    """Return the current strategy, float [size]; 1 at the empty sequence."""
    blocks = [block.reshape(-1) for level in state.strategy for block in level]
    return jnp.concatenate([jnp.ones(1, state.reach.dtype), *blocks])


# Keyed by the result of `choice.visits_only`; if True, `depths` is the number of
# depths.
_static = ("depths", "config")
_runs = {
    False: jitted_loop(step, static=_static),
    True: jitted_loop(visited.step, static=_static, fused=True, in_place=True),
}


def compilations() -> int:
    """Return how many functions this process has compiled for sampling solvers."""
    return sum(run._cache_size() for run in _runs.values())


def make_solver(
    tree: GameTree,
    *,
    config: MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    target: np.ndarray | None = None,
    buckets: Labels = (None, None),
) -> Solver:
    """Return a sampling solver of a game, with its arrays on the device.

    Args:
      tree: Game tree.
      config: Settings of the algorithm.
      dtype: Arithmetic, float32 or float64.
      seed: Seed for all random choices; the same seed gives bitwise identical results.
      target: Histories that a share `config.delta` of the trajectories must pass
        through, bool [N]; None: no target.
      buckets: Bucket of each logical infoset (see `bucket_labels.labels_of`), int32 [I]
        or None for each player.

    Raises:
      ValueError: If the dtype or the seed is invalid, the target does not fit the game,
        or settings are incompatible.
    """
    dtype, seed = check_dtype(dtype), check_seed(seed)
    columns = sample_tree.columns_of(tree)
    visiting = choice.visits_only(
        config,
        len(columns.balanced),
        targets=target is not None,
        buckets=any(labels is not None for labels in buckets),
    )
    exponent = _exponent(tree)
    depths: Any = len(tree.histories.by_depth)
    reader: StrategyReader | None = None
    if visiting:
        problem: Any = cast(flat_tree.build(tree, columns, exponent, target), dtype)
        state: Any = visited.init(problem, columns.chance, config, dtype, seed)
        reader = visited.reader(tree, problem)
    else:
        problem, depths = problem_of(tree, config, dtype, buckets)
        state = init(problem, depths, config, seed=seed)
    program = SolverFunctions(
        functools.partial(_runs[visiting], depths=depths),
        config,
        dtype,
        exponent=exponent,
        reader=reader,
        consumes=visiting,
    )
    return Solver(tree.sequence_form, problem, state, program, buckets=buckets)


def _exponent(tree: GameTree) -> int:
    return treeplex.exponent_of([float(np.abs(tree.histories.utility).max(initial=0))])


def problem_of(
    tree: GameTree,
    config: MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    buckets: Labels = (None, None),
) -> tuple[SampledProblem, sample_tree.Depths]:
    """Return the arguments of `init` and `step`: numpy arrays, and depths.

    Args:
      tree: Game tree.
      config: Settings of the algorithm.
      dtype: Arithmetic, float32 or float64; payoffs are divided by a power of two.
      buckets: Buckets as in `make_solver`.
    """
    dtype, columns = check_dtype(dtype), sample_tree.columns_of(tree)
    exponent = _exponent(tree)
    # With a batch of one, the shifted point is an ordinary uniform random number.
    points = spread(len(tree.histories.by_depth), config.batch)
    samples, depths = sample_tree.build(tree, columns, exponent)
    trees = tuple(
        treeplex.rescale(arrays, exponent) for arrays in tree.sequence_form.arrays
    )
    shared = tuple(
        shared_regrets.lay_out(tree.sequence_form, p, buckets[p], exponent)
        for p in range(2)
    )
    return SampledProblem(*cast((trees, samples, points, shared), dtype)), depths


def reseed(solver: Solver, seed: int) -> None:
    """Replace the future random numbers of a solver.

    Args:
      solver: Result of `make_solver`.
      seed: Seed for all random choices from now on.
    """
    key = jax.random.key_data(jax.random.key(seed))
    solver.state = solver.state._replace(key=jax.device_put(key))


def aim(solver: Solver, tree: GameTree, target: np.ndarray | None) -> None:
    """Move the target of a solver between iterations.

    Online outcome sampling (Lisý et al. 2015) keeps solving one game while its target
    follows the match. If the other player's strategy never leads to the target, the
    trajectories do not either; the `exploration` of the regret rule prevents that.

    Args:
      solver: Result of `make_solver` with a target.
      tree: Game tree of the solver.
      target: Target as in `make_solver`, bool [N]; None: the complete game.

    Raises:
      ValueError: If the target does not fit the game.
    """
    if target is None:
        target = np.ones(len(tree.histories), bool)
    allowed = jax.device_put(sample_tree.leads_to(tree, target))
    solver.problem = solver.problem._replace(target=allowed)
