"""One run: an algorithm on a game with a seed and a budget.

The clock runs while an adapter works, and stands still while it is made, while JAX
compiles, and while NashConv is computed on the way. Points of the curve are at 1, 2, 5,
10 ... iterations, or at these shares of the time.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.json_log import Record

from ..common import conditions
from ..common.budget import Budget
from ..common.exact_evaluator import ExactEvaluator
from ..common.game_instance import GameInstance, MissingError
from ..contestants import registry
from ..contestants.protocol import Entry, SolverAdapter

# Seconds of work between two readings of the clock, about.
_CHUNK_SECONDS = 0.5
# A run from the beginning is only tried if it should take this share of the budget.
_AIM = 0.9
_MOST_ITERATIONS = 2**31 - 1


# What tells the runs of a comparison apart.
KEY = ("game", "algorithm", "seed")


class Run(NamedTuple):
    """A run to do: its key, a `Budget`, and how many bytes the game may take."""

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


class _Time(NamedTuple):
    """What work took: on the clock, and of processors."""

    seconds: float
    cpu_seconds: float


class _Point(NamedTuple):
    time: _Time
    iterations: int | None
    nash_conv: float


# The last game only: games may be large.
_entered: dict[str, tuple[GameInstance, ExactEvaluator]] = {}
# (game, limit): why it was refused. It would take long to find that out again.
_refused: dict[tuple[str, float | None], str] = {}


def failed(run: Run, error: str | None) -> Record:
    """The line of a run that gave no numbers."""
    numbers = dict.fromkeys(("seconds", "iterations", "nash_conv", "game_value"))
    return {
        **dict(zip(KEY, run.key, strict=True)),
        **numbers,
        "error": error,
        **conditions.facts(),
    }


def measurer() -> Callable[[Run], Record]:
    """What workers do."""
    return measure_run


def measure_run(run: Run) -> Record:
    """Does a run; returns its line of `results.jsonl`, whatever happens.

    A run that fails has an `error`; one that is not possible here has `missing`, the
    reason. Both have no numbers.
    """
    started = time.perf_counter()
    record = failed(run, None)
    try:
        entry = registry.find(run.algorithm)
        reason = registry.why_missing(entry)
        if reason is not None:
            raise MissingError(reason)
        record.update(_measure(entry, run))
    except (MissingError, GameTooLargeError) as error:
        record["missing"] = str(error)
    except Exception as error:
        # Whatever an algorithm does wrong, the others go on.
        first = (str(error).strip().splitlines() or ["no message"])[0]
        record["error"] = f"{type(error).__name__}: {first}"
    record["finished"] = conditions.now()
    record["wall_seconds"] = round(time.perf_counter() - started, 4)
    return record


def _measure(entry: Entry, run: Run) -> Record:
    instance, judge = _enter(run.game, run.memory_limit)
    started = time.perf_counter()
    adapter = entry.make(instance, run.seed)
    setup = time.perf_counter() - started - adapter.compile_seconds
    points = _follow(entry, adapter, run.budget, judge)
    evaluation = judge.final(adapter.strategy())
    # The last point is what is judged with all care.
    last = points[-1]._replace(nash_conv=evaluation.nash_conv)
    return {
        "seconds": last.time.seconds,
        "iterations": last.iterations,
        "nash_conv": evaluation.nash_conv,
        "game_value": evaluation.game_value,
        "evaluator": evaluation.evaluator,
        "evaluator_reason": evaluation.statistics["reason"],
        "curve": [
            [p.time.seconds, p.iterations, p.nash_conv] for p in (*points[:-1], last)
        ],
        "curve_evaluator": judge.curve_by,
        "setup_seconds": setup + (instance.walk_seconds if entry.ours else 0.0),
        "compile_seconds": adapter.compile_seconds,
        "cpu_seconds": last.time.cpu_seconds,
        "note": adapter.note,
    }


def _enter(game: str, limit: float | None) -> tuple[GameInstance, ExactEvaluator]:
    if (game, limit) in _refused:
        raise MissingError(_refused[game, limit])
    if game not in _entered:
        _entered.clear()
        instance = GameInstance(game, memory_limit=limit)
        try:
            _entered[game] = instance, ExactEvaluator(instance)
        except MissingError as error:
            _refused[game, limit] = str(error)
            raise
    return _entered[game]


def _follow(
    entry: Entry, adapter: SolverAdapter, budget: Budget, judge: ExactEvaluator
) -> list[_Point]:
    """Lets an adapter work; the curve, NaN for the NashConv of its last point."""
    steps = {"iterates": _iterate, "restarts": _restart, "once": _once}[entry.way]
    points: list[_Point] = []
    for spent, iterations, last in steps(entry, adapter, budget):
        nash_conv = float("nan") if last else judge.curve_point(adapter.strategy())
        points.append(_Point(spent, iterations, nash_conv))
    return points


# The time so far, iterations done, and whether the point is the last.
_Steps = Iterator[tuple[_Time, int | None, bool]]


def _iterate(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """Further iterations up to each point."""
    points = budget.points()
    seconds, cpu, done = 0.0, 0.0, 0
    for point in points:
        before = done
        while True:
            rate = done / seconds if seconds else 1.0
            if budget.seconds is not None:
                # The first iteration tells the rate.
                left = (point - seconds) * rate if seconds else 1.0
                over = seconds >= point
            else:
                left, over = point - done, done >= point
            if over:
                break
            chunk = min(left, rate * _CHUNK_SECONDS, 4.0 * max(done, 1))
            count = max(1, min(int(chunk), _MOST_ITERATIONS))
            spent = _clocked(adapter, count)
            seconds += spent.seconds
            cpu += spent.cpu_seconds
            done += count
        last = point == points[-1]
        if done > before or last:
            yield _Time(seconds, cpu), done, last


def _restart(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """A run from the beginning for each point."""
    if budget.iterations is not None:
        for point in budget.points():
            count = max(entry.least, int(point))
            last = point == budget.iterations
            if last or count == int(point):
                yield _clocked(adapter, count), count, last
        return
    assert budget.seconds is not None
    count = entry.least
    while True:
        spent = _clocked(adapter, count)
        # As many as fit, by what this run took; longer runs are quicker per iteration.
        fit = int(_AIM * budget.seconds / max(spent.seconds, 1e-9) * count)
        following = min(4 * count, fit, _MOST_ITERATIONS)
        last = following < 1.3 * count
        yield spent, count, last
        if last:
            return
        count = following


def _once(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    spent = _clocked(adapter, 1)
    yield spent, adapter.iterations, True


def _clocked(adapter: SolverAdapter, iterations: int) -> _Time:
    """Processor time is of the same stretch, with what was compiled in it."""
    cpu, started = time.process_time(), time.perf_counter()
    own = adapter.run(iterations)
    seconds = time.perf_counter() - started if own is None else own
    return _Time(seconds, time.process_time() - cpu)
