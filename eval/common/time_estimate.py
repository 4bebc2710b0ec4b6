"""Estimates of the duration of a command, made before the work.

An estimate is a sum over phases. Each phase is a constant times a size of the game: the
number of histories (estimated by `opening.estimate`), its square root for public trees,
the number of pairs for phantom games, and the maximum number of moves for compilation,
because each level of a game is compiled separately. The constants in `_COSTS` are
seconds on a reference machine with two cores; a loop of some milliseconds compares this
machine with it. `benchmarks/time_estimates.py` measures the result.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from spiel_cr.common import compilation_cache
from spiel_cr.common.messages import announce, elapsed
from spiel_cr.evaluation.openspiel_evaluator import MOST_HISTORIES
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.phantom.phantom_rules import estimate_phantom_worlds, phantom_rules
from spiel_cr.solvers.representation import PHANTOM, PUBLIC_TREE, SIMULATOR, TREE

# Seconds of `_speed`'s loop on the reference machine, an Intel Xeon.
_LOOP = 6e-3
# Processor seconds for the number of histories; and the number of passes through the
# tree for the square root of it, which need not be known as well.
_COUNTING, _FEW_PASSES = 0.5, 4
# Seconds of work, in an estimate, above which it is printed.
_LONG = 1.5


class _Costs(NamedTuple):
    """Seconds in one form of a game, per unit of size except for those per move.

    Attributes:
      building: Building the form.
      compiling: Compiling solver and evaluator, per move of the longest history.
      loading: Loading compiled functions from the cache, per move.
      iterating: One full-width iteration, in addition to 20 microseconds.
      evaluating: Evaluating the average strategy by a best response.
      size: Function that returns the size to which the times are proportional.
      walking: Building, in addition, if the game has no batched rules.
      openspiel: Evaluating the average strategy by OpenSpiel; 0: it is not used.
    """

    building: float
    compiling: float
    loading: float
    iterating: float
    evaluating: float
    size: Callable[[Opened], float]
    walking: float = 0.0
    openspiel: float = 0.0


def _histories(opened: Opened, **limits: int) -> float:
    return estimate.estimate_histories(opened.game, seconds=_COUNTING, **limits)


def _pairs(opened: Opened) -> float:
    """Return the number of pairs of a terminal world and a sequence."""
    rules = phantom_rules(opened.rules)
    assert rules is not None
    return sum(estimate_phantom_worlds(opened.game, rules, p) for p in (0, 1))


_COSTS = {
    TREE: _Costs(1e-6, 0.29, 0.06, 1.5e-9, 2e-6, _histories, 1e-5, 5.5e-5),
    PUBLIC_TREE: _Costs(
        *(5e-5, 1.4, 0.27, 2e-6, 4e-5),
        lambda opened: math.sqrt(_histories(opened, rollouts=_FEW_PASSES)),
    ),
    PHANTOM: _Costs(2.2e-7, 0.5, 0.2, 2e-9, 7e-8, _pairs),
    SIMULATOR: _Costs(0.0, 0.0, 0.0, 0.0, 0.0, lambda _: 0.0),
}
_ITERATION = 2e-5
# Seconds for compiling or loading the function of each of several solves.
_LAYER_COMPILING, _LAYER_LOADING = 0.4, 0.2


class Phases(NamedTuple):
    """Estimated seconds of the phases of a command; `math.nan`: unknown."""

    building: float = 0.0
    compiling: float = 0.0
    solving: float = 0.0
    evaluating: float = 0.0


def solving_phases(
    opened: Opened,
    form: str,
    marker: tuple[Any, ...],
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    layers: int = 1,
    evaluator: str = "auto",
) -> Phases:
    """Estimate the phases of a full-width solve.

    Args:
      opened: The game, of which nothing is built yet.
      form: Form in which it will be represented.
      marker: Values that determine the compiled functions, for `is_marked`.
      iterations: Number of iterations of each solve, if it is limited.
      seconds: Limit of the time for iterations, if there is one.
      layers: Number of solves, which have separate compiled functions.
      evaluator: Value of --evaluator.
    """
    costs, speed = _COSTS[form], _speed()
    try:
        size = costs.size(opened)
    except Exception:  # Rules of users' games may raise any error.
        size = 0.0  # The work itself reports the error.
    length = min(opened.game.max_game_length(), 100)
    warm = compilation_cache.is_marked(marker)
    building, evaluating = costs.building * size, costs.evaluating * size
    if opened.rules is None:
        building += costs.walking * size
    if evaluator != "spiel_cr" and size <= MOST_HISTORIES:
        evaluating = costs.openspiel * size or evaluating
    solving = math.inf if seconds is None else seconds
    if iterations is not None and costs.iterating:
        pace = _ITERATION + costs.iterating * size
        solving = min(solving, speed * iterations * layers * pace)
    compiling = (costs.loading if warm else costs.compiling) * length
    if layers > 1:
        compiling = (_LAYER_LOADING if warm else _LAYER_COMPILING) * layers
    return Phases(
        speed * building,
        speed * compiling,
        solving if math.isfinite(solving) else math.nan,
        speed * evaluating,
    )


def announce_phases(phases: Phases, note: str = "") -> float:
    """Print an estimate of long work on stderr as one line, and return its total.

    Args:
      phases: Estimated seconds; the time since the start of the process is added.
      note: Text after the line, such as the number of runs.
    """
    total = elapsed() + sum(phases)
    if sum(seconds for seconds in phases if seconds >= 0) < _LONG:
        return total
    named = phases._asdict().items()
    parts = [f"{name} {_text(seconds)}" for name, seconds in named if seconds]
    announce(f"estimate: {_text(total)} in total{note} ({', '.join(parts)})")
    return total


def _text(seconds: float) -> str:
    if math.isnan(seconds):
        return "?"
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"


def _speed() -> float:
    """Return how many times as long this machine takes as the reference machine.

    Processor time is measured, so other processes do not change the result.
    """
    start = time.thread_time()
    for _ in range(3):
        sum(number * number for number in range(100_000))
    return (time.thread_time() - start) / 3 / _LOOP
