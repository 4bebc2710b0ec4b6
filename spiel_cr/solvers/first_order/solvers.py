"""Solvers by first-order methods: problem and state on the device, a jitted loop."""

import functools
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_dtype
from spiel_cr.common.jax_utils import cast as cast_arrays
from spiel_cr.common.jax_utils import precision, quick_options
from spiel_cr.common.memory import trim
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.conversions import behaviour_from_reach
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions, jitted_loop
from spiel_cr.solvers.first_order import (
    excessive_gap,
    iterated_smoothing,
    primal_dual,
    regularisers,
)
from spiel_cr.solvers.first_order.first_order_config import (
    ExcessiveGapConfig,
    FirstOrderConfig,
)
from spiel_cr.solvers.first_order.primal_dual import PDHGProblem
from spiel_cr.solvers.first_order.regularisers import SmoothedProblem

Problem: TypeAlias = PDHGProblem | SmoothedProblem

# Number of positions above which the state is overwritten in place.
_LARGE_STATE = 2_000_000


def _functions(config: FirstOrderConfig) -> tuple[Callable, Callable]:
    """Return the functions `init` and `step` of a method."""
    if isinstance(config, ExcessiveGapConfig):
        return (
            functools.partial(excessive_gap.init, config=config),
            functools.partial(excessive_gap.step, config=config),
        )
    if config.method == "smoothing":
        return iterated_smoothing.init, iterated_smoothing.step
    return primal_dual.init, primal_dual.step


def _first(problem: Problem, *, config: FirstOrderConfig) -> Any:
    start, _ = _functions(config)
    return start(problem)


def _step(problem: Problem, state: Any, *, config: FirstOrderConfig) -> Any:
    return _functions(config)[1](problem, state)


@functools.cache
def _jitted(*, large: bool) -> tuple[Any, Any]:
    """Return jitted functions that make the first state, and that iterate.

    For large games, they are compiled in less time, and the state is overwritten.
    """
    options = quick_options() if large else None
    begin = jax.jit(_first, static_argnames="config", compiler_options=options)
    return begin, jitted_loop(_step, in_place=large, options=options)


@jax.jit
def _scale(
    trees: tuple[treeplex.Treeplex, treeplex.Treeplex],
) -> tuple[primal_dual.Point, jax.Array]:
    return primal_dual.scaling(trees)


class _Iterates:
    """Reader of strategies from states."""

    def __init__(self, form: SequenceForm) -> None:
        self._form = form

    def positions(self, state: Any, player: int) -> np.ndarray:
        """Return reach up to a factor per infoset, float [positions]."""
        return np.asarray(state.strategies[player])

    def average(self, state: Any, player: int) -> np.ndarray:
        by_position = self.positions(state, player)
        return by_position[self._form.layouts[player].sequences].astype(np.float64)

    def current(self, state: Any, player: int) -> np.ndarray:
        decisions = self._form.decisions[player]
        return behaviour_from_reach(decisions, self.average(state, player))

    def check(self, state: Any) -> None:
        if any((self.positions(state, player) < -1e-3).any() for player in range(2)):
            raise ValueError("the state has a negative strategy")


def make_solver(
    form: SequenceForm,
    *,
    config: FirstOrderConfig,
    dtype: np.typing.DTypeLike = np.float64,
) -> Solver:
    """Make a solver: put the game on the device and compile its functions.

    Args:
      form: The game in sequence form.
      config: Method and settings.
      dtype: Data type of the arithmetic, float64 or float32.

    Raises:
      ValueError: If the method does not support the dtype or the game.
    """
    dtype = check_dtype(dtype)
    exponent = treeplex.exponent_of(map(treeplex.largest_payoff, form.arrays))
    first, second = (treeplex.rescale(tree, exponent) for tree in form.arrays)
    large = sum(layout.size for layout in form.layouts) > _LARGE_STATE
    begin, run = _jitted(large=large)
    with precision(dtype):
        problem, compile_seconds = _problem(form, (first, second), config, dtype)
        started = time.perf_counter()
        begin.lower(problem, config=config).compile()
        if large:
            # Compiling needs memory, so it comes before the first state.
            trim()
            like = jax.eval_shape(functools.partial(_first, config=config), problem)
            run.lower(problem, like, np.zeros((), np.int32), config=config).compile()
            trim()
        compile_seconds += time.perf_counter() - started
        # A function that overwrites the state needs a separate array for each field.
        state = jax.tree.map(jnp.copy, begin(problem, config=config))
    return Solver(
        form,
        problem,
        state,
        SolverFunctions(
            run,
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
    trees: tuple[treeplex.Treeplex, treeplex.Treeplex],
    config: FirstOrderConfig,
    dtype: np.dtype,
) -> tuple[Problem, float]:
    """Return the problem on the device, and the seconds of compilation."""
    if config.method == "pdhg":
        both = jax.device_put(cast_arrays(trees, dtype))
        started = time.perf_counter()
        _scale.lower(both).compile()
        seconds = time.perf_counter() - started
        return PDHGProblem(both, *_scale(both)), seconds
    prox = config.prox if isinstance(config, ExcessiveGapConfig) else "euclidean"
    problem = regularisers.smoothed_problem(form, trees, prox)
    return jax.device_put(cast_arrays(problem, dtype)), 0.0
