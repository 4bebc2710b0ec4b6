"""First-order methods as solvers: problem and state on the device, one jitted loop."""

import functools
import time
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_dtype
from spiel_cr.common.jax_utils import cast as cast_arrays
from spiel_cr.common.jax_utils import precision, quick_options
from spiel_cr.common.memory import trim
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.signals.kernel_hands import ready
from spiel_cr.policies.conversions import behaviour_from_reach
from spiel_cr.solvers.cfr.solver import Program, Solver
from spiel_cr.solvers.first_order import excessive_gap, primal_dual, regularisers
from spiel_cr.solvers.first_order.first_order_config import FirstOrderConfig
from spiel_cr.solvers.first_order.problem import Problem

AnyProblem: TypeAlias = Problem | primal_dual.PDHGProblem
# From so many positions on, a state is written in place.
_LARGE_STATE = 2_000_000


# Each has `init` and `step`.
_METHODS: dict[str, ModuleType] = {"egt": excessive_gap, "pdhg": primal_dual}


def _iterate(
    problem: AnyProblem, state: Any, iterations: jax.Array, *, config: FirstOrderConfig
) -> Any:
    step, problem = _METHODS[config.method].step, ready(problem)
    return jax.lax.fori_loop(0, iterations, lambda _, s: step(problem, s), state)


def _first(problem: AnyProblem, *, config: FirstOrderConfig) -> Any:
    return _METHODS[config.method].init(ready(problem))


class _Programs(NamedTuple):
    """What begins, and what iterates; both jitted."""

    begin: Any
    run: Any

    def compile(self, problem: AnyProblem, config: FirstOrderConfig) -> None:
        """Compiles both, and gives back what that took, before a state is there."""
        like = jax.eval_shape(functools.partial(_first, problem, config=config))
        count = np.zeros((), np.int32)
        self.compile_begin(problem, config)
        trim()
        self.run.lower(problem, like, count, config=config).compile()
        trim()

    def compile_begin(self, problem: AnyProblem, config: FirstOrderConfig) -> None:
        """Compiles what begins."""
        self.begin.lower(problem, config=config).compile()


_PROGRAMS = _Programs(
    jax.jit(_first, static_argnames="config"),
    jax.jit(_iterate, static_argnames="config"),
)


@functools.cache
def large_programs() -> _Programs:
    """Programs for large games: state written in place, less memory to compile."""
    options = quick_options()
    return _Programs(
        jax.jit(_first, static_argnames="config", compiler_options=options),
        jax.jit(
            _iterate,
            static_argnames="config",
            donate_argnames="state",
            compiler_options=options,
        ),
    )


@jax.jit
def _scale(
    trees: tuple[treeplex.Treeplex, treeplex.Treeplex],
) -> tuple[primal_dual.Point, jax.Array]:
    return primal_dual.scale_program(trees)


class _Iterates:
    """Reads strategies from the states of first-order methods."""

    def __init__(self, form: SequenceForm) -> None:
        self._form = form

    def positions(self, state: Any, player: int) -> np.ndarray:
        """float [S], reach by position; what matters are shares at each infoset."""
        if isinstance(state, primal_dual.PDHGState):
            return np.asarray(state.now.reach[player])
        return np.asarray(state.reach[player])[: self._form.layouts[player].size]

    def average(self, state: Any, player: int) -> np.ndarray:
        by_position = self.positions(state, player)
        return by_position[self._form.layouts[player].sequences].astype(np.float64)

    def current(self, state: Any, player: int) -> np.ndarray:
        decisions = self._form.decisions[player]
        return behaviour_from_reach(decisions, self.average(state, player))

    def check(self, state: Any) -> None:
        for player in range(2):
            reach = self.positions(state, player)
            if (reach < -1e-3).any():
                raise ValueError("the state has a negative strategy")


def make_solver(
    form: SequenceForm,
    *,
    config: FirstOrderConfig,
    dtype: np.typing.DTypeLike = np.float64,
) -> Solver:
    """Puts a game on the device and compiles the program.

    Args:
      form: the game.
      config: the method.
      dtype: float64 or float32.

    Raises:
      ValueError: another dtype.
    """
    dtype = check_dtype(dtype)
    exponent = treeplex.exponent_of(map(treeplex.largest_payoff, form.arrays))
    trees = tuple(treeplex.rescale(tree, exponent) for tree in form.arrays)
    problem, compile_seconds = _problem(form, trees, config, dtype)
    large = sum(own.size for own in form.layouts) > _LARGE_STATE

    programs = large_programs() if large else _PROGRAMS
    with precision(dtype):
        started = time.perf_counter()
        if large:
            programs.compile(problem, config)
        else:
            programs.compile_begin(problem, config)
        compile_seconds += time.perf_counter() - started
        # In place, arrays of a state must not be one and the same.
        state = jax.tree.map(jnp.copy, programs.begin(problem, config=config))
    return Solver(
        form,
        problem,
        state,
        Program(
            programs.run,
            config,
            dtype,
            exponent=exponent,
            reader=_Iterates(form),
            consumes=large,
        ),
        compile_seconds=compile_seconds,
    )


def _problem(
    form: SequenceForm,
    trees: tuple[treeplex.Treeplex, ...],
    config: FirstOrderConfig,
    dtype: np.dtype,
) -> tuple[AnyProblem, float]:
    """The game on the device, as the method takes it; the seconds of compiling."""
    if config.method == "pdhg":
        with precision(dtype):
            both = jax.device_put(cast_arrays(trees, dtype))
            started = time.perf_counter()
            _scale.lower(both).compile()
            seconds = time.perf_counter() - started
            scales, length = _scale(both)
        return primal_dual.PDHGProblem(both, scales, length), seconds
    weights = [regularisers.make_weights(form, p) for p in range(2)]
    made = Problem((trees[0], trees[1]), (weights[0], weights[1]))
    with precision(dtype):
        return cast(Problem, jax.device_put(cast_arrays(made, dtype))), 0.0
