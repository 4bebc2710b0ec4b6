"""Full-width CFR as one jitted step.

`init(trees)` and `step(trees, state)` are pure; `make_solver` jits the loop. The state
stores regrets and strategies in blocks (see `games/sequence_form/treeplex.py`), so that
nothing is recomputed between iterations.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_choice, check_dtype
from spiel_cr.common.jax_utils import cast, on_device, precision, quick_options
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.solvers.cfr import regret_matching, shared_regrets
from spiel_cr.solvers.cfr.bucket_labels import Labels
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.cfr.shared_regrets import SharedRegrets
from spiel_cr.solvers.cfr.solver import (
    PlayerState,
    Solver,
    SolverFunctions,
    Start,
    jitted_loop,
)

Trees = tuple[treeplex.Treeplex, treeplex.Treeplex]
# Shared regrets of each player; None: infosets do not share regrets.
Shared = tuple[SharedRegrets | None, SharedRegrets | None]
# Compared with "optimised", "fast" halves the compile time and slows iterations down by
# up to a half; "once" needs a fifth of the compile time, and iterations take two to
# three times as long.
Compile = Literal["once", "fast", "optimised"]

_ALONE: Shared = (None, None)

# Seconds of an iteration per entry of the payoff coupling (measured on CPUs), and of
# the shortest run in which optimised code saves more than its compile time.
_SECONDS_PER_PAYOFF = 3e-9
_SHORT_SECONDS = 2.0
# "once" saves about three times this compared with "fast".
_ONCE_SECONDS = 0.1
# Number of sequences above which a solver's state is overwritten in place.
_LARGE_STATE = 2_000_000


class CFRState(NamedTuple):
    """State of a solve.

    Attributes:
      players: State of each player, in the order of updates.
      iteration: Number of iterations completed, int scalar.
      weight: Sum of the averaging weights of all iterations, in units of the last
        weight, float scalar; see `averaging`.
    """

    players: tuple[PlayerState, PlayerState]
    iteration: jax.Array
    weight: jax.Array


def init(
    trees: Trees,
    *,
    shared: Shared = _ALONE,
    values: bool = False,
    custom: regret_matching.CustomRule | None = None,
) -> CFRState:
    """Return the first state: uniform strategies and zero regrets.

    Args:
      trees: Treeplex of each player; numpy arrays give a state of numpy arrays.
      shared: Shared regrets of each player, in the same type of arrays.
      values: Whether to keep the mean counterfactual values of infosets.
      custom: Custom rule, whose states replace regrets.
    """
    players = []
    for tree, buckets in zip(trees, shared, strict=True):
        namespace = tree.root_source.__array_namespace__()
        uniform = treeplex.uniform_strategy(tree)
        reach = treeplex.reach(tree, uniform)
        dtype = reach.dtype
        infosets = sum(level.num_infosets for level in tree.levels)
        blocks = uniform if buckets is None else (buckets.uniform,)
        players.append(
            PlayerState(
                strategy=uniform,
                regrets=jax.tree.map(
                    custom.first if custom else namespace.zeros_like, blocks
                ),
                reach=reach,
                average=namespace.zeros_like(reach),
                values=namespace.zeros(infosets, dtype=dtype) if values else None,
            )
        )
    iteration = namespace.zeros((), dtype=namespace.int32)
    weight = namespace.zeros((), dtype=dtype)
    return CFRState((players[0], players[1]), iteration, weight)


def step(
    trees: Trees, state: CFRState, *, config: CFRConfig, shared: Shared = _ALONE
) -> CFRState:
    """Run one iteration: update both players' regrets, strategies and averages.

    A player's average includes the strategy that the player had before its update, as
    in OpenSpiel's solvers. With alternating updates, the mean `values` of the player
    that updates first therefore belong exactly to the average strategy of the second
    player. The mean values of the second player are against strategies that are one
    iteration newer than those in the first player's average, which is an error of order
    1/T.

    Args:
      trees: Treeplex of each player, in the order of updates; the order matters only
        for alternating updates (in OpenSpiel, player 0 updates first).
      state: State to advance, with players in the same order.
      config: Settings of the algorithm.
      shared: Shared regrets of each player, in the same order.
    """
    iteration = state.iteration + 1
    t = iteration.astype(state.weight.dtype)
    weight, share = averaging(config, state.weight, t)
    update = functools.partial(update_player, config.rule, iteration=t, share=share)
    first = update(trees[0], shared[0], state.players[0], state.players[1].reach)
    seen = first.reach if config.alternating else state.players[0].reach
    second = update(trees[1], shared[1], state.players[1], seen)
    return CFRState((first, second), iteration, weight)


def averaging(
    config: CFRConfig | MCCFRConfig, weight: jax.Array, t: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the sum of averaging weights, and the share of an iteration in it.

    Args:
      config: Settings of the algorithm.
      weight: Sum of the weights of all iterations before, float scalar: in units of the
        last weight; absolute if the weights are a function of the user.
      t: Number of the iteration, from 1, float scalar.
    """
    if config.weights is None:
        # Weights t^gamma relative to the last one: their sum cannot overflow.
        weight = 1 + weight * ((t - 1) / t) ** config.gamma
        return weight, 1 / weight
    last = jnp.asarray(config.weights.call(t), weight.dtype)
    weight = weight + last
    return weight, jnp.where(weight > 0, last / jnp.where(weight > 0, weight, 1), 1)


