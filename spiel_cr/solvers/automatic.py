"""`auto`: the algorithm of a run, chosen by form, size, budget and a trial.

Small games are solved by a linear program, and so are the supports of averages at the
end of runs by iterations. Otherwise there are one or three candidates, depending on the
form of the game and its rounds. If there are three, the run continues with the one
whose NashConv is lowest after a share of the budget. The best one cannot be predicted:
with predictive regret matching some games eventually converge at a linear rate, and
others converge more slowly than without it. All constants were measured
(docs/benchmarks/tabular-solvers.md).
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common.errors import GameTooLargeError, SolverFailedError
from spiel_cr.common.messages import announce
from spiel_cr.games.histories import TERMINAL
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers import footprint, lp, representation, tabular_makers
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.run import Goal, drive
from spiel_cr.solvers.task import Algorithm, Task


class _Choices(NamedTuple):
    """Algorithms for the games of a form.

    Attributes:
      candidates: Names of algorithms, which a trial compares if there are several.
      in_subgames: Algorithm for subgames, which are solved with short budgets.
      several_rounds: Algorithm of games whose players act in several rounds.
      exact: Whether linear programs may solve small games.
      single: Whether single precision is used if it suffices.
    """

    candidates: tuple[str, ...]
    in_subgames: str = ""
    several_rounds: str = ""
    exact: bool = False
    single: bool = False


_BY_FORM: Mapping[str, _Choices] = {
    representation.TREE: _Choices(
        ("dcfr", "sapcfr+", "sapcfr+(prediction=0.3333)"),
        in_subgames="sapcfr+(gamma=5)",
        exact=True,
    ),
    representation.PUBLIC_TREE: _Choices(
        ("dcfr",), in_subgames="dcfr+", several_rounds="hs-dcfr", single=True
    ),
    representation.PHANTOM: _Choices(("dcfr+",)),
    representation.SIMULATOR: _Choices(("os-mccfr",)),
}
CANDIDATES = {form: choices.candidates for form, choices in _BY_FORM.items()}
OF_SUBGAMES = {
    form: choices.in_subgames
    for form, choices in _BY_FORM.items()
    if choices.in_subgames
}
# The algorithm for games whose infosets share regrets, which were not measured; and the
# number of sequences above which the states of several solvers would need too much
# memory, with the algorithm for such games.
_SHARED, _MANY, _LARGE = "cfr+", 2_000_000, "dcfr+"
# With fewer iterations a trial is not meaningful, and compiling takes longer.
_SHORT = 30
# Payoffs and sequences of games whose linear programs take about two seconds; the
# number per second of a time budget; its maximum; and its share of the budget.
_LINEAR, _LINEAR_RATE, _LINEAR_MOST, _LINEAR_SHARE = 50_000, 20_000, 200_000, 0.6
# A run of at least this many iterations ends with linear programs on the support of
# the average, which take about as long as iterations and trial, or a tenth of a second
# if those take less. They stop after this many simplex iterations per iteration of the
# run.
_POLISHED, _SIMPLEX = 1000, 3
# Share of the range of payoffs that is rounding.
_ROUNDING = 1e-12
# Share of a trial in the budget, for each candidate: of iterations, or of seconds.
_TRIAL, _TRIAL_SECONDS = 0.3, 0.1
# Maximum length of a trial in iterations and seconds if the run has a checkpoint, which
# is not written before the end of the trial.
_KEPT_TRIAL, _KEPT_SECONDS = 1000, 60.0
# Public-tree games use float32 if `until` is at least `_FINE` of the range of payoffs,
# because float32 stalls at 4e-6 of it or less. If `until` is below `_ROUGH`, the run is
# monitored: if twice as many iterations leave more than this share of a NashConv below
# `_ROUGH`, or four times as many of a larger one, the run continues in float64.
# Measured with dcfr.
_ROUGH, _FINE = 2e-5, 5e-6
_STALLED = {2: 0.7, 4: 0.95}
# Lengths of trials if only `until` is given, until a candidate reaches it.
_ROUNDS: tuple[int, ...] = tuple(256 << i for i in range(8))

Find = Callable[[str], Algorithm]


def choose(find: Find, represented: Any, task: Task) -> IterativeSolver:
    """Choose an algorithm for the game and the budget; make its solver.

    Args:
      find: Reads algorithms by name.
      represented: The represented game.
      task: Algorithm, goal and options of the run.

    Returns:
      The solver, with its `reason`. It may have iterated already, in a trial.

    Raises:
      GameTooLargeError, ValueError, ImportError: See `solve`.
    """
    solver = _choose(find, represented, task)
    unkept = dataclasses.replace(task, checkpoint=None)
    if task.checkpoint and not _kept(task) and _suits_linear(represented, unkept):
        solver.reason += "; lp does not support checkpoints"
    return solver


def improve(
    solver: IterativeSolver, represented: Any, task: Task, *, progress: bool | None
) -> lp.Solution | None:
    """Solve linear programs on the support of the average strategy of a finished run.

    Args:
      solver: The solver after its last iteration; its `reason` mentions the result.
      represented: The represented game.
      task: Algorithm, goal and options of the run.
      progress: Whether to print a message to stderr.

    Returns:
      The solution, if it has a lower NashConv than the average strategy.
    """
    if not _suits_polish(represented, task) or not isinstance(solver, Solver):
        return None
    assert solver.solved is not None
    span = represented.game.max_utility() - represented.game.min_utility()
    before = solver.evaluate()
    if before.gap <= max(task.goal.until or 0.0, _ROUNDING * span):
        return None
    start = time.perf_counter()
    average = solver.average_behaviour(0), solver.average_behaviour(1)
    solution = lp.polished(solver.solved.sequence_form, average, _SIMPLEX * task.most)
    solver.seconds += time.perf_counter() - start
    if solution is None or solution.nash_conv_with_locks >= before.gap:
        return None
    name = "NashConv with locks" if solver.has_locks else "NashConv"
    message = (
        f"then a linear program on what it plays: {name} {before.gap:.1e} to "
        f"{solution.nash_conv_with_locks:.1e}"
    )
    solver.reason += f"; {message}"
    announce(message, progress=progress)
    return solution


def _choose(find: Find, represented: Any, task: Task) -> IterativeSolver:
    if kept := _kept(task):
        return _make(find, represented, task, *kept)
    spent, seconds = 0.0, task.goal.seconds
    names, reason = _candidates(represented, task)
    if _suits_linear(represented, task):
        start = time.perf_counter()
        limit = None if seconds is None else seconds * _LINEAR_SHARE
        linear = dataclasses.replace(task, algorithm=find("lp"), goal=Goal())
        try:
            exact = tabular_makers.linear(represented, linear)
            exact.run(seconds=limit)
            exact.reason = (
                f"payoffs and sequences, {_size(represented):,} in all, are few"
            )
            return exact
        except (SolverFailedError, GameTooLargeError):
            spent = time.perf_counter() - start
    if bound := _rough_bound(represented, task):
        return _single_precision(find, represented, task, names[0], reason, bound)
    if len(names) == 1:
        return _make(find, represented, task, names[0], reason)
    return _try(find, represented, task, names, spent)


def _kept(task: Task) -> tuple[str, str] | None:
    """Return the algorithm of a checkpoint and a reason, or None."""
    metadata = representation.checkpoint_metadata(task.path)
    name, reason = metadata.get("algorithm"), metadata.get("reason")
    if not isinstance(name, str):
        return None
    # A run whose caller named the algorithm has no reason.
    if not reason or not isinstance(reason, str):
        reason = "the algorithm of the checkpoint"
    return name, reason


def _make(
    find: Find, represented: Any, task: Task, name: str, reason: str
) -> IterativeSolver:
    solver = dataclasses.replace(task, algorithm=find(name)).solver(represented)
    solver.reason = reason
    return solver


def _size(represented: Any) -> int:
    """Return the number of sequences and payoffs of a game tree."""
    return _num_sequences(represented) + len(represented.sequence_form.payoffs.values)


def _num_sequences(represented: Any) -> int:
    return sum(one.num_sequences for one in represented.sequence_form.decisions)


def _suits_exact(represented: Any, task: Task) -> bool:
    """Return whether linear programs can do what the options require."""
    options = task.options
    shares = options.buckets is not None or options.imperfect_recall
    exact = _BY_FORM[represented.kind].exact
    return exact and not shares and task.dtype != "float32"


def _suits_linear(represented: Any, task: Task) -> bool:
    """Return whether a linear program suits the task, and is fast enough."""
    goal, most = task.goal, _LINEAR
    other = (goal.iterations, goal.eval_every, task.checkpoint)
    if other != (None, None, None) or not _suits_exact(represented, task):
        return False
    if goal.seconds is not None:
        most = min(int(goal.seconds * _LINEAR_RATE), _LINEAR_MOST)
    return _size(represented) <= most


def _suits_polish(represented: Any, task: Task) -> bool:
    """Return whether linear programs end the run; they do so without a time limit."""
    goal = task.goal
    timed = goal.until is not None and goal.iterations is None
    if timed or goal.seconds is not None or not _suits_exact(represented, task):
        return False
    return task.most >= _POLISHED and _size(represented) <= _LINEAR_MOST


def _rough_bound(represented: Any, task: Task) -> float:
    """Return the NashConv down to which single precision, twice as fast, is reliable.

    0 if single precision is not used.
    """
    until, fixed_options = task.goal.until, (task.dtype, task.checkpoint)
    single = _BY_FORM[represented.kind].single
    if until is None or fixed_options != (None, None) or not single:
        return 0.0
    span: float = represented.game.max_utility() - represented.game.min_utility()
    return _ROUGH * span if until >= _FINE * span else 0.0


def _single_precision(
    find: Find,
    represented: Any,
    task: Task,
    name: str,
    reason: str,
    bound: float,
) -> IterativeSolver:
    """Make a solver in single precision that switches to double where it stalls.

    Args:
      find: Reads algorithms by name.
      represented: The represented game.
      task: Algorithm, goal and options of the run.
      name: Name of the algorithm.
      reason: Reason for this algorithm, for `IterativeSolver.reason`.
      bound: NashConv down to which single precision has never been seen to stall.

    Raises:
      GameTooLargeError: If double precision, which may become necessary, needs more
        memory than the limit.
    """
    until = task.goal.until
    assert until is not None
    suffix = f"; float32 suffices for until={until:g}"
    if watched := until < bound:
        config, limit = find(name).config, task.options.memory_limit
        footprint.check(represented, config, np.float64, limit)
        suffix = f"; in float32, for until={until:g}"

    def stalls(curve: Sequence[CurvePoint]) -> bool:
        last = curve[-1]
        factor = 2 if last.gap <= bound else 4
        before = [one for one in curve if factor * one.iterations <= last.iterations]
        share = _STALLED[factor]
        return bool(before) and last.gap > share * before[-1].gap

    single = dataclasses.replace(task, dtype="float32")
    solver = _make(find, represented, single, name, reason + suffix)
    assert isinstance(solver, Solver)

    def switch(curve: Sequence[CurvePoint]) -> Solver | None:
        return _in_double(solver) if curve and stalls(curve) else None

    solver.switch = switch if watched else None
    return solver


def _in_double(single: Solver) -> Solver:
    """Replace a solver by one in double precision, and free the old solver's arrays."""
    announce("continuing in float64, because float32 stalls")
    assert single.solved is not None
    double = np.dtype(np.float64)
    arrays = {
        name: leaf.astype(double if leaf.dtype.kind == "f" else leaf.dtype)
        for name, leaf in single.arrays().items()
    }
    iterations = single.iterations
    # Memory may not suffice for the arrays of both solvers.
    single.release()
    solver = tabular_makers.full_width_solver(
        single.solved._replace(dtype=double),
        single.config,
        dtype=double,
        buckets=single.buckets,
    )
    solver.restore(arrays, seconds=single.seconds)
    solver.compile_seconds += single.compile_seconds
    solver.reason = (
        f"{single.reason}; float64 after {iterations:,} iterations, where it stalled"
    )
    return solver


