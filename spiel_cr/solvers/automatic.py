"""`auto`: the algorithm of a run, chosen by form, size, budget and a trial.

Small games are solved by a linear program, and so are the supports of averages at the
end of runs by iterations. Else there are one or three candidates by the form of the
game and its rounds; of three the one goes on whose NashConv is lowest after a share of
the budget. Which one that will be nothing tells before: prediction makes some games
converge at a linear rate from some iteration on, and others slower than without.
All figures are from docs/measurements/automatic.md.
"""

import dataclasses
import itertools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spiel_cr.common import storage
from spiel_cr.common.errors import GameTooLargeError, SolverFailedError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers import footprint, tabular_run
from spiel_cr.solvers.representation import PHANTOM, PUBLIC_TREE, SIMULATOR, TREE, Laid
from spiel_cr.solvers.run import Goal, Run, drive
from spiel_cr.solvers.task import Algorithm, Task

# Candidates by form, the first one where they are alike.
CANDIDATES: Mapping[str, tuple[str, ...]] = {
    TREE: ("dcfr", "sapcfr+", "sapcfr+(prediction=0.3333)"),
    PUBLIC_TREE: ("dcfr",),
    PHANTOM: ("dcfr+",),
    SIMULATOR: ("os-mccfr",),
}
# Where infosets share regrets nothing was measured; and with more sequences than these
# several states would be a burden.
_SHARED, _MANY, _LARGE = "cfr+", 2_000_000, "dcfr+"
# For signals whose players act in several rounds; in one, rivers are behind later.
_DEALT_LATER = "hs-dcfr"
# A trial of fewer iterations would tell nothing, and compiling takes longer.
_SHORT = 30
# For solves of subgames, by the form of the game; their budgets are short.
OF_SUBGAMES: Mapping[str, str] = {TREE: "sapcfr+(gamma=5)", PUBLIC_TREE: "dcfr+"}
# Payoffs and sequences of games whose linear programs take about two seconds; how many
# more a second of the budget is good for, up to what; and its share of the budget.
_LINEAR, _LINEAR_RATE, _LINEAR_MOST, _LINEAR_SHARE = 50_000, 20_000, 200_000, 0.6
# A run of so many iterations ends with linear programs on what the average plays, which
# take about as long as iterations and trial, or a tenth of a second where those take
# less. They are given up after so many simplex iterations for each of the run's.
_POLISHED, _SIMPLEX = 1000, 3
# Shares of the range of payoffs that are rounding.
_ROUNDING = 1e-12
# The share of a trial, for each candidate: of iterations, or of seconds.
_TRIAL, _TRIAL_SECONDS = 0.3, 0.1
# No checkpoint is written before the end of the trial, which then is at most so long.
_KEPT_TRIAL, _KEPT_SECONDS = 1000, 60.0
# Signals get float32 where `until` is at least `_FINE` of the range of payoffs: it
# stalls at 4e-6 of it and less. Where that is below `_ROUGH`, it is watched: where
# twice as many iterations have left more than this share of a NashConv below `_ROUGH`,
# or four times as many of a larger one, float64 goes on. Measured with dcfr.
_ROUGH, _FINE = 2e-5, 5e-6
_STALLED = {2: 0.7, 4: 0.95}
# With `until` alone trials are as long as these, until one gets there.
_ROUNDS: tuple[int, ...] = tuple(256 << i for i in range(8))

Find = Callable[[str], Algorithm]


def begin(find: Find, laid: Laid, task: Task) -> Run:
    """A run of what suits the game and the budget; it says why.

    Args:
      find: reads algorithms by name.
      laid: the game in its form.
      task: what is asked for.

    Raises:
      As `Maker`.
    """
    run = _begin(find, laid, task)
    unkept = dataclasses.replace(task, checkpoint=None)
    if task.checkpoint and not _kept(task) and _suits_linear(laid, unkept):
        run.why += "; lp keeps no checkpoint"
    if _suits_polish(laid, task) and isinstance(run, tabular_run.TabularRun):
        game = laid.game.game
        span = game.max_utility() - game.min_utility()
        run.simplex = _SIMPLEX * task.most
        run.enough = max(task.goal.until or 0.0, _ROUNDING * span)
    return run


