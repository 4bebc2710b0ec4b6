"""Third stage: Monte Carlo CFR, sampled solvers as one jitted step.

An iteration samples a batch of trajectories for each player (`trajectories.py`), takes
the mean of their estimates for the counterfactual values of actions, and from there on
is an iteration of the full-width family: the same regret rules on the same blocks
(`cfr.update_block`), the same averages. With a batch of one it is the textbook
algorithm of its scheme, with an exact average (`averaging=sampled` for the textbook's).

Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive games";
Schmid et al. 2019, "Variance reduction in Monte Carlo counterfactual regret
minimization (VR-MCCFR) for extensive form games using baselines"; Lisý et al. 2015,
"Online Monte Carlo counterfactual regret minimization for search in imperfect
information games".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr import abstraction as buckets_lib
from spiel_cr.cfr import cfr, shared_regrets
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.common.checks import check_dtype
from spiel_cr.common.jax_utils import cast, precision, spread
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import baselines, descent, draws, sample_tree, trajectories, update
from spiel_cr.sequence_form import layout, treeplex


class Problem(NamedTuple):
    """A game as sampled solvers take it.

    Attributes:
      trees: each player's treeplex; only its blocks are used.
      samples: the histories.
      points: float [D, B], evenly spread points of which each iteration uses a
        randomly shifted copy; None where draws are independent.
      iteration_weight: float scalar, weight of each iteration's regrets and averages on
        top of what the algorithm gives it.
      sharings: the players' buckets, None where infosets are alone.
    """

    trees: tuple[treeplex.Treeplex, treeplex.Treeplex]
    samples: sample_tree.SampleTree
    points: jax.Array | None
    iteration_weight: jax.Array
    sharings: cfr.Sharings = (None, None)


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
    plan: sample_tree.Plan,
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
    full = cfr.init(problem.trees, sharings=problem.sharings)
    width = sample_tree.max_width(plan)
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
    plan: sample_tree.Plan,
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
    iteration_weight = problem.iteration_weight
    weight = iteration_weight + state.weight * ((t - 1) / t) ** config.gamma
    key, *keys = jax.random.split(jax.random.wrap_key_data(state.key), 3)
    players, baseline, known = list(state.players), state.baseline, state.known
    samples = problem.samples
    old = update.strategy_table(samples, plan, state.players)
    for p in range(2):
        strategy = old
        if config.alternating and p:
            updated = (players[0], players[1])
            strategy = update.strategy_table(samples, plan, updated)
        if config.baseline == "oracle":
            baseline = baselines.refresh(samples, plan, strategy)
        tables = descent.Tables(
            strategy=strategy,
            cumulative=update.cumulative_table(
                samples, plan, state.players[p], state.weight, p, config
            ),
            baseline=baseline,
            known=known,
        )
        drawn, targeted = draws.draw(
            problem.points, keys[p], len(plan), config, strategy.dtype
        )
        shares = jnp.broadcast_to(iteration_weight / config.batch, config.batch)
        sample = trajectories.sample(
            samples,
            tables,
            drawn,
            targeted if samples.levels[0].target is not None else None,
            shares,
            plan=plan,
            player=p,
            config=config,
        )
        baseline, known = sample.baseline, sample.known
        players[p] = update.update_player(
            problem.trees[p],
            samples,
            p,
            players[p],
            sample,
            config.rule,
            iteration=t,
            weight=weight,
            iteration_weight=iteration_weight,
            sharing=problem.sharings[p],
        )
    return MCCFRState(
        players=(players[0], players[1]),
        iteration=iteration,
        weight=weight,
        key=jax.random.key_data(key),
        baseline=baseline,
        known=known,
    )


def _iterate(
    problem: Problem,
    state: MCCFRState,
    iterations: jax.Array,
    *,
    plan: sample_tree.Plan,
    config: algorithm_lib.MCCFRConfig,
) -> MCCFRState:
    return jax.lax.fori_loop(
        0, iterations, lambda _, s: step(problem, s, plan=plan, config=config), state
    )


def _program() -> Any:
    """A jitted function with a cache of its own; programs go when it goes."""

    def run(*arguments: Any, **options: Any) -> MCCFRState:
        return _iterate(*arguments, **options)

    return jax.jit(run, static_argnames=("plan", "config"))


_run = _program()
# For each solver that had a program alone, how many that were.
_alone: list[int] = []


def programs() -> int:
    """How many programs this process has compiled for sampled solvers."""
    return int(_run._cache_size()) + sum(_alone)


def make_solver(
    tree: CompiledGame,
    *,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    target: np.ndarray | None = None,
    branch: np.ndarray | None = None,
    buckets: buckets_lib.Labels = (None, None),
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
      buckets: for each player int32 [I], the bucket of each logical infoset (see
        `buckets.labels_of`), or None.

    Raises:
      ValueError: another dtype, or arrays that do not fit the game.
    """
    return _make(tree, config, dtype, seed, target, branch, buckets)[0]