def _candidates(represented: Any, task: Task) -> tuple[tuple[str, ...], str]:
    """Return the candidates, and the reason if there is only one."""
    choices, form = _BY_FORM[represented.kind], represented.kind
    if task.options.buckets is not None or task.options.imperfect_recall:
        return (_SHARED,), "infosets share regrets"
    if len(choices.candidates) > 1:
        if (task.goal.iterations or _SHORT) < _SHORT:
            return (choices.in_subgames,), "there are too few iterations for a trial"
        if (sequences := _num_sequences(represented)) > _MANY:
            return (_LARGE,), f"{sequences:,} sequences are too many for a trial"
    if choices.several_rounds:
        betting = represented.betting
        if betting.round[betting.player != TERMINAL].any():
            return (choices.several_rounds,), f"for several rounds in the form {form}"
    return choices.candidates, f"the best in the form {form}"


def _try(
    find: Find,
    represented: Any,
    task: Task,
    names: Sequence[str],
    spent: float,
) -> IterativeSolver:
    """Run a trial of several algorithms and return the best solver, to be continued.

    Args:
      find: Reads algorithms by name.
      represented: The represented game.
      task: Algorithm, goal and options of the run.
      names: Names of the candidates.
      spent: Seconds of the budget that were used before the trial.
    """
    goal, most = task.goal, task.most
    rounds, seconds = _ROUNDS, goal.seconds
    if seconds is not None:
        # A linear program may have used up a short budget.
        left = max(seconds - spent, _TRIAL_SECONDS * seconds)
        rounds, seconds = (most,), left * _TRIAL_SECONDS
    if goal.iterations is not None or (goal.until is None and seconds is None):
        rounds = (math.ceil(_TRIAL * most),)
    if task.checkpoint is not None:
        rounds = (min(rounds[-1], _KEPT_TRIAL),)
        seconds = None if seconds is None else min(seconds, _KEPT_SECONDS)
    part = dataclasses.replace(goal, iterations=None, seconds=seconds)
    solvers: dict[str, IterativeSolver] = {}
    gaps: dict[str, float] = {}
    for count, name in itertools.product(rounds, names):
        solver = solvers[name] = solvers.get(name) or _make(
            find, represented, task, name, ""
        )
        _, solver.curve, _ = drive(solver, part, None, most=count, progress=False)
        gaps[name] = solver.evaluate().gap
        if goal.until is not None and gaps[name] <= goal.until:
            break
    solver = solvers[min(gaps, key=lambda name: gaps[name])]
    measure = "NashConv" if task.options.locks is None else "NashConv with locks"
    solver.reason = f"{measure} " + ", ".join(
        f"{gaps[name]:.1e} by {name} after {one.iterations:,} iterations"
        for name, one in solvers.items()
    )
    solver.curve = tuple(
        point
        for point in solver.curve
        if goal.next_evaluation(point.iterations - 1, most) == point.iterations
    )
    solver.seconds = spent + sum(one.seconds for one in solvers.values())
    solver.compile_seconds = sum(one.compile_seconds for one in solvers.values())
    return solver