def update_player(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    shared: SharedRegrets | None,
    player: PlayerState,
    other_reach: jax.Array,
    *,
    iteration: jax.Array,
    share: jax.Array,
) -> PlayerState:
    """Run one player's pass up the tree (values and regrets) and down again (reach).

    All values are computed under the strategy before the update, so infosets of several
    levels may share a bucket.

    Args:
      rule: Regret rule.
      tree: Treeplex of the player.
      shared: Shared regrets of the player, or None if infosets do not share regrets.
      player: State of the player.
      other_reach: Reach of the opponent, float [S'].
      iteration: Number of the iteration, from 1, float scalar.
      share: Weight of this iteration in the averages so far, float scalar.
    """
    leaves = treeplex.leaf_values(tree, other_reach)
    actions, means, values = treeplex.expected_values(tree, player.strategy, leaves)
    mean_values = player.values
    if mean_values is not None and values:
        mean_values += share * (jnp.concatenate(values) - mean_values)
    regrets, next_strategy = update_regrets(
        rule, tree, shared, player, actions, means, iteration
    )
    shares = share
    if rule.weighs_infosets:
        shares = _infoset_shares(tree, shared, regrets)
    average = player.average + shares * (player.reach - player.average)
    return PlayerState(
        strategy=next_strategy,
        regrets=regrets,
        # The empty sequence's average is 1. Reading it from `average` makes XLA compute
        # the next reach after the last use of this one, so it can reuse the memory.
        reach=treeplex.reach(tree, next_strategy, average[:1]),
        average=average,
        values=mean_values,
    )


def update_regrets(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    shared: SharedRegrets | None,
    player: PlayerState,
    actions: Sequence[Sequence[jax.Array]],
    means: Sequence[Sequence[jax.Array]],
    iteration: jax.Array,
) -> tuple[treeplex.Blocks, treeplex.Blocks]:
    """Add the regrets of an iteration and match the sums.

    Args:
      rule: Regret rule.
      tree: Treeplex of the player; only its blocks are used.
      shared: Shared regrets of the player, or None if infosets do not share regrets.
      player: State of the player; only its regrets and strategy are used.
      actions: Counterfactual values of actions, or estimates of them, [A, n] per block.
      means: Values of infosets, [n] per block.
      iteration: Number of the iteration, from 1, float scalar.

    Returns:
      The new regrets and the next strategy.
    """
    gains = [
        [action - mean[None] for action, mean in zip(*level, strict=True)]
        for level in zip(actions, means, strict=True)
    ]
    if shared is not None:
        return shared_regrets.update(
            rule, tree, shared, player.regrets, gains, iteration
        )
    levels = [
        regret_matching.update_blocks(
            rule, old, kept, new, level.uniform, level.tolerance, iteration
        )
        for old, kept, new, level in zip(
            player.regrets, player.strategy, gains, tree.levels, strict=True
        )
    ]
    played = zip(tree.levels, levels, strict=True)
    return (
        tuple(level[0] for level in levels),
        tuple(treeplex.keep_locked(level, new[1]) for level, new in played),
    )


def _infoset_shares(
    tree: treeplex.Treeplex, shared: SharedRegrets | None, states: Any
) -> jax.Array:
    """Return the share of the last iteration in the average by position, float [S].

    With such shares, the average of a sequence is the weighted mean of its reach with
    the weights of its infoset. Only its proportions at each infoset have a meaning.

    Args:
      tree: Treeplex of the player; only its blocks are used.
      shared: Shared regrets of the player, or None if infosets do not share regrets.
      states: State of the rule for each block of each level, or of buckets.
    """
    levels: Any = [shared] if shared is not None else tree.levels
    parts = [
        jnp.broadcast_to(state.share, (len(uniform), state.share.shape[1])).reshape(-1)
        for level, blocks in zip(levels, states, strict=True)
        for uniform, state in zip(level.uniform, blocks, strict=True)
    ]
    # The reach of the empty sequence is read from its average, which must be 1; padding
    # may have any share.
    one = jnp.ones(1, parts[0].dtype)
    if shared is not None:
        table = jnp.concatenate([*parts, one])
        parts = [table[into] for into in shared.into]
    return treeplex.join([one, *parts])