def make_targeted_solver(
    tree: CompiledGame,
    *,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    target: np.ndarray | None = None,
    branch: np.ndarray | None = None,
    alone: bool = False,
) -> tuple[driver.Solver, Callable[..., None]]:
    """As `make_solver`, and a function that moves the target between iterations.

    Online outcome sampling (Lisý et al. 2015) keeps solving one game while its target
    follows the match. Where the other player's strategy never goes to the target, the
    trajectories do not either; the regret rule's `exploration` keeps that from
    happening.

    Args:
      tree, config, dtype, seed, branch: as for `make_solver`.
      alone: compile a program for this solver only, which goes when the solver goes:
        for games that are met once. Else programs stay as long as the process.
      target: the first target; None: the whole game.

    Returns:
      The solver, and `aim(target, iteration_weight=1.0)`, where `target` is as above
      and `iteration_weight` weighs the iterations to come relative to those before (the
      paper increases the weight after each move of the target, others do not).
    """
    if target is None:
        target = np.ones(len(tree.histories), bool)
    return _make(tree, config, dtype, seed, target, branch, alone=alone)


def _make(
    tree: CompiledGame,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike,
    seed: int,
    target: np.ndarray | None,
    branch: np.ndarray | None,
    buckets: buckets_lib.Labels = (None, None),
    alone: bool = False,
) -> tuple[driver.Solver, Callable[..., None]]:
    samples, plan = sample_tree.build(tree, target=target, branch=branch)
    options: dict[str, Any] = {"config": config, "dtype": dtype, "buckets": buckets}
    holder = [make_problem(tree.form, samples, plan, **options)]
    everywhere = np.ones(len(tree.histories), bool)

    def aim(target: np.ndarray | None, iteration_weight: float = 1.0) -> None:
        if not 0 < iteration_weight < np.inf:
            raise ValueError(
                f"iteration_weight={iteration_weight!r} must be positive and finite"
            )
        moved = sample_tree.retarget(
            samples, tree, everywhere if target is None else target
        )
        kind = holder[0].iteration_weight.dtype
        with precision(kind):
            holder[0] = holder[0]._replace(
                samples=jax.device_put(cast(moved, kind)),
                iteration_weight=jnp.asarray(iteration_weight, kind),
            )

    options.update(seed=seed, alone=alone)
    solver = solver_of(tree.form, lambda: holder[0], plan, **options)
    return solver, aim


def make_problem(
    form: layout.SequenceForm,
    samples: sample_tree.SampleTree,
    plan: sample_tree.Plan,
    config: algorithm_lib.MCCFRConfig,
    *,
    dtype: np.typing.DTypeLike,
    buckets: buckets_lib.Labels = (None, None),
) -> Problem:
    """Puts a game on the device.

    Args:
      form: the game in sequence form; only its decision trees are used.
      samples: its histories, numpy arrays.
      plan: from `sampling.build`.
      config: the algorithm.
      dtype: float32 or float64.
      buckets: as for `make_solver`.
    """
    dtype = check_dtype(dtype)
    points = None
    if config.draws == "sobol":
        points = spread(len(plan), config.batch)
    shared = tuple(shared_regrets.lay_out(form, p, buckets[p]) for p in range(2))
    host = cast((form.arrays, samples, points, np.ones(()), shared), dtype)
    with precision(dtype):
        return Problem(*jax.device_put(host))


def solver_of(
    form: layout.SequenceForm,
    problem: Callable[[], Problem],
    plan: sample_tree.Plan,
    *,
    config: algorithm_lib.MCCFRConfig,
    dtype: np.typing.DTypeLike,
    seed: int,
    buckets: buckets_lib.Labels = (None, None),
    alone: bool = False,
) -> driver.Solver:
    """A solver for a problem that may be exchanged for another of equal shapes.

    Args:
      form: the game.
      problem: gives what to iterate on; asked before every chunk of iterations.
      plan: from `sampling.build`.
      config: the algorithm.
      dtype: of the problem's arrays.
      seed: of all random numbers.
      buckets: those of the problem.
      alone: as for `make_targeted_solver`.
    """
    dtype = check_dtype(dtype)
    run = _program() if alone else _run

    def advance(state: MCCFRState, iterations: int) -> MCCFRState:
        count = jnp.asarray(iterations, jnp.int32)
        return run(problem(), state, count, plan=plan, config=config)

    host = jax.tree.map(np.asarray, problem())
    solver = driver.Solver(
        form,
        init(host, plan, config, seed=seed),
        advance,
        config=config,
        dtype=dtype,
        weighs_reach=config.averaging == "exact",
        buckets=buckets,
    )
    if alone:
        _alone.append(int(run._cache_size()))
    return solver
