"""One run of the benchmark: a solver on a game, usually in a process of its own.

`in_a_process` does the work of a `SolverRun` in another process, so that one solver's
memory, threads and compiled programs are not another's.
"""

import concurrent.futures
import contextlib
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import TypeAlias

import jax

from benchmarks import c_reference, peers
from benchmarks.frame import Row
from spiel_cr.common.memory import peak_bytes
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.contestants import registry
from spiel_cr.eval.judging.cpp_judge import ExactJudge

# Batches of iterations between two looks at the clock take about this many seconds, or
# a tenth of the budget if that is less.
_CHUNK_SECONDS = 0.25
# Iterations outside the clock before anything is measured.
_WARM_UP_SECONDS = 0.2


class RunError(RuntimeError):
    """A solver could not be measured; the message says why."""


# Calls a method of a `SolverRun` by its name, with the seconds it has.
Ask: TypeAlias = Callable[..., Row]
# From a game and a solver to a run of them.
OpenRun: TypeAlias = Callable[[str, str], contextlib.AbstractContextManager[Ask]]


def run_for(run: Callable[[int], object], seconds: float) -> tuple[int, float]:
    """Iterates until the clock shows `seconds`, at least once.

    Args:
      run: does a given number of iterations.
      seconds: budget; passed by less than one batch.

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
        if elapsed >= seconds:
            return done, elapsed
        affordable = done / elapsed * min(limit, seconds - elapsed)
        chunk = max(1, min(8 * chunk, int(affordable)))


def warm_up(run: Callable[[int], object]) -> None:
    """Iterates for a moment before anything is measured."""
    run_for(run, _WARM_UP_SECONDS)


class SolverRun:
    """A solver on a game, in this process."""

    def __init__(self, game: str, solver: str) -> None:
        self._instance = GameInstance(game, observations=False)
        self._name = solver

    def prepare(self) -> Row:
        """Builds, compiles and warms up; imports come before the clock.

        Raises:
          RunError: a module that the solver needs is not installed.
        """
        self._solver = peers.find(self._name)
        missing = registry.why_missing(self._solver.entry)
        if missing is not None:
            raise RunError(missing)
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
            warm_up(self._adapter.run)
        return facts

    def rate(self, seconds: float) -> Row:
        """Iterates on for a while."""
        iterations, spent = run_for(self._adapter.run, seconds)
        return {"iterations": iterations, "seconds": spent}

    def solve(self, seconds: float) -> Row:
        """Solves from the start within a budget and lets OpenSpiel judge.

        The row of the yardstick says how far it is from spiel_cr, too.
        """
        # Two adapters would double the memory; what is compiled stays compiled.
        del self._adapter
        self._make()
        # What cannot be stopped takes the time that it takes.
        budget = seconds if self._solver.iterative else 0.0
        iterations, spent = run_for(self._adapter.run, budget)
        peak = peak_bytes() / 2**20
        judge = ExactJudge(self._instance)
        row = {
            "solve_iterations": iterations,
            "solve_seconds": spent,
            "nash_conv": judge.final(self._adapter.strategy()).nash_conv,
            "peak_mib": peak,
        }
        if self._solver.family == "c":
            row |= c_reference.disagreement(self._instance.tree.form)
        return row

    def _make(self) -> None:
        self._adapter = self._solver.entry.make(self._instance, 0)


@contextlib.contextmanager
def here(game: str, solver: str) -> Iterator[Ask]:
    """A solver on a game, in this process."""
    run = SolverRun(game, solver)
    yield lambda method, *seconds: getattr(run, method)(*seconds)


@contextlib.contextmanager
def in_a_process(game: str, solver: str) -> Iterator[Ask]:
    """A solver on a game, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        1, context, _begin, (game, solver)
    ) as pool:

        def ask(method: str, *seconds: float) -> Row:
            try:
                return pool.submit(_answer, method, *seconds).result()
            except BrokenProcessPool as error:
                raise RunError(f"its process ended: {error}") from error

        yield ask


# The run of a process that does nothing else.
_run: SolverRun


def _begin(game: str, solver: str) -> None:
    """Begins a process's run; some solvers print, which belongs in no table."""
    global _run
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _run = SolverRun(game, solver)


def _answer(method: str, *arguments: float) -> Row:
    """Any error as a RunError, which every process can read."""
    try:
        return getattr(_run, method)(*arguments)
    except RunError:
        raise
    except Exception as error:
        raise RunError(f"{type(error).__name__}: {error}") from None