def _begin(find: Find, laid: Laid, task: Task) -> Run:
    if kept := _kept(task):
        return _run(find, laid, task, *kept)
    spent, seconds = 0.0, task.goal.seconds
    names, why = _candidates(laid, task)
    if _suits_linear(laid, task):
        started = time.perf_counter()
        limit = None if seconds is None else seconds * _LINEAR_SHARE
        linear = dataclasses.replace(task, algorithm=find("lp"), goal=Goal())
        try:
            exact = tabular_run.linear(laid, linear)
            assert isinstance(exact, tabular_run.LinearRun)
            exact.solve(limit)
            exact.why = f"payoffs and sequences, {_size(laid):,} in all, are few"
            return exact
        except (SolverFailedError, GameTooLargeError):
            spent = time.perf_counter() - started
    if bound := _rough_bound(laid, task):
        return _run_roughly(find, laid, task, names[0], why, bound)
    if len(names) == 1:
        return _run(find, laid, task, names[0], why)
    return _try(find, laid, task, names, spent)


def _kept(task: Task) -> tuple[str, str] | None:
    """Algorithm of a checkpoint, and why; None: there is none that can be read."""
    if task.path is None or not os.path.isfile(task.path):
        return None
    try:
        metadata = storage.load_metadata(task.path)
    except (OSError, ValueError):  # who opens it says so
        return None
    name, why = metadata.get("algorithm"), metadata.get("why")
    if not isinstance(name, str):
        return None
    # One that was begun by name has no reason.
    return name, why if why and isinstance(why, str) else "so the checkpoint was begun"


def _run(find: Find, laid: Laid, task: Task, name: str, why: str) -> Run:
    run = dataclasses.replace(task, algorithm=find(name)).run_of(laid)
    run.why = why
    return run


def _size(laid: Laid) -> int:
    assert isinstance(laid.game, GameTree)
    form = laid.game.sequence_form
    sequences = sum(decisions.num_sequences for decisions in form.decisions)
    return sequences + len(form.payoffs.values)


def _suits_linear(laid: Laid, task: Task) -> bool:
    """Whether a linear program does what is asked for, and is fast enough."""
    goal, options = task.goal, task.options
    other = (goal.iterations, goal.eval_every, task.checkpoint, options.buckets)
    if any(one is not None for one in other) or options.imperfect_recall:
        return False
    if laid.form != TREE or task.dtype == "float32":
        return False
    most = _LINEAR
    if goal.seconds is not None:
        most = min(int(goal.seconds * _LINEAR_RATE), _LINEAR_MOST)
    return _size(laid) <= most


def _suits_polish(laid: Laid, task: Task) -> bool:
    """Whether a run ends with linear programs: counted by iterations, not the clock."""
    goal, options = task.goal, task.options
    timed = goal.until is not None and goal.iterations is None
    if timed or goal.seconds is not None or task.dtype == "float32":
        return False
    if laid.form != TREE or options.buckets is not None or options.imperfect_recall:
        return False
    return task.most >= _POLISHED and _size(laid) <= _LINEAR_MOST


def _rough_bound(laid: Laid, task: Task) -> float:
    """Down to which NashConv single precision is good for sure; it takes half the time.

    0 where it is not taken: it would not come to what is asked for.
    """
    until, given = task.goal.until, (task.dtype, task.checkpoint)
    if (
        until is None
        or given != (None, None)
        or not isinstance(laid.game, PublicTreeGame)
    ):
        return 0.0
    span: float = laid.game.game.max_utility() - laid.game.game.min_utility()
    return _ROUGH * span if until >= _FINE * span else 0.0


