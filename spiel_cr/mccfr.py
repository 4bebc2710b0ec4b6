"""Third stage: Monte Carlo CFR, sampled solvers as one jitted step.

An iteration samples a batch of trajectories for each player (`trajectories.py`), takes
the mean of their estimates for the counterfactual values of actions, and from there on
is an iteration of the full-width family: the same regret rules on the same blocks
(`cfr.update_block`), the same averages. With a batch of one it is the textbook
algorithm of its scheme.

Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive games";
Schmid et al. 2019, "Variance reduction in Monte Carlo counterfactual regret
minimization (VR-MCCFR) for extensive form games using baselines"; Lisý et al. 2015,
"Online Monte Carlo counterfactual regret minimization for search in imperfect
information games".
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr import algorithm as algorithm_lib
from spiel_cr import (
    baselines,
    cfr,
    descent,
    draws,
    driver,
    sampling,
    trajectories,
    treeplex,
)
from spiel_cr import tree as tree_lib

__all__ = [
    "MCCFRState",
    "Problem",
    "init",
    "make_solver",
    "make_targeted_solver",
    "programs",
    "step",
]


class Problem(NamedTuple):
    """A game as sampled solvers take it.

    Attributes:
      trees: each player's treeplex; only its blocks are used.
      samples: the histories.
      points: float [D + 1, B], evenly spread points of which each iteration uses a
        randomly shifted copy; None where draws are independent.
      emphasis: float scalar, weight of each iteration's regrets and averages on top of
        what the algorithm gives it.
    """

    trees: tuple[treeplex.Treeplex, treeplex.Treeplex]
    samples: sampling.SampleTree
    points: jax.Array | None
    emphasis: jax.Array


class MCCFRState(NamedTuple):
    """State of a sampled solve.

    Attributes:
      players: one PlayerState each. With sampled averaging, `average` holds the mean
        contribution to each action instead of its reach.
      iteration: int scalar, iterations done.
      weight: float scalar, sum of their averaging weights in units of the last one.
      key: uint32 [2], of JAX's random numbers to come.
      baseline: see `baselines.py`.
      known: bool [T + A] or None, the incremental tree.
    """

    players: tuple[driver.PlayerState, driver.PlayerState]
    iteration: jax.Array
    weight: jax.Array
    key: jax.Array
    baseline: baselines.Table
    known: jax.Array | None


def init(
    problem: Problem,
    plan: sampling.Plan,
    config: algorithm_lib.MCCFRConfig,
    *,
    seed: int,
) -> MCCFRState:
    """Uniform strategies, zero regrets and baselines; numpy arrays.

    Args:
      problem: the game, numpy arrays.
      plan: from `sampling.build`.
      config: algorithm.
      seed: of all random numbers.
    """
    full = cfr.init(problem.trees)
    width = max(shape.width for shape in plan)
    dtype = np.dtype(full.weight.dtype)
    known = None
    if config.incremental:
        known = np.zeros(len(problem.samples.row_of) + width, bool)
    return MCCFRState(
        players=full.players,
        iteration=full.iteration,
        weight=full.weight,
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
        baseline=baselines.init(config.baseline, problem.samples, plan, dtype),
        known=known,  # type: ignore[arg-type]
    )


def step(
    problem: Problem,
    state: MCCFRState,
    *,
    plan: sampling.Plan,
    config: algorithm_lib.MCCFRConfig,
) -> MCCFRState:
    """One iteration: a batch of trajectories and an update for each player.

    Args:
      problem: the game.
      state: the state to advance.
      plan: from `sampling.build`.
      config: algorithm.
    """
    iteration = state.iteration + 1
    t = iteration.astype(state.weight.dtype)
    emphasis = problem.emphasis
    weight = emphasis + state.weight * ((t - 1) / t) ** config.gamma
    key, *keys = jax.random.split(jax.random.wrap_key_data(state.key), 3)
    players, baseline, known = list(state.players), state.baseline, state.known
    old = _strategy(problem, plan, state.players)
    for p in range(2):
        strategy = old
        if config.alternating and p:
            strategy = _strategy(problem, plan, (players[0], players[1]))
        if config.baseline == "oracle":
            baseline = baselines.refresh(problem.samples, plan, strategy)
        tables = descent.Tables(
            strategy=strategy,
            cumulative=_cumulative(problem, plan, state, p, config),
            baseline=baseline,
            known=known,
        )
        drawn, targeted = draws.draw(
            problem.points, keys[p], len(plan), config, strategy.dtype
        )
        shares = jnp.broadcast_to(emphasis / config.batch, config.batch)
        sample = trajectories.sample(
            problem.samples,
            tables,
            drawn,
            targeted if problem.samples.levels[0].target is not None else None,
            shares,
            plan=plan,
            player=p,
            config=config,
        )
        baseline, known = sample.baseline, sample.known
        players[p] = _update(
            problem, p, players[p], sample, config, iteration=t, weight=weight
        )
    return MCCFRState(
        players=(players[0], players[1]),
        iteration=iteration,
        weight=weight,
        key=jax.random.key_data(key),
        baseline=baseline,
        known=known,
    )


def _strategy(
    problem: Problem,
    plan: sampling.Plan,
    players: tuple[driver.PlayerState, driver.PlayerState],
) -> jax.Array:
    """float [T + A], strategies and chance probabilities by entry."""
    samples = problem.samples
    parts = []
    for player, positions in zip(players, samples.positions, strict=True):
        blocks = [b.reshape(-1) for level in player.strategy for b in level]
        by_position = jnp.concatenate([jnp.ones(1, player.reach.dtype), *blocks])
        parts.append(by_position[positions])
    width = max(shape.width for shape in plan)
    padding = jnp.zeros(width, samples.chance.dtype)
    return jnp.concatenate([*parts, samples.chance, padding])


def _cumulative(
    problem: Problem,
    plan: sampling.Plan,
    state: MCCFRState,
    player: int,
    config: algorithm_lib.MCCFRConfig,
) -> jax.Array | None:
    """float [T + A], the sum of a player's past reaches; only where it is needed."""
    if config.scheme != "average":
        return None
    samples = problem.samples
    sizes = [len(positions) for positions in samples.positions]
    total = state.weight * state.players[player].average[samples.positions[player]]
    before = jnp.zeros(player * sizes[0], total.dtype)
    entries = len(samples.row_of) + max(shape.width for shape in plan)
    after = jnp.zeros(entries - len(before) - len(total), total.dtype)
    return jnp.concatenate([before, total, after])


