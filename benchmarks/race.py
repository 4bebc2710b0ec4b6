"""The equal-time loop of all solvers, ours and those of others, on one game.

Every solver has a process of its own, so that its memory, threads and compiled programs
are not another's. Building and compiling happen one after another; iterations are
counted in turns, one window of every solver in each round, so that the noise of a
shared machine hits all alike; then each solves for the whole budget. Processes that
wait are idle.
"""

import contextlib
import functools
import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax

from benchmarks import c_reference, peers
from benchmarks.frame import Row, say
from benchmarks.games import string_of
from spiel_cr.common import processes
from spiel_cr.common.errors import WorkerFailedError
from spiel_cr.common.memory import peak_bytes
from spiel_cr.eval.common.exact_evaluator import ExactEvaluator
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.contestants import registry

# Batches of iterations between two looks at the clock take about this many seconds, or
# a tenth of the budget if that is less.
_CHUNK_SECONDS = 0.25
# Iterations outside the clock before anything is measured.
_WARM_UP_SECONDS = 0.2


class Plan(NamedTuple):
    """How much is measured, the same for every solver.

    Attributes:
      seconds: of a solve.
      repeats: windows in which iterations/s are counted.
      window: seconds of one.
    """

    seconds: float
    repeats: int
    window: float


# Calls a method of a `SolverRun` by its name.
Ask: TypeAlias = Callable[..., Row]
# From a game and a solver to a run of them.
OpenRun: TypeAlias = Callable[[str, str], contextlib.AbstractContextManager[Ask]]


def run_for(
    run: Callable[[int], object],
    seconds: float,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[int, float]:
    """Iterates until the clock shows `seconds`, at least once.

    Args:
      run: does a given number of iterations.
      seconds: budget; passed by less than one batch.
      stop: asked after each batch; True ends it before.

    Returns:
      Iterations done and seconds taken.
    """
    done, chunk = 0, 1
    limit = min(_CHUNK_SECONDS, seconds / 10)
    started = time.perf_counter()
    while True:
        run(chunk)
        done += chunk
        elapsed = time.perf_counter() - started
        if elapsed >= seconds or stop():
            return done, elapsed
        affordable = done / elapsed * min(limit, seconds - elapsed)
        chunk = max(1, min(8 * chunk, int(affordable)))


class SolverRun:
    """A solver on a game, in this process."""

    def __init__(self, game: str, solver: str) -> None:
        self._instance = GameInstance(string_of(game), observations=False)
        self._name = solver

    def __call__(self, request: Sequence[Any]) -> Row:
        """What a method returns."""
        method, *values = request
        return getattr(self, method)(*values)

    def prepare(self) -> Row:
        """Builds, compiles and warms up; imports come before the clock.

        Raises:
          WorkerFailedError: a module that the solver needs is not installed.
        """
        self._solver = peers.find(self._name)
        missing = registry.why_missing(self._solver.entry)
        if missing is not None:
            raise WorkerFailedError(missing)
        for module in self._solver.imports:
            importlib.import_module(module)
        start_mib = peak_bytes() / 2**20
        started = time.perf_counter()
        self._make()
        built = time.perf_counter() - started
        facts = {
            "build_seconds": built - self._adapter.compile_seconds,
            "compile_seconds": self._adapter.compile_seconds,
            "device": jax.default_backend() if self._solver.jax else "cpu",
            "start_mib": start_mib,
        }
        if self._instance.walk_seconds:
            facts["compile_game_seconds"] = self._instance.walk_seconds
        if self._solver.iterative:
            run_for(self._adapter.run, _WARM_UP_SECONDS)
        return facts

    def rate(self, seconds: float) -> Row:
        """Iterates on for a while."""
        iterations, spent = run_for(self._adapter.run, seconds)
        return {"rates": iterations / spent}

    def solve(self, seconds: float) -> Row:
        """Solves from the start within a budget; OpenSpiel judges, outside the clock.

        The row of the yardstick says how far it is from spiel_cr, too.
        """
        # Two adapters would double the memory; what is compiled stays compiled.
        del self._adapter
        self._make()
        # What cannot be stopped takes the time that it takes.
        budget = seconds if self._solver.iterative else 0.0
        iterations, spent = run_for(self._adapter.run, budget)
        peak = peak_bytes() / 2**20
        evaluation = ExactEvaluator(self._instance).final(self._adapter.strategy())
        row = {
            "iterations": iterations,
            "seconds": spent,
            "nash_conv": evaluation.nash_conv,
            "peak_mib": peak,
        }
        if self._solver.family == "c":
            row |= c_reference.disagreement(self._instance.tree.form)
        return row

    def _make(self) -> None:
        self._adapter = self._solver.entry.make(self._instance, 0)


# A solver on a game, in a process of its own.
in_a_process: OpenRun = functools.partial(processes.asking, SolverRun)


def race(
    game: str, solvers: Sequence[str], plan: Plan, open_run: OpenRun = in_a_process
) -> Row:
    """Measures all solvers on one game.

    Args:
      game: OpenSpiel string or short name.
      solvers: names as in `peers.find`.
      plan: how much is measured.
      open_run: opens a run of a solver; in a process of its own.

    Returns:
      As "runs" a row for each solver; `missing` in it says why there are no figures.
    """
    rows = [_row(game, solver) for solver in solvers]
    with contextlib.ExitStack() as stack:
        runs = [
            (row, stack.enter_context(open_run(game, row["solver"]))) for row in rows
        ]
        for row, ask in runs:
            row.update(_attempt(row, ask, "prepare"))
        for _ in range(plan.repeats):
            for row, ask in runs:
                if row["iterative"]:
                    found = _attempt(row, ask, "rate", plan.window)
                    for name, value in found.items():
                        row.setdefault(name, []).append(value)
        for row, ask in runs:
            row.update(_attempt(row, ask, "solve", plan.seconds))
    return {"runs": rows}


def _row(game: str, solver: str) -> Row:
    row: Row = {"game": game, "solver": solver}
    try:
        return {**row, **peers.find(solver).facts()}
    except ValueError as error:
        row |= {"title": solver, "family": "spiel_cr", "dtype": "", "iterative": True}
        return {**row, "missing": f"ValueError: {error}"}


def _attempt(row: Row, ask: Ask, method: str, *values: float) -> Row:
    """What one measurement gave; empty, with a reason in the row, if it is missing."""
    if "missing" in row:
        return {}
    say(f"{row['game']}: {row['solver']}: {method}")
    try:
        return ask(method, *values)
    except Exception as error:  # Whatever a peer raises must not stop the others.
        told, text = isinstance(error, WorkerFailedError), str(error)
        # Of a traceback the line that says what was wrong.
        what = text.splitlines()[-1] if told else f"{type(error).__name__}: {text}"
        row["missing"] = what
        say(f"{row['game']}: {row['solver']}: {row['missing']}")
        return {}


def lines(rows: Sequence[Row]) -> list[Row]:
    """Lines of tables: one for each game and solver, medians of windows."""
    found = []
    for row in (run for race in rows for run in race["runs"]):
        line = dict(row)
        if row.get("rates"):
            line |= {
                "rate": statistics.median(row["rates"]),
                "least": min(row["rates"]),
                "most": max(row["rates"]),
            }
        found.append(line)
    return found


def failures(rows: Sequence[Row]) -> Iterator[str]:
    """What is broken of this project itself."""
    for line in lines(rows):
        broken = line["family"] == "spiel_cr" and "missing" in line
        if broken or not line.get("agrees", True):
            reason = line.get("missing", "the C reference and spiel_cr disagree")
            yield f"{line['game']}, {line['solver']}: {reason}"
