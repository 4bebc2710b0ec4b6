"""One run: an algorithm on a game with a seed and a budget.

The clock runs while an adapter works. It is stopped while the adapter is created,
while JAX compiles, and while NashConv is evaluated on the way. Points of the curve are
at 1, 2, 5, 10 ... iterations, or at fixed shares of the time budget.
"""

import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from spiel_cr.common import compilation_cache
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.json_log import Record

from ..adapters import registry
from ..adapters.protocol import Entry, SolverAdapter
from ..common import conditions
from ..common.budget import Budget
from ..common.exact_evaluator import ExactEvaluator
from ..common.game_instance import GameInstance, MissingError

# Approximate seconds of work between two readings of the clock.
_CHUNK_SECONDS = 0.5
# A run from scratch only starts if it should take at most this share of the budget.
_TARGET_SHARE = 0.9
_MAX_ITERATIONS = 2**31 - 1

# Fields that identify a run of a comparison.
KEY = ("game", "algorithm", "seed")


class Run(NamedTuple):
    """A run to do: its key, its `Budget`, and the memory limit of the game in bytes."""

    game: str
    algorithm: str
    seed: int
    seconds: float | None
    iterations: int | None
    memory_limit: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.game, self.algorithm, self.seed

    @property
    def budget(self) -> Budget:
        return Budget(self.seconds, self.iterations)


class Spent(NamedTuple):
    """Wall-clock seconds of work, and processor seconds of the same work."""

    seconds: float
    cpu_seconds: float