def _update(
    problem: Problem,
    player: int,
    state: driver.PlayerState,
    sample: trajectories.Sample,
    config: algorithm_lib.MCCFRConfig,
    *,
    iteration: jax.Array,
    weight: jax.Array,
) -> driver.PlayerState:
    """Regrets, next strategy and averages from sampled values."""
    share = problem.emphasis / weight
    tree = problem.trees[player]
    entries = problem.samples.entries[player]
    values = sample.values[entries]
    strategy, regrets = [], []
    begin = 1
    levels = zip(tree.levels, state.strategy, state.regrets, strict=True)
    for level, old_strategy, old_regrets in levels:
        new_strategy, new_regrets = [], []
        blocks = zip(
            old_strategy, old_regrets, level.uniform, level.tolerance, strict=True
        )
        for old, cumulative, uniform, tolerance in blocks:
            actions = values[begin : begin + uniform.size].reshape(uniform.shape)
            begin += uniform.size
            _, block_regrets, block = cfr.update_block(
                config.rule, actions, old, cumulative, uniform, tolerance, iteration
            )
            new_regrets.append(block_regrets)
            new_strategy.append(block)
        strategy.append(tuple(new_strategy))
        regrets.append(tuple(new_regrets))
    added = state.reach
    if sample.visits is not None:
        rows = jnp.append(problem.samples.row_of, len(problem.samples.row_of))
        flat = [b.reshape(-1) for level in state.strategy for b in level]
        by_position = jnp.concatenate([jnp.ones(1, added.dtype), *flat])
        # The visits are weighted by the emphasis already.
        added = sample.visits[rows[entries]] * by_position / problem.emphasis
    return driver.PlayerState(
        strategy=tuple(strategy),
        regrets=tuple(regrets),
        reach=treeplex.reach(tree, tuple(strategy)),
        average=state.average + share * (added - state.average),
        values=None,
    )


