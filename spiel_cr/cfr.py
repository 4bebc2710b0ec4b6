"""Third stage: full-width solvers, the CFR family as one jitted step.

`init(trees)` and `step(trees, state)` are pure; `Solver` jits the loop, keeps compile
time apart and shows progress. Regrets and strategies live in the state block by block
(see `sequence_form.py`), so that nothing is recomputed between iterations.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr import algorithm as algorithm_lib
from spiel_cr import policy as policy_lib
from spiel_cr import regret, sequence_form, treeplex

__all__ = ["CFRState", "PlayerState", "Solver", "init", "step"]

Trees = tuple[treeplex.Treeplex, treeplex.Treeplex]

# The clock is looked at between chunks of about this many seconds.
_CHUNK_SECONDS = 0.25

# An iteration takes about this long for every entry of the payoff coupling (measured on
# CPUs), and faster code pays for its compile time in runs of more than these seconds.
_SECONDS_PER_PAYOFF = 3e-9
_SHORT_SECONDS = 2.0


class PlayerState(NamedTuple):
    """What one player's regret minimiser remembers.

    Attributes:
      strategy: current behaviour strategy, [A, n] a block.
      regrets: cumulative counterfactual regrets, [A, n] a block, the game's units.
      reach: float [S], own reach of every position under `strategy`.
      average: float [S], weighted mean over the iterations of `reach`: the average
        strategy in sequence form.
      values: float [I], weighted mean over the iterations of every infoset's
        counterfactual value (own perspective, the game's units) *under the iterates*,
        with the same weights; None where they were not asked for. Continual resolving
        needs these: values of the average strategy would be meaningless where the
        owner's own reach is zero.
    """

    strategy: treeplex.Blocks
    regrets: treeplex.Blocks
    reach: jax.Array
    average: jax.Array
    values: jax.Array | None


class CFRState(NamedTuple):
    """State of a solve.

    Attributes:
      players: one PlayerState each, in the order of updates.
      iteration: int scalar, iterations done.
      weight: float scalar, sum of their averaging weights in units of the last one.
    """

    players: tuple[PlayerState, PlayerState]
    iteration: jax.Array
    weight: jax.Array


def init(trees: Trees, *, values: bool = False) -> CFRState:
    """Both players start from the uniform strategy and zero regrets.

    Args:
      trees: each player's treeplex; numpy arrays give a state of numpy arrays.
      values: keep the mean counterfactual values of infosets.
    """
    players = []
    for tree in trees:
        namespace = tree.root_source.__array_namespace__()
        uniform = treeplex.uniform_strategy(tree)
        reach = treeplex.reach(tree, uniform)
        dtype = reach.dtype
        infosets = sum(level.parent.shape[0] for level in tree.levels)
        players.append(
            PlayerState(
                strategy=uniform,
                regrets=jax.tree.map(namespace.zeros_like, uniform),
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
    """
    iteration = state.iteration + 1
    t = iteration.astype(state.weight.dtype)
    # Weights t^gamma relative to the last one: their sum cannot overflow.
    weight = 1 + state.weight * ((t - 1) / t) ** config.gamma
    update = functools.partial(_update, config.rule, iteration=t, share=1 / weight)
    first = update(trees[0], state.players[0], state.players[1].reach)
    seen = first.reach if config.alternating else state.players[0].reach
    second = update(trees[1], state.players[1], seen)
    return CFRState((first, second), iteration, weight)


def _update(
    rule: regret.Rule,
    tree: treeplex.Treeplex,
    player: PlayerState,
    other_reach: jax.Array,
    *,
    iteration: jax.Array,
    share: jax.Array,
) -> PlayerState:
    """One player's pass up the tree (values, regrets) and down again (reach).

    Args:
      rule: regret rule.
      tree: the player's treeplex.
      player: its state.
      other_reach: float [S'], the opponent's reach.
      iteration: float scalar, from 1.
      share: float scalar, weight of this iteration in the averages so far.
    """
    leaves = treeplex.leaf_values(tree, other_reach)
    child: treeplex.Level | None = None
    child_values: jax.Array | None = None
    strategy, regrets, values = [], [], []
    levels = zip(tree.levels, player.strategy, player.regrets, strict=True)
    for level, old_strategy, old_regrets in reversed(list(levels)):
        actions = treeplex.values_below(level, leaves, child, child_values)
        blocks = zip(
            actions,
            old_strategy,
            old_regrets,
            level.uniform,
            level.tolerance,
            strict=True,
        )
        updated = [_update_block(rule, *block, iteration) for block in blocks]
        child, child_values = level, treeplex.join([u[0] for u in updated])
        values.append(child_values)
        regrets.append(tuple(u[1] for u in updated))
        strategy.append(tuple(u[2] for u in updated))
    new_strategy = tuple(reversed(strategy))
    means = player.values
    if means is not None and values:
        means = means + share * (jnp.concatenate(values[::-1]) - means)
    return PlayerState(
        strategy=new_strategy,
        regrets=tuple(reversed(regrets)),
        reach=treeplex.reach(tree, new_strategy),
        average=player.average + share * (player.reach - player.average),
        values=means,
    )


def _update_block(
    rule: regret.Rule,
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
    instantaneous = actions - value
    return value, *regret.update(
        rule, regrets, instantaneous, uniform, tolerance, iteration
    )


def _iterate(
    trees: Trees,
    state: CFRState,
    iterations: jax.Array,
    *,
    config: algorithm_lib.CFRConfig,
) -> CFRState:
    return jax.lax.fori_loop(
        0, iterations, lambda _, s: step(trees, s, config=config), state
    )


_run = jax.jit(_iterate, static_argnames="config")


@functools.cache
def _quick_run() -> Callable[..., CFRState]:
    """`_run` compiled in half the time, for programs that run shortly.

    XLA's older CPU emitters give slower code (by a quarter to a half) but compile twice
    as fast. Where this jaxlib has no such option, it is `_run`.
    """
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(np.int32(0))
    except jax.errors.JaxRuntimeError:
        return _run
    return jax.jit(_iterate, static_argnames="config", compiler_options=options)


class Solver:
    """Drives the jitted loop for one game; holds the state between calls.

    Double precision is switched on inside its methods only, so the caller's JAX
    configuration does not change.

    Attributes:
      form: the game.
      config: the algorithm.
      dtype: float64 (default) or float32.
      compile_seconds: time spent tracing and compiling so far.
      seconds: time spent iterating so far.
    """

    def __init__(
        self,
        form: sequence_form.SequenceForm,
        *,
        config: algorithm_lib.CFRConfig,
        dtype: np.typing.DTypeLike = np.float64,
        values: bool = False,
        first: int = 0,
        planned: int | None = None,
    ) -> None:
        """Puts the game on the device and compiles the program.

        Args:
          form: the game.
          config: the algorithm.
          dtype: float64 or float32.
          values: keep the mean counterfactual values of infosets.
          first: who updates first where updates alternate.
          planned: how many iterations will be run, if that is known; for short runs
            the program is compiled faster and runs slower.

        Raises:
          ValueError: another dtype.
        """
        self.form = form
        # State and trees are in the order of updates, so that a program does not
        # depend on who is first.
        self._order = (first, 1 - first)
        self.config = config
        self.dtype = algorithm_lib.check_dtype(dtype)
        self.compile_seconds = 0.0
        self.seconds = 0.0
        host = jax.tree.map(self._cast, (form.arrays[first], form.arrays[1 - first]))
        with self._precision():
            self._trees: Trees = jax.device_put(host)
            self._state = jax.device_put(init(host, values=values))
        started = time.perf_counter()
        work = len(form.payoffs.values) * _SECONDS_PER_PAYOFF
        short = planned is not None and planned * work < _SHORT_SECONDS
        self._run = _quick_run() if short else _run
        self._advance(0)
        self.compile_seconds = time.perf_counter() - started

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return int(self._state.iteration)

    @property
    def state(self) -> CFRState:
        """The state, as pure functions take it."""
        return self._state

    def restore(self, leaves: Sequence[np.ndarray], *, seconds: float) -> None:
        """Puts back a state that was taken apart by `jax.tree.leaves`.

        Args:
          leaves: the arrays of a state of the same game, dtype and options.
          seconds: time that was spent iterating before.

        Raises:
          ValueError: the arrays do not fit this game.
        """
        mine, structure = jax.tree.flatten(self._state)
        shapes = [(leaf.shape, leaf.dtype) for leaf in mine]
        if shapes != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError("the state is one of another game, dtype or solver option")
        with self._precision():
            arrays = jax.device_put(list(leaves))
        self._state = jax.tree.unflatten(structure, arrays)
        self.seconds = seconds

    def run(
        self,
        iterations: int,
        *,
        after_chunk: Callable[[int], bool | None] | None = None,
    ) -> bool:
        """Iterates.

        Args:
          iterations: how many more.
          after_chunk: called after every chunk of about a quarter of a second with the
            number of iterations in it; returns True to stop.

        Returns:
          Whether `after_chunk` stopped it.
        """
        done, chunk = 0, 1
        while done < iterations:
            chunk = min(chunk, iterations - done)
            started = time.perf_counter()
            self._advance(chunk)
            elapsed = time.perf_counter() - started
            self.seconds += elapsed
            done += chunk
            if after_chunk is not None and after_chunk(chunk):
                return True
            chunk = max(1, int(chunk * min(8.0, _CHUNK_SECONDS / max(elapsed, 1e-9))))
        return False

    def average(self, player: int) -> np.ndarray:
        """float64 [S], the average strategy in sequence form, by logical sequence."""
        return self._sequences(player, self._player(player).average)

    def average_behaviour(self, player: int) -> np.ndarray:
        """float64 [S], the average strategy's action probabilities."""
        decisions = self.form.decisions[player]
        return policy_lib.behaviour_from_reach(decisions, self.average(player))

    def current_behaviour(self, player: int) -> np.ndarray:
        """float64 [S], the last iterate's action probabilities, by logical sequence."""
        with self._precision():
            rows = [
                np.asarray(block).reshape(-1)
                for level in self._player(player).strategy
                for block in level
            ]
        positions = np.concatenate([np.ones(1), *rows]).astype(np.float64)
        return positions[self.form.layouts[player].sequences]

    def infoset_values(self, player: int) -> np.ndarray:
        """float64 [I], mean counterfactual values under the iterates (see PlayerState).

        Raises:
          ValueError: the solver was made without `values=True`.
        """
        values = self._player(player).values
        if values is None:
            raise ValueError("infoset values were not kept; make Solver(values=True)")
        by_position = np.asarray(values, np.float64)
        return by_position[self.form.layouts[player].infosets]

    def _player(self, player: int) -> PlayerState:
        return self._state.players[self._order[player]]

    def _sequences(self, player: int, positions: jax.Array) -> np.ndarray:
        by_position = np.asarray(positions, np.float64)
        return by_position[self.form.layouts[player].sequences]

    def _advance(self, iterations: int) -> None:
        with self._precision():
            count = jnp.asarray(iterations, jnp.int32)
            self._state = jax.block_until_ready(
                self._run(self._trees, self._state, count, config=self.config)
            )

    def _cast(self, array: np.ndarray) -> np.ndarray:
        floating = np.issubdtype(array.dtype, np.floating)
        return array.astype(self.dtype) if floating else array

    def _precision(self) -> contextlib.AbstractContextManager[object]:
        return jax.enable_x64(self.dtype == np.float64)