def _step(
    problem: tuple[Trees, Shared], state: CFRState, *, config: CFRConfig
) -> CFRState:
    trees, shared = problem
    return step(trees, state, config=config, shared=shared)


_loop = functools.partial(jitted_loop, _step)
_run = _loop()


@functools.cache
def _run_in_place() -> Any:
    """Return `_run` for large games: it overwrites the arrays of the state.

    Its options reduce the compile time by a third. On Rhode Island Hold'em, phantom
    tic-tac-toe and a turn, its iterations take the same time or slightly less.
    """
    return _loop(in_place=True, options=quick_options())


@functools.cache
def _quick_run(how: Compile) -> Any:
    """Return `_run` compiled in less time, for runs of few iterations."""
    options = quick_options(optimise=how != "once")
    return _run if options is None else _loop(options=options)


def compilations() -> int:
    """Return how many functions were compiled for full-width solvers so far."""
    runs = {_run, _run_in_place(), _quick_run("fast"), _quick_run("once"), on_device}
    return sum(run._cache_size() for run in runs)


def compile_for(
    form: layout.SequenceForm, iterations: int, *, once: bool = False
) -> Compile:
    """Choose how to compile the function for a run of some iterations.

    The estimate includes padding, so games of the same shape share one compiled
    function.

    Args:
      form: The game in sequence form.
      iterations: Number of iterations of the run.
      once: Whether the compiled function is used for this run only.
    """
    payoffs = sum(group.num_payoffs for group in form.arrays[0].coupling)
    seconds = iterations * payoffs * _SECONDS_PER_PAYOFF
    if once and seconds < _ONCE_SECONDS:
        return "once"
    return "fast" if seconds < _SHORT_SECONDS else "optimised"


def make_solver(
    form: layout.SequenceForm,
    *,
    config: CFRConfig,
    dtype: np.typing.DTypeLike = np.float64,
    values: bool = False,
    first: int = 0,
    compile: Compile = "optimised",
    buckets: Labels = (None, None),
    put: Callable[[Any], Any] = jax.device_put,
) -> Solver:
    """Put a game on the device and compile the solver's function.

    Args:
      form: The game in sequence form.
      config: Settings of the algorithm.
      dtype: Data type of the arithmetic, float64 or float32.
      values: Whether to keep the mean counterfactual values of infosets.
      first: Player that updates first in alternating updates.
      compile: "optimised", or "fast" or "once" for short runs (see `compile_for`).
      buckets: Bucket of each logical infoset, int32 [I], or None, for each player (see
        `bucket_labels.labels_of`).
      put: Function that puts arrays on the device; `jax_utils.on_device` if many games
        have the same shapes.

    Raises:
      ValueError: If the dtype or the value of `compile` is not supported, or a rule
        that weighs infosets would need `values`.
    """
    dtype = check_dtype(dtype)
    check_choice(compile, "compile", get_args(Compile))
    if values and config.rule.weighs_infosets:
        raise ValueError(
            f"algorithm={config.name!r}: its averages weigh infosets differently, so "
            f"infosets have no mean values; use one such as 'cfr+'"
        )
    # State and trees are in the order of updates, so that the compiled function does
    # not depend on which player is first.
    order = (first, 1 - first)
    custom = config.rule.custom
    exponent = treeplex.exponent_of(map(treeplex.largest_payoff, form.arrays))
    if custom is not None and custom.raw:
        exponent = 0
    trees = tuple(treeplex.rescale(form.arrays[p], exponent) for p in order)
    shared = tuple(shared_regrets.lay_out(form, p, buckets[p], exponent) for p in order)
    problem = cast((trees, shared), dtype)
    # In large games a second copy of the state would need most of the memory.
    large = sum(positions.size for positions in form.layouts) > _LARGE_STATE
    optimised = _run_in_place() if large else _run

    def start(problem: tuple[Trees, Shared]) -> CFRState:
        trees, shared = problem
        return init(trees, shared=shared, values=values, custom=custom)

    state: CFRState | Start
    if large:
        # The state is created on the device, by a function that runs once.
        with precision(dtype):
            problem = jax.device_put(problem)
        options = quick_options(optimise=False)
        state = Start(jax.jit(start, compiler_options=options), problem)
    else:
        state = start(problem)
    return Solver(
        form,
        problem,
        state,
        SolverFunctions(
            optimised if compile == "optimised" else _quick_run(compile),
            config,
            dtype,
            exponent=exponent,
            first=first,
            consumes=large and compile == "optimised",
        ),
        buckets=buckets,
        put=put,
    )