class LastGame:
    """A cache of the most recent game and its evaluator.

    It holds a single game because games may be large. If a game is too large, the
    reason is kept, because computing it again would take long.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[GameInstance, ExactEvaluator]] = {}
        self._too_large: dict[tuple[str, float | None], str] = {}

    def load(
        self, name: str, limit: float | None
    ) -> tuple[GameInstance, ExactEvaluator]:
        """Return a game and its evaluator.

        Args:
          name: OpenSpiel game string.
          limit: Memory limit in bytes.

        Raises:
          MissingError: If the game is too large.
        """
        if (name, limit) in self._too_large:
            raise MissingError(self._too_large[name, limit])
        if name not in self._loaded:
            self._loaded.clear()
            instance = GameInstance(name, memory_limit=limit)
            try:
                self._loaded[name] = instance, ExactEvaluator(instance)
            except MissingError as error:
                self._too_large[name, limit] = str(error)
                raise
        return self._loaded[name]


def failed(run: Run, error: str | None) -> Record:
    """Return the record of a run without results."""
    numbers = dict.fromkeys(("seconds", "iterations", "nash_conv", "game_value"))
    key = dict(zip(KEY, run.key, strict=True))
    return {**key, **numbers, "error": error, **conditions.facts()}


def measurer(caches: bool = True) -> Callable[[Run], Record]:
    """Return the function that a worker calls for each run.

    Args:
      caches: Whether compiled functions are cached. If not, compilation times are
        those of a first run.
    """
    if not caches:
        os.environ[compilation_cache.VARIABLE] = "off"
    return functools.partial(measure_run, LastGame())


def measure_run(cache: LastGame, run: Run) -> Record:
    """Do a run and return its line of `results.jsonl`; never raises an error.

    A failed run has an `error`. A run that is not possible here has `missing`, the
    reason. Neither has results.
    """
    start = time.perf_counter()
    record = failed(run, None)
    try:
        entry = registry.find(run.algorithm)
        registry.check_installed(entry)
        record.update(_measure(entry, run, *cache.load(run.game, run.memory_limit)))
    except (MissingError, GameTooLargeError) as error:
        record["missing"] = str(error)
    except Exception as error:
        # A failing algorithm must not stop the others.
        first = (str(error).strip().splitlines() or ["no message"])[0]
        record["error"] = f"{type(error).__name__}: {first}"
    record["finished"] = conditions.now()
    record["wall_seconds"] = round(time.perf_counter() - start, 4)
    return record


def _measure(
    entry: Entry, run: Run, instance: GameInstance, evaluator: ExactEvaluator
) -> Record:
    start = time.perf_counter()
    adapter = entry.make(instance, run.seed)
    setup = time.perf_counter() - start - adapter.compile_seconds
    curve = []
    for spent, iterations, last in work(entry, adapter, run.budget):
        # The last point has the NashConv of the final evaluation.
        nash_conv = None if last else evaluator.curve_point(adapter.strategy())
        curve.append([spent.seconds, iterations, nash_conv])
    evaluation = evaluator.final(adapter.strategy())
    curve[-1][2] = evaluation.nash_conv
    return {
        "seconds": spent.seconds,
        "iterations": iterations,
        "nash_conv": evaluation.nash_conv,
        "game_value": evaluation.game_value,
        "evaluator": evaluation.evaluator,
        "evaluator_reason": evaluation.statistics["reason"],
        "curve": curve,
        "curve_evaluator": evaluator.curve_by,
        "setup_seconds": setup + (instance.walk_seconds if entry.is_spiel_cr else 0.0),
        "compile_seconds": adapter.compile_seconds,
        "cpu_seconds": spent.cpu_seconds,
        "note": adapter.note,
    }


# Time spent so far, iterations so far, and whether the point is the last.
_Steps = Iterator[tuple[Spent, int | None, bool]]


def work(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """Run an adapter within a budget, and stop at each point of its curve.

    Args:
      entry: Algorithm.
      adapter: The algorithm on a game, just created.
      budget: Time or iterations.

    Yields:
      Time spent so far, iterations so far, and whether the point is the last one.
    """
    steps = {"iterates": _iterate, "restarts": _restart, "once": _once}[entry.mode]
    yield from steps(entry, adapter, budget)


def _iterate(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """Continue the same run up to each point."""
    points = budget.points()
    seconds, cpu, done = 0.0, 0.0, 0
    for point in points:
        before = done
        while True:
            rate = done / seconds if seconds else 1.0
            if budget.seconds is not None:
                # The rate is known after the first iteration.
                left = (point - seconds) * rate if seconds else 1.0
                over = seconds >= point
            else:
                left, over = point - done, done >= point
            if over:
                break
            chunk = min(left, rate * _CHUNK_SECONDS, 4.0 * max(done, 1))
            count = max(1, min(int(chunk), _MAX_ITERATIONS))
            spent = _clocked(adapter, count)
            seconds += spent.seconds
            cpu += spent.cpu_seconds
            done += count
        last = point == points[-1]
        if done > before or last:
            yield Spent(seconds, cpu), done, last


def _restart(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """Do a run from scratch for each point."""
    if budget.iterations is not None:
        for point in budget.points():
            count = max(entry.least, int(point))
            last = point == budget.iterations
            if last or count == int(point):
                yield _clocked(adapter, count), count, last
        return
    assert budget.seconds is not None
    if entry.timed:
        for point in budget.points():
            spent = _clocked(adapter, float(point))
            yield spent, adapter.iterations, point == budget.seconds
        return
    count = entry.least
    while True:
        spent = _clocked(adapter, count)
        # Predicted from this run; longer runs take less time per iteration.
        fit = int(_TARGET_SHARE * budget.seconds / max(spent.seconds, 1e-9) * count)
        following = min(4 * count, fit, _MAX_ITERATIONS)
        last = following < 1.3 * count
        yield spent, count, last
        if last:
            return
        count = following


def _once(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    yield _clocked(adapter, 1), adapter.iterations, True


def _clocked(adapter: SolverAdapter, iterations: Any) -> Spent:
    """Run iterations; processor time includes compilation, wall-clock time does not."""
    cpu, start = time.process_time(), time.perf_counter()
    adapter_seconds = adapter.run(iterations)
    seconds = time.perf_counter() - start
    if adapter_seconds is not None:
        seconds = adapter_seconds
    return Spent(seconds, time.process_time() - cpu)
