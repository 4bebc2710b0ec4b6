"""One cell of the benchmark: a solver on a game, usually in a process of its own.

`Cell` does the work; `RemoteCell` has the same methods and does it in a subprocess, so
that one contestant's memory, threads and compiled programs are not another's. The
process answers one JSON line for each JSON line it reads.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks import peers

# Batches of iterations between two looks at the clock take about this many seconds, or
# a tenth of the budget if that is less.
_CHUNK_SECONDS = 0.25
# Iterations outside the clock before anything is measured.
_WARM_UP_SECONDS = 0.2

Facts = dict[str, Any]


class CellError(RuntimeError):
    """A cell could not be measured; the message says why."""


class CellLike(Protocol):
    """What `Cell` and `RemoteCell` offer."""

    def prepare(self) -> Facts: ...

    def rate(self, seconds: float) -> Facts: ...

    def solve(self, seconds: float) -> Facts: ...

    def verify(self) -> Facts: ...

    def close(self) -> None: ...


def run_for(run: Callable[[int], None], seconds: float) -> tuple[int, float]:
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


class Cell:
    """A solver on a game, in this process."""

    def __init__(self, game: str, solver: str) -> None:
        self._game = game
        self._solver = solver

    def prepare(self) -> Facts:
        """Builds, compiles and warms up; imports come before the clock."""
        peers.import_modules(self._solver)
        start_mib = peak_mib()
        started = time.perf_counter()
        self._contestant = peers.make(self._solver, self._game)
        built = time.perf_counter() - started
        if peers.describe(self._solver).iterative:
            run_for(self._contestant.run, _WARM_UP_SECONDS)
        facts = {
            "build_seconds": built - self._contestant.compile_seconds,
            "compile_seconds": self._contestant.compile_seconds,
            "device": self._contestant.device,
            "start_mib": start_mib,
        }
        if hasattr(self._contestant, "compile_game_seconds"):
            facts["compile_game_seconds"] = self._contestant.compile_game_seconds
        return facts

    def rate(self, seconds: float) -> Facts:
        """Iterates on for a while."""
        iterations, spent = run_for(self._contestant.run, seconds)
        return {"iterations": iterations, "seconds": spent}

    def solve(self, seconds: float) -> Facts:
        """Solves from the start within a budget and lets OpenSpiel judge."""
        self._contestant.reset()
        if peers.describe(self._solver).iterative:
            iterations, spent = run_for(self._contestant.run, seconds)
        else:
            started = time.perf_counter()
            self._contestant.run(1)
            iterations, spent = 1, time.perf_counter() - started
        peak = peak_mib()
        return {
            "solve_iterations": iterations,
            "solve_seconds": spent,
            "nash_conv": self._contestant.nash_conv(),
            "peak_mib": peak,
        }

    def verify(self) -> Facts:
        """The yardstick's distance from spiel_cr; nothing for other solvers."""
        check = getattr(self._contestant, "disagreement", None)
        return check() if check is not None else {}

    def close(self) -> None:
        """Nothing to do."""


class RemoteCell:
    """A solver on a game, in a subprocess."""

    def __init__(self, game: str, solver: str) -> None:
        root = str(pathlib.Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cell", game, solver],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def prepare(self) -> Facts:
        return self._ask("prepare")

    def rate(self, seconds: float) -> Facts:
        return self._ask("rate", seconds)

    def solve(self, seconds: float) -> Facts:
        return self._ask("solve", seconds)

    def verify(self) -> Facts:
        return self._ask("verify")

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, method: str, *arguments: float) -> Facts:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(
                json.dumps([method, *arguments]), file=self._process.stdin, flush=True
            )
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise CellError(f"its process ended with code {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise CellError(answer["error"])
        return answer


def peak_mib() -> float:
    """Peak resident memory of this process so far, in MiB."""
    try:
        # Unlike ru_maxrss this leaves out the parent's memory before exec.
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _serve(game: str, solver: str) -> None:
    """Answers requests until there are no more."""
    # Some contestants print; only answers may reach the asking process.
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    cell = Cell(game, solver)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            answer = getattr(cell, method)(*arguments)
        except Exception as error:  # The asking process reports it.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
