"""Primal-dual steps as a solver: problem and state on the device, one jitted loop."""

import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_dtype
from spiel_cr.common.jax_utils import cast as cast_arrays
from spiel_cr.common.jax_utils import precision, quick_options
from spiel_cr.common.memory import trim
from spiel_cr.games.public_tree.hand_operators import ready
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import behaviour_from_reach
from spiel_cr.solvers.cfr.solver import Program, Solver, jitted_loop
from spiel_cr.solvers.first_order import primal_dual
from spiel_cr.solvers.first_order.first_order_config import FirstOrderConfig
from spiel_cr.solvers.first_order.primal_dual import PDHGProblem, PDHGState

# From so many positions on, a state is written in place.
_LARGE_STATE = 2_000_000


def _first(problem: PDHGProblem) -> PDHGState:
    return primal_dual.init(ready(problem))


class _Programs(NamedTuple):
    """What begins, and what iterates; both jitted."""

    begin: Any
    run: Any

    def compile_run(self, problem: PDHGProblem, config: FirstOrderConfig) -> None:
        """Compiles what iterates, and gives back what that took."""
        trim()
        like, count = jax.eval_shape(_first, problem), np.zeros((), np.int32)
        self.run.lower(problem, like, count, config=config).compile()
        trim()


def _step(
    problem: PDHGProblem, state: PDHGState, *, config: FirstOrderConfig
) -> PDHGState:
    return primal_dual.step(problem, state)


_PROGRAMS = _Programs(jax.jit(_first), jitted_loop(_step, prepare=ready))


@functools.cache
def large_programs() -> _Programs:
    """Programs for large games: state written in place, less memory to compile."""
    options = quick_options()
    return _Programs(
        jax.jit(_first, compiler_options=options),
        jitted_loop(_step, prepare=ready, in_place=True, options=options),
    )


@jax.jit
def _scale(
    trees: tuple[treeplex.Treeplex, treeplex.Treeplex],
) -> tuple[primal_dual.Point, jax.Array]:
    return primal_dual.scale_program(trees)


class _Iterates:
    """Reads strategies from states."""

    def __init__(self, form: SequenceForm) -> None:
        self._form = form

    def positions(self, state: PDHGState, player: int) -> np.ndarray:
        """float [S], reach by position; what matters are shares at each infoset."""
        return np.asarray(state.now.reach[player])

    def average(self, state: PDHGState, player: int) -> np.ndarray:
        by_position = self.positions(state, player)
        return by_position[self._form.layouts[player].sequences].astype(np.float64)

    def current(self, state: PDHGState, player: int) -> np.ndarray:
        decisions = self._form.decisions[player]
        return behaviour_from_reach(decisions, self.average(state, player))

    def check(self, state: PDHGState) -> None:
        if any((self.positions(state, player) < -1e-3).any() for player in range(2)):
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
    large = sum(layout.size for layout in form.layouts) > _LARGE_STATE
    programs = large_programs() if large else _PROGRAMS
    with precision(dtype):
        both = jax.device_put(cast_arrays(trees, dtype))
        started = time.perf_counter()
        _scale.lower(both).compile()
        compile_seconds = time.perf_counter() - started
        problem = PDHGProblem(both, *_scale(both))
        started = time.perf_counter()
        programs.begin.lower(problem).compile()
        if large:
            programs.compile_run(problem, config)
        compile_seconds += time.perf_counter() - started
        # In place, arrays of a state must not be one and the same.
        state = jax.tree.map(jnp.copy, programs.begin(problem))
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
