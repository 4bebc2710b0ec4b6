"""Third stage: full-width solvers, the CFR family as one jitted step.

`init(trees)` and `step(trees, state)` are pure; `make_solver` jits the loop. Regrets
and strategies live in the state block by block (see `sequence_form.py`), so that
nothing is recomputed between iterations.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr import abstraction as buckets_lib
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import regret_matching, solver
from spiel_cr.cfr import shared_regrets as sharing_lib
from spiel_cr.common.checks import check_dtype
from spiel_cr.common.jax_utils import cast, precision, quick_options
from spiel_cr.sequence_form import layout, treeplex

Trees = tuple[treeplex.Treeplex, treeplex.Treeplex]
# How the players' infosets share regrets; None where they do not.
Sharings = tuple[sharing_lib.Sharing | None, sharing_lib.Sharing | None]

_ALONE: Sharings = (None, None)

# An iteration takes about this long for every entry of the payoff coupling (measured on
# CPUs), and faster code pays for its compile time in runs of more than these seconds.
_SECONDS_PER_PAYOFF = 3e-9
_SHORT_SECONDS = 2.0


class CFRState(NamedTuple):
    """State of a solve.

    Attributes:
      players: one driver.PlayerState each, in the order of updates.
      iteration: int scalar, iterations done.
      weight: float scalar, sum of their averaging weights in units of the last one.
    """

    players: tuple[solver.PlayerState, solver.PlayerState]
    iteration: jax.Array
    weight: jax.Array


def init(
    trees: Trees, *, sharings: Sharings = _ALONE, values: bool = False
) -> CFRState:
    """Both players start from the uniform strategy and zero regrets.

    Args:
      trees: each player's treeplex; numpy arrays give a state of numpy arrays.
      sharings: the players' buckets, likewise.
      values: keep the mean counterfactual values of infosets.
    """
    players = []
    for tree, sharing in zip(trees, sharings, strict=True):
        namespace = tree.root_source.__array_namespace__()
        uniform = treeplex.uniform_strategy(tree)
        reach = treeplex.reach(tree, uniform)
        dtype = reach.dtype
        infosets = sum(level.parent.shape[0] for level in tree.levels)
        if sharing is None:
            regrets = jax.tree.map(namespace.zeros_like, uniform)
        else:
            regrets = sharing_lib.initial_regrets(sharing)
        players.append(
            solver.PlayerState(
                strategy=uniform,
                regrets=regrets,
                reach=reach,
                average=namespace.zeros_like(reach),
                values=namespace.zeros(infosets, dtype=dtype) if values else None,
            )
        )
    iteration = namespace.zeros((), dtype=namespace.int32)
    weight = namespace.zeros((), dtype=dtype)
    return CFRState((players[0], players[1]), iteration, weight)


def step(
    trees: Trees,
    state: CFRState,
    *,
    config: algorithm_lib.CFRConfig,
    sharings: Sharings = _ALONE,
) -> CFRState:
    """One iteration: both players' regrets, next strategies and averages.

    A player's average takes in the strategy that it had before its update, as in
    OpenSpiel's solvers. So with alternating updates the mean `values` of the player who
    updates first belong exactly to the average strategy of the second; the other way
    round they are one iteration apart, an error of order 1/T.

    Args:
      trees: each player's treeplex; where updates alternate, the first one's player
        updates first (in OpenSpiel, player 0).
      state: the state to advance, players in the same order.
      config: algorithm.
      sharings: the players' buckets, in the same order.
    """
    iteration = state.iteration + 1
    t = iteration.astype(state.weight.dtype)
    # Weights t^gamma relative to the last one: their sum cannot overflow.
    weight = 1 + state.weight * ((t - 1) / t) ** config.gamma
    update = functools.partial(_update, config.rule, iteration=t, share=1 / weight)
    first = update(trees[0], sharings[0], state.players[0], state.players[1].reach)
    seen = first.reach if config.alternating else state.players[0].reach
    second = update(trees[1], sharings[1], state.players[1], seen)
    return CFRState((first, second), iteration, weight)


def _update(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    sharing: sharing_lib.Sharing | None,
    player: solver.PlayerState,
    other_reach: jax.Array,
    *,
    iteration: jax.Array,
    share: jax.Array,
) -> solver.PlayerState:
    """One player's pass up the tree (values, regrets) and down again (reach).

    Args:
      rule: regret rule.
      tree: the player's treeplex.
      sharing: its buckets.
      player: its state.
      other_reach: float [S'], the opponent's reach.
      iteration: float scalar, from 1.
      share: float scalar, weight of this iteration in the averages so far.
    """
    leaves = treeplex.leaf_values(tree, other_reach)
    before = player.strategy, player.regrets
    if sharing is None:
        swept = _sweep(rule, tree, *before, leaves, iteration)
    else:
        swept = sharing_lib.sweep(rule, tree, sharing, *before, leaves, iteration)
    values, new_regrets, new_strategy = swept
    means = player.values
    if means is not None and values:
        means = means + share * (jnp.concatenate(values[::-1]) - means)
    return solver.PlayerState(
        strategy=new_strategy,
        regrets=new_regrets,
        reach=treeplex.reach(tree, new_strategy),
        average=player.average + share * (player.reach - player.average),
        values=means,
    )


def _sweep(
    rule: regret_matching.Rule,
    tree: treeplex.Treeplex,
    old_strategy: treeplex.Blocks,
    old_regrets: treeplex.Blocks,
    leaves: jax.Array,
    iteration: jax.Array,
) -> tuple[list[jax.Array], treeplex.Blocks, treeplex.Blocks]:
    """The pass up the tree where every infoset keeps its own regrets.

    Returns:
      Infoset values [n] of each level, the last level first; new regrets and the next
      strategy.
    """
    child: treeplex.Level | None = None
    child_values: jax.Array | None = None
    strategy, regrets, values = [], [], []
    levels = zip(tree.levels, old_strategy, old_regrets, strict=True)
    for level, strategy_blocks, regret_blocks in reversed(list(levels)):
        actions = treeplex.values_below(level, leaves, child, child_values)
        blocks = zip(
            actions,
            strategy_blocks,
            regret_blocks,
            level.uniform,
            level.tolerance,
            strict=True,
        )
        updated = [update_block(rule, *block, iteration) for block in blocks]
        child, child_values = level, treeplex.join([u[0] for u in updated])
        values.append(child_values)
        regrets.append(tuple(u[1] for u in updated))
        strategy.append(tuple(u[2] for u in updated))
    return values, tuple(reversed(regrets)), tuple(reversed(strategy))


def update_block(
    rule: regret_matching.Rule,
    actions: jax.Array,
    strategy: jax.Array,
    regrets: jax.Array,
    uniform: jax.Array,
    tolerance: jax.Array,
    iteration: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Infoset values [n], new regrets [A, n] and next strategy [A, n] of a block."""
    if uniform.shape[0] == 1:
        return actions[0], regrets, strategy
    value = treeplex.sum_rows(strategy * actions)
    instantaneous = actions - value[None]
    return value, *regret_matching.update(
        rule, regrets, instantaneous, uniform, tolerance, iteration
    )


def _iterate(
    trees: Trees,
    sharings: Sharings,
    state: CFRState,
    iterations: jax.Array,
    *,
    config: algorithm_lib.CFRConfig,
) -> CFRState:
    return jax.lax.fori_loop(
        0,
        iterations,
        lambda _, s: step(trees, s, config=config, sharings=sharings),
        state,
    )


_run = jax.jit(_iterate, static_argnames="config")


@functools.cache
def _quick_run() -> Any:
    """`_run` compiled in half the time, for programs that run shortly."""
    options = quick_options()
    if options is None:
        return _run
    return jax.jit(_iterate, static_argnames="config", compiler_options=options)


def programs() -> int:
    """How many programs this process has compiled for full-width solvers."""
    runs = {_run, _quick_run()}
    return sum(run._cache_size() for run in runs)


def make_solver(
    form: layout.SequenceForm,
    *,
    config: algorithm_lib.CFRConfig,
    dtype: np.typing.DTypeLike = np.float64,
    values: bool = False,
    first: int = 0,
    planned: int | None = None,
    buckets: buckets_lib.Labels = (None, None),
) -> solver.Solver:
    """Puts a game on the device and compiles the program.

    Args:
      form: the game.
      config: the algorithm.
      dtype: float64 or float32.
      values: keep the mean counterfactual values of infosets.
      first: who updates first where updates alternate.
      planned: how many iterations will be run, if that is known; for short runs
        the program is compiled faster and runs slower.
      buckets: for each player int32 [I], the bucket of each logical infoset (see
        `buckets.labels_of`), or None.

    Raises:
      ValueError: another dtype.
    """
    dtype = check_dtype(dtype)
    # Padding included: games of one shape must choose the same program.
    room = sum(group.values.size for group in form.arrays[first].coupling)
    work = room * _SECONDS_PER_PAYOFF
    short = planned is not None and planned * work < _SHORT_SECONDS
    run = _quick_run() if short else _run
    # State and trees are in the order of updates, so that a program does not depend on
    # who is first.
    order = (first, 1 - first)
    shared = [sharing_lib.lay_out(form, p, buckets[p]) for p in order]
    host = cast((form.arrays[first], form.arrays[1 - first]), dtype)
    host_sharings: Sharings = cast((shared[0], shared[1]), dtype)
    with precision(dtype):
        trees: Trees = jax.device_put(host)
        sharings: Sharings = jax.device_put(host_sharings)

    def advance(state: CFRState, iterations: int) -> CFRState:
        count = jnp.asarray(iterations, jnp.int32)
        return run(trees, sharings, state, count, config=config)

    return solver.Solver(
        form,
        init(host, sharings=host_sharings, values=values),
        advance,
        config=config,
        dtype=dtype,
        first=first,
        buckets=buckets,
    )