@functools.partial(jax.jit, static_argnames=("plan", "config"))
def _run(
    problem: Problem,
    state: MCCFRState,
    iterations: jax.Array,
    *,
    plan: sampling.Plan,
    config: algorithm_lib.MCCFRConfig,
) -> MCCFRState:
    return jax.lax.fori_loop(
        0, iterations, lambda _, s: step(problem, s, plan=plan, config=config), state
    )


def programs() -> int:
    """How many programs this process has compiled for sampled solvers."""
    return int(_run._cache_size())  # type: ignore[attr-defined]


def make_solver(
    tree: tree_lib.CompiledGame,
    *,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    target: np.ndarray | None = None,
    branch: np.ndarray | None = None,
) -> driver.Solver:
    """Puts a game on the device and compiles the program.

    Args:
      tree: the compiled game.
      config: the algorithm.
      dtype: float32 or float64.
      seed: of all random numbers; the same seed gives the same bits.
      target: bool [N], histories that a share `config.delta` of the trajectories is
        led to, see `sampling.build`.
      branch: bool [N], histories at which every trajectory follows all actions, such as
        the opponent's choices to terminate or follow in a gadget game.

    Raises:
      ValueError: another dtype, or arrays that do not fit the game.
    """
    return _make(tree, config, dtype, seed, target, branch)[0]


def make_targeted_solver(
    tree: tree_lib.CompiledGame,
    *,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    target: np.ndarray | None = None,
    branch: np.ndarray | None = None,
) -> tuple[driver.Solver, Callable[..., None]]:
    """As `make_solver`, and a function that moves the target between iterations.

    Online outcome sampling (Lisý et al. 2015) keeps solving one game while its target
    follows the match.

    Args:
      tree, config, dtype, seed, branch: as for `make_solver`.
      target: the first target; None: the whole game.

    Returns:
      The solver, and `aim(target, emphasis=1.0)`, where `target` is as above and
      `emphasis` weighs the iterations to come relative to those that were not
      emphasised (the paper increases the weight after each move of the target, others
      do not).
    """
    if target is None:
        target = np.ones(len(tree.histories), bool)
    return _make(tree, config, dtype, seed, target, branch)


def _make(
    tree: tree_lib.CompiledGame,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike,
    seed: int,
    target: np.ndarray | None,
    branch: np.ndarray | None,
) -> tuple[driver.Solver, Callable[..., None]]:
    dtype = algorithm_lib.check_dtype(dtype)
    everywhere = np.ones(len(tree.histories), bool)
    samples, plan = sampling.build(tree, target=target, branch=branch)
    points = None
    if config.draws == "lattice":
        points = draws.spread(len(plan), config.batch)
    arrays = (tree.form.arrays, samples, points, np.ones(()))
    host = driver.cast(arrays, dtype)
    with driver.precision(dtype):
        problems = [Problem(*jax.device_put(host))]

    def advance(state: MCCFRState, iterations: int) -> MCCFRState:
        count = jnp.asarray(iterations, jnp.int32)
        return _run(problems[0], state, count, plan=plan, config=config)

    def aim(target: np.ndarray | None, emphasis: float = 1.0) -> None:
        if not 0 < emphasis < np.inf:
            raise ValueError(f"emphasis={emphasis!r} must be positive and finite")
        moved = sampling.retarget(
            samples, tree, everywhere if target is None else target
        )
        with driver.precision(dtype):
            problems[0] = problems[0]._replace(
                samples=jax.device_put(driver.cast(moved, dtype)),
                emphasis=jnp.asarray(emphasis, dtype),
            )

    solver = driver.Solver(
        tree.form,
        init(Problem(*host), plan, config, seed=seed),
        advance,
        config=config,
        dtype=dtype,
        weighs_reach=config.averaging == "exact",
    )
    return solver, aim
