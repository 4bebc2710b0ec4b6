"""Solver that runs a jitted loop in chunks and reads strategies from its state.

`cfr.make_solver` and `mccfr.make_solver` pass the game, the state and the compiled
function. This module contains the code that all these solvers share: time limits,
interrupts, checkpoints, and arrays by logical number.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from spiel_cr.common import interrupts, memory
from spiel_cr.common.jax_utils import as_one_function, precision
from spiel_cr.games.sequence_form import layout, locking, treeplex
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import (
    Behaviours,
    behaviour_from_reach,
    reach_from_behaviour,
)
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers.cfr.bucket_labels import Labels, digest, pool
from spiel_cr.solvers.iterative_solver import (
    MOST_ITERATIONS,
    AfterChunk,
    IterativeSolver,
    settings_text,
)

# Approximate length of a chunk in seconds; the second number is for large games, whose
# compiled function allocates memory in each chunk. An interrupted command waits for the
# end of a chunk, and has to end within two seconds.
_CHUNK_SECONDS, _CHUNK_SECONDS_LARGE = 0.25, 1.0
# If less time than this is left before a deadline, no further chunk is started.
_LAST_SECONDS = 5e-4


class PlayerState(NamedTuple):
    """State of one player's regret minimiser.

    Attributes:
      strategy: Current behaviour strategy, [A, n] per block.
      regrets: Cumulative counterfactual regrets, [A, n] per block, in units of
        2^`Solver.exponent`; if infosets share regrets, a tuple of one [A, B] per block
        of buckets; with a custom rule, its state.
      reach: Player's own reach of every position under `strategy`, float [S].
      average: Weighted mean of `reach` over the iterations, float [S]: the average
        strategy in sequence form; if a custom rule weighs infosets, up to a factor for
        each infoset.
      values: Weighted mean of every infoset's counterfactual value over the iterations
        (player's own perspective, units as regrets), *under the iterates* and with the
        same weights, float [I]; None if these values are not kept. Continual re-solving
        needs them: values of the average strategy would be meaningless where the
        owner's own reach is zero.
    """

    strategy: treeplex.Blocks
    regrets: treeplex.Blocks
    reach: jax.Array
    average: jax.Array
    values: jax.Array | None


class SolverState(Protocol):
    """Interface of every solver's state, which is a NamedTuple of arrays."""

    @property
    def iteration(self) -> jax.Array: ...


class Start(NamedTuple):
    """Function that creates the first state of a large game on the device.

    Attributes:
      function: Jitted function.
      problem: Argument of the function, arrays on the device.
    """

    function: Any
    problem: Any


class StrategyReader(Protocol):
    """Reader of strategies from a state that has no `players`."""

    def average(self, state: Any, player: int) -> np.ndarray:
        """Return the average strategy in sequence form, float64 [S]."""

    def current(self, state: Any, player: int) -> np.ndarray:
        """Return the last iterate's action probabilities, float64 [S]."""

    def check(self, state: Any) -> None:
        """Raise ValueError if numpy arrays contain values that no run can produce."""


@runtime_checkable
class PositionReader(StrategyReader, Protocol):
    """Reader of states that hold reach by position; used to evaluate large games."""

    def positions(self, state: Any, player: int) -> np.ndarray:
        """Return reach up to a factor per infoset, float [positions]."""


class SolverFunctions(NamedTuple):
    """Compiled function that advances a solver's state, and how to read that state.

    Attributes:
      advance: Jitted function; `advance(problem, state, iterations, config=config)` is
        the state after some more iterations.
      config: Settings of the algorithm, a frozen dataclass with a `name`.
      dtype: Data type of all floating-point arrays.
      exponent: Exponent of the scale: the game's payoffs are divided by 2^exponent.
      first: Player that updates first; a state's `players` are in the order of updates.
      reader: Reader of strategies; None if the state has `players`.
      consumes: Whether the function overwrites the arrays of the state that it is
        given.
    """

    advance: Any
    config: Any
    dtype: np.dtype
    exponent: int = 0
    first: int = 0
    reader: StrategyReader | None = None
    consumes: bool = False


def jitted_loop(
    step: Callable[..., Any],
    *,
    fused: bool = False,
    in_place: bool = False,
    static: tuple[str, ...] = ("config",),
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Return a jitted function for `SolverFunctions.advance`.

    Args:
      step: One iteration: from a problem, a state and static settings, by name, to the
        next state.
      fused: Whether all iterations are one piece of machine code, see
        `jax_utils.as_one_function`.
      in_place: Whether the arrays of the state are overwritten.
      static: Names of the static settings.
      options: Compiler options of XLA.
    """

    def _iterate(
        problem: Any, state: Any, iterations: jax.Array, **settings: Any
    ) -> Any:
        def loop(problem: Any, state: Any, iterations: jax.Array) -> Any:
            return jax.lax.fori_loop(
                0, iterations, lambda _, now: step(problem, now, **settings), state
            )

        if fused:
            return as_one_function(loop, problem, state, iterations)
        return loop(problem, state, iterations)

    donated = 1 if in_place else None
    return jax.jit(
        _iterate,
        static_argnames=static,
        donate_argnums=donated,
        compiler_options=None if options is None else dict(options),
    )


def _check_state(state: Any, reader: StrategyReader | None) -> None:
    """Raise ValueError if a state of numpy arrays has values that no run produces."""
    if any(not np.isfinite(leaf).all() for leaf in jax.tree.leaves(state)):
        raise ValueError("the state contains values that are not finite")
    if state.iteration < 0:
        raise ValueError(f"the state has the invalid iteration={int(state.iteration)}")
    if reader is not None:
        reader.check(state)
        return
    for player in state.players:
        played = (*jax.tree.leaves(player.strategy), player.reach)
        # Sums of rounded shares may be above 1 by a few units in the last place.
        if any((part < 0).any() or (part > 1 + 1e-3).any() for part in played):
            raise ValueError("the state has probabilities outside [0, 1]")
        # Running means of nonnegative numbers are nonnegative up to rounding.
        if (player.average < -1e-3).any():
            raise ValueError("the state has a negative average strategy")


class Solver(IterativeSolver):
    """Solver that runs a jitted loop for one game and holds the state between calls.

    Double precision is switched on inside the methods only, so the caller's JAX
    configuration does not change.

    Attributes:
      form: The game in sequence form.
      problem: The game on the device, as the compiled function needs it. It may be
        replaced by another one of equal shapes between iterations.
      state: The state, as pure functions use it.
      config: Settings of the algorithm, a frozen dataclass with a `name`.
      dtype: Data type of the arithmetic, float64 or float32.
      exponent: Exponent of the scale: in problem and state, the game's payoffs are
        divided by 2^exponent, see `treeplex.exponent_of`.
      buckets: Bucket of each infoset for each player, int32 [I], or None.
      solved: The represented game, for results and checkpoints; None if a solver is
        used without these.
      seed: Seed of a solver that samples; None for other solvers.
      trajectories_per_iteration: Number of trajectories of both players in an
        iteration.
    """

    solved: SolvedForm | None = None
    seed: int | None = None
    trajectories_per_iteration: int = 0
    # Whether the device may use the arrays of the first state without a copy.
    _shares_memory = True
    # Optional extra of the installation on which the arrays of the state depend.
    _extra: str | None = None

    def __init__(
        self,
        form: layout.SequenceForm,
        problem: Any,
        state: SolverState | Start,
        functions: SolverFunctions,
        *,
        buckets: Labels = (None, None),
        compile_seconds: float = 0.0,
        put: Callable[[Any], Any] = jax.device_put,
    ) -> None:
        """Put game and state on the device and compile the function.

        Args:
          form: The game in sequence form.
          problem: The game as the compiled function needs it, numpy arrays.
          state: Initial state, numpy arrays; or, for large games, a function that
            creates the state on the device, after the memory of the compiler was freed.
          functions: Function to compile, and how to read its state.
          buckets: Bucket of each infoset for each player, int32 [I], or None.
          compile_seconds: Time that was spent on compiling the functions that made
            `problem` or `state`, in seconds.
          put: Function that puts arrays on the device.
        """
        self._functions = functions
        self._reader = functions.reader
        self.buckets = buckets
        self.form = form
        self.config, self.dtype = functions.config, functions.dtype
        self.exponent = functions.exponent
        self.seconds = 0.0
        # The last iteration that was evaluated, and its value bounds, without locks and
        # with them.
        self._evaluated: list[tuple[int, tuple[float, float] | None]] = [(-1, None)] * 2
        # Maximum number of iterations of the next chunk, and a first guess of the
        # seconds per iteration.
        self._chunk, self._pace = 1, 1e-9
        self.compile_seconds = compile_seconds
        with precision(functions.dtype):
            self.problem = put(problem)
            if isinstance(state, Start):
                self.compile_seconds += self._compile(state)
                state = state.function(state.problem)
                memory.trim()
            self._state = put(state)
        # The device may use numpy arrays without a copy, so these must be copied before
        # a compiled function overwrites them.
        leaves = jax.tree.leaves(state)
        numpy = any(isinstance(leaf, np.ndarray) for leaf in leaves)
        self._lent = self._shares_memory and numpy
        self.compile_seconds += self._advance(0)

    @property
    def iterations(self) -> int:  # type: ignore[override]
        """Number of iterations completed."""
        return int(self._state.iteration)

    @property
    def state(self) -> Any:
        """State of the solver; later iterations do not change it."""
        self._lent = True
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state, self._lent = state, True

    def arrays(self) -> dict[str, np.ndarray]:
        """See `IterativeSolver.arrays`: the leaves of the state."""
        leaves = jax.tree.leaves(self._state)
        return {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """See `IterativeSolver.restore`; an invalid state leaves the solver as it was.

        Args:
          arrays: Leaves of a state of the same game, dtype and options.
          seconds: Time spent iterating before.

        Raises:
          ValueError: If the arrays do not fit this game, or if no solver can have
            written these numbers.
        """
        old_leaves, structure = jax.tree.flatten(self._state)
        names = [f"leaf{i}" for i in range(len(arrays))]
        if set(names) != set(arrays):
            raise ValueError("the names of its arrays are invalid")
        leaves = [arrays[name] for name in names]
        shapes = [(leaf.shape, leaf.dtype) for leaf in old_leaves]
        if shapes != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError("the state is of another game, dtype or solver option")
        _check_state(jax.tree.unflatten(structure, leaves), self._reader)
        with precision(self.dtype):
            # A function that overwrites its arguments must not overwrite `arrays`.
            device_leaves = jax.device_put(
                leaves, may_alias=not self._functions.consumes
            )
        self._state = jax.tree.unflatten(structure, device_leaves)
        self._lent = False
        self.seconds = seconds

    def run(
        self,
        iterations: int,
        *,
        seconds: float | None = None,
        after_chunk: AfterChunk | None = None,
    ) -> bool:
        """Iterate in chunks of about a quarter of a second; see `IterativeSolver.run`.

        A chunk is chosen to end within `seconds`, but only `after_chunk`, which is
        called after every chunk, stops the solver.

        Raises:
          ValueError: If there would be more than 2^31 - 1 iterations in total.
        """
        if iterations > MOST_ITERATIONS - self.iterations:
            raise ValueError(
                f"iterations={iterations} after {self.iterations}: the maximum is "
                f"{MOST_ITERATIONS} in total; use fewer, or sample more per iteration "
                f"with a larger batch"
            )
        done, until = 0, self.seconds + (seconds or 0.0)
        while done < iterations:
            chunk = min(self._chunk, iterations - done)
            if seconds is not None:
                chunk = max(1, min(chunk, int((until - self.seconds) / self._pace)))
            elapsed = max(self._advance(chunk), 1e-9)
            self.seconds += elapsed
            done += chunk
            self._pace = elapsed / chunk
            large = self._functions.consumes
            wanted = _CHUNK_SECONDS_LARGE if large else _CHUNK_SECONDS
            self._chunk = max(1, int(chunk * min(8.0, wanted / elapsed)))
            if after_chunk is not None and after_chunk(chunk):
                return True
        return False

    def run_until(self, deadline: float, *, most: int = MOST_ITERATIONS) -> int:
        """Iterate until shortly before a point in time.

        Args:
          deadline: End of the time, by `time.perf_counter`. The next chunk is never
            chosen longer than half of the remaining time at the rate so far; at least
            one iteration is done.
          most: Maximum number of iterations.

        Returns:
          The number of iterations done; 0 if the solver has done 2^31 - 1 already.
        """
        most = min(most, MOST_ITERATIONS - self.iterations)
        done, chunk = 0, 1
        while done < most:
            chunk = min(chunk, most - done)
            elapsed = self._advance(chunk)
            self.seconds += elapsed
            done += chunk
            rate, left = chunk / max(elapsed, 1e-9), deadline - time.perf_counter()
            chunk = min(16 * chunk, int(rate * left / 2))
            if chunk < 1 or left < _LAST_SECONDS:
                break
        return done

    def average(self, player: int) -> np.ndarray:
        """Return the average strategy in sequence form, float64 [S]."""
        rule = getattr(self.config, "rule", None)
        if self.buckets[player] is None and not getattr(rule, "weighs_infosets", False):
            return self._sequences(player)
        decisions = self.form.decisions[player]
        return reach_from_behaviour(decisions, self.average_behaviour(player))

    def average_behaviour(
        self, player: int, dtype: np.typing.DTypeLike = np.float64
    ) -> np.ndarray:
        """Return the average strategy's action probabilities, [S], in `dtype`."""
        labels = self.buckets[player]
        if labels is None and self._reader is None:
            played = self._normalised(player, dtype)
            return locking.kept(self.form, player, played)
        decisions = self.form.decisions[player]
        reach = self._sequences(player)
        if labels is not None:
            reach = pool(decisions, labels, reach)
        return behaviour_from_reach(decisions, reach)

    def nash_conv(self) -> float:
        """Compute the exact NashConv of the average strategy in the whole game."""
        low, high = self._value_bounds(locking.lifted(self.form))
        self._evaluated[0] = self.iterations, (low, high)
        return high - low

    def nash_conv_with_locks(self) -> float:
        """Compute the exact NashConv of the average strategy in the game with locks."""
        low, high = self._value_bounds(self.form)
        self._evaluated[1] = self.iterations, (low, high)
        return high - low

    @property
    def has_locks(self) -> bool:
        """Whether any infoset is locked."""
        return locking.has_locks(self.form)

    def identity(self) -> dict[str, Any]:
        """See `IterativeSolver.identity`; needs `solved`."""
        assert self.solved is not None
        game_form = self.solved.game_form
        return {
            "game": str(game_form.game),
            "form": game_form.kind,
            "fingerprint": game_form.game_id,
            "config": settings_text(self.config),
            "dtype": self.dtype.name,
            "seed": self.seed,
            "buckets": digest(self.buckets),
            "extra": self._extra,
            "locks": digest(self.form.locks),
        }

    def outcome(self) -> dict[str, Any]:
        """See `IterativeSolver.outcome`; needs `solved`."""
        assert self.solved is not None
        average, current = self._strategies(self.solved.dtype)
        # In float32, the average of the result is rounded.
        is_exact = self.dtype == np.float64
        bounds, bounds_with_locks = (
            evaluated if is_exact and iterations == self.iterations else None
            for iterations, evaluated in self._evaluated
        )
        return {
            "solved": self.solved,
            "average": average,
            "evaluated": bounds,
            "evaluated_with_locks": bounds_with_locks,
            "current": current,
            "compile_seconds": self.compile_seconds,
            "trajectories": self.trajectories_per_iteration * self.iterations,
        }

    def _strategies(self, dtype: np.dtype) -> tuple[Behaviours, Behaviours | None]:
        """Return the average strategy and the last iterate in `dtype`, [S] each."""
        average, current = (
            tuple(read(p, dtype).astype(dtype, copy=False) for p in range(2))
            for read in (self.average_behaviour, self.current_behaviour)
        )
        return (average[0], average[1]), (current[0], current[1])

    def release(self) -> None:
        """Free the arrays of game and state; the solver cannot be used afterwards."""
        self.problem = self._state = None

    def _value_bounds(self, form: layout.SequenceForm) -> tuple[float, float]:
        """Compute value bounds in a form whose locks may differ from the solver's."""
        if self._functions.consumes:
            memory.trim()  # return the working memory of iterations on a large game
        shared = any(labels is not None for labels in self.buckets)
        if self._reader is None and not shared:
            first, second = (np.asarray(self._player(p).average) for p in range(2))
            return best_responses.bounds_of_averages(form, (first, second))
        if isinstance(self._reader, PositionReader):
            positions = [self._reader.positions(self._state, p) for p in range(2)]
            return best_responses.bounds_of_averages(form, (positions[0], positions[1]))
        behaviour = self.average_behaviour(0), self.average_behaviour(1)
        reach = best_responses.reach_of(form, behaviour)
        most = best_responses.best_response_value(form, 0, reach[1])
        return -best_responses.best_response_value(form, 1, reach[0]), most

    def current_behaviour(
        self, player: int, dtype: np.typing.DTypeLike = np.float64
    ) -> np.ndarray:
        """Return the last iterate's action probabilities, one per sequence, [S].

        They have type `dtype`, or float64 if a reader reads them.
        """
        if self._reader is not None:
            return self._reader.current(self._state, player)
        return self._by_sequence(player, self._player(player).strategy, dtype)

    def regrets(self, player: int) -> np.ndarray:
        """Return cumulative regrets of a built-in rule without buckets, float64 [S].

        They are in the game's units; the number of the empty sequence has no meaning.
        """
        blocks = self._player(player).regrets
        regrets = self._by_sequence(player, blocks, np.float64)
        return np.ldexp(regrets, self.exponent)

    def _by_sequence(
        self, player: int, blocks: treeplex.Blocks, dtype: np.typing.DTypeLike
    ) -> np.ndarray:
        """Return numbers of a player's actions in blocks by sequence, [S]."""
        parts = [np.asarray(block).reshape(-1) for block in jax.tree.leaves(blocks)]
        positions = np.concatenate([np.ones(1), *parts], dtype=dtype)
        return self.form.layouts[player].behaviour(positions)

    def infoset_values(self, player: int) -> np.ndarray:
        """Return mean counterfactual values under the iterates, float64 [I].

        They are in the game's units; see `PlayerState.values`.

        Raises:
          ValueError: If the solver was made without `values=True`.
        """
        values = None if self._reader is not None else self._player(player).values
        if values is None:
            raise ValueError(
                "infoset values were not kept; call make_solver with values=True"
            )
        by_position = np.ldexp(np.asarray(values, np.float64), self.exponent)
        return by_position[self.form.layouts[player].infosets]

    def _player(self, player: int) -> PlayerState:
        return self._state.players[player ^ self._functions.first]

    def _sequences(self, player: int) -> np.ndarray:
        if self._reader is not None:
            return self._reader.average(self._state, player)
        by_position = np.asarray(self._player(player).average, np.float64)
        return by_position[self.form.layouts[player].sequences]

    def _normalised(self, player: int, dtype: np.typing.DTypeLike) -> np.ndarray:
        """Return `average_behaviour` block by block, because it may be large."""
        average = np.asarray(self._player(player).average)
        behaviour = np.empty(average.shape, dtype)
        behaviour[0], begin = 1, 1
        for level in self.form.arrays[player].levels:
            for shape, uniform in zip(level.shapes, level.uniform, strict=True):
                end = begin + shape[0] * shape[1]
                block = average[begin:end].reshape(shape)
                played = behaviour[begin:end].reshape(shape)  # a view
                begin = end
                total = block.sum(axis=0, dtype=np.float64)
                played[:] = uniform
                np.divide(
                    block, total, out=played, where=total > 0, casting="same_kind"
                )
        return self.form.layouts[player].behaviour(behaviour)

    def _compile(self, start: Start) -> float:
        """Compile the function for states like the first; return the seconds."""
        started = time.perf_counter()
        like = start.function.eval_shape(start.problem)
        count = np.zeros((), np.int32)
        advance = self._functions.advance
        lowered = advance.lower(self.problem, like, count, config=self.config)
        lowered.compile()
        memory.trim()
        return time.perf_counter() - started

    def _advance(self, iterations: int) -> float:
        """Run some iterations; return the time in seconds."""
        started = time.perf_counter()
        count = np.asarray(iterations, np.int32)
        with precision(self.dtype):
            state = self._state
            if self._functions.consumes and self._lent:
                state = jax.tree.map(lambda leaf: leaf.copy(), state)
            # The function deletes the arrays that it consumes, so it must not be
            # interrupted before its result has replaced them.
            with interrupts.Steps() as steps, steps.step():
                self._state = self._functions.advance(
                    self.problem, state, count, config=self.config
                )
                self._lent = False
            jax.block_until_ready(self._state)
        return time.perf_counter() - started