def _run_roughly(
    find: Find, laid: Laid, task: Task, name: str, why: str, bound: float
) -> Run:
    """A run in single precision; double goes on where it stalls, if it may.

    Args:
      find: reads algorithms by name.
      laid: the game in its form.
      task: what is asked for.
      name: of the algorithm.
      why: this one.
      bound: down to which NashConv nobody has seen single precision stall.

    Raises:
      GameTooLargeError: double precision, which may be needed, takes too much.
    """
    until = task.goal.until
    assert until is not None and isinstance(laid.game, PublicTreeGame)
    said = f"; float32 suffices for until={until:g}"
    if watched := until < bound:
        config, limit = find(name).config, task.options.memory_limit
        footprint.check(laid.game, config, np.float64, limit)
        said = f"; in float32, for until={until:g}"

    def stalls(curve: Sequence[CurvePoint]) -> bool:
        last = curve[-1]
        factor = 2 if last.gap <= bound else 4
        before = [one for one in curve if factor * one.iterations <= last.iterations]
        share = _STALLED[factor]
        return bool(before) and last.gap > share * before[-1].gap

    single = dataclasses.replace(task, dtype="float32")
    run = _run(find, laid, single, name, why + said)
    assert isinstance(run, tabular_run.TabularRun)
    run.stalls = stalls if watched else None
    return run


def _candidates(laid: Laid, task: Task) -> tuple[tuple[str, ...], str]:
    """Algorithms, and why these where it is one."""
    if task.options.buckets is not None or task.options.imperfect_recall:
        return (_SHARED,), "infosets share regrets"
    if laid.form == TREE and (task.goal.iterations or _SHORT) < _SHORT:
        return (OF_SUBGAMES[TREE],), "so few iterations are no trial"
    if isinstance(laid.game, GameTree):
        sequences = sum(one.num_sequences for one in laid.game.sequence_form.decisions)
        if sequences > _MANY:
            return (_LARGE,), f"{sequences:,} sequences are too many for a trial"
    if isinstance(laid.game, PublicTreeGame):
        betting = laid.game.betting
        if betting.round[betting.player != TERMINAL].any():
            return (_DEALT_LATER,), f"for several rounds in the form {laid.form}"
    return CANDIDATES[laid.form], f"the best in the form {laid.form}"


def _try(find: Find, laid: Laid, task: Task, names: Sequence[str], spent: float) -> Run:
    """The best of several, where a trial has left it.

    Args:
      find: reads algorithms by name.
      laid: the game in its form.
      task: what is asked for.
      names: of the candidates.
      spent: seconds of the budget that are gone; the trial's are added to the clock.
    """
    goal, most = task.goal, task.most
    rounds, seconds = _ROUNDS, goal.seconds
    if seconds is not None:
        rounds, seconds = (most,), (seconds - spent) * _TRIAL_SECONDS
    if goal.iterations is not None or (goal.until is None and seconds is None):
        rounds = (math.ceil(_TRIAL * most),)
    if task.checkpoint is not None:
        rounds = (min(rounds[-1], _KEPT_TRIAL),)
        seconds = None if seconds is None else min(seconds, _KEPT_SECONDS)
    part = dataclasses.replace(goal, iterations=None, seconds=seconds)
    runs: dict[str, Run] = {}
    found: dict[str, float] = {}
    for count, name in itertools.product(rounds, names):
        run = runs[name] = runs.get(name) or _run(find, laid, task, name, "")
        run.curve = drive(run, part, None, most=count, progress=False)
        found[name] = run.evaluate().gap
        if goal.until is not None and found[name] <= goal.until:
            break
    run = runs[min(found, key=lambda name: found[name])]
    measured = "NashConv" if task.options.locks is None else "NashConv with locks"
    run.why = f"{measured} " + ", ".join(
        f"{found[name]:.1e} by {name} after {one.iterations:,} iterations"
        for name, one in runs.items()
    )
    run.curve = tuple(
        point
        for point in run.curve
        if goal.next_evaluation(point.iterations - 1, most) == point.iterations
    )
    run.solver.seconds = spent + sum(one.seconds for one in runs.values())
    run.compile_seconds = sum(one.compile_seconds for one in runs.values())
    run.solver.compile_seconds = run.compile_seconds
    return run
