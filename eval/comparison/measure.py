"""Comparing: one cell, an algorithm on a game with a seed and a budget.

The clock runs while a adapter works, and stands still while it is made, while JAX
compiles, and while NashConv is computed on the way. Points of the curve are at 1, 2, 5,
10 ... iterations, or at these shares of the time.
"""

import datetime
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..common import conditions
from ..common.budget import Budget
from ..common.game_instance import GameInstance, MissingError, enter
from ..contestants import registry
from ..contestants.protocol import Entry, SolverAdapter
from ..judging.cpp_judge import ExactJudge

# In between the clock is looked at about so often, in seconds.
_CHUNK_SECONDS = 0.5
# A run from the beginning is only tried if it should take this share of the budget.
_AIM = 0.9
_MOST_ITERATIONS = 2**31 - 1


class RunKey(NamedTuple):
    """What tells cells of a comparison apart."""

    game: str
    algorithm: str
    seed: int


class Run(NamedTuple):
    """A cell to run: `RunKey`, `Budget`, and how many bytes the game may take."""

    game: str
    algorithm: str
    seed: int
    seconds: float | None
    iterations: int | None
    memory_limit: int | None = None

    @property
    def key(self) -> RunKey:
        return RunKey(self.game, self.algorithm, self.seed)

    @property
    def budget(self) -> Budget:
        return Budget(self.seconds, self.iterations)


class _Point(NamedTuple):
    seconds: float
    iterations: int | None
    nash_conv: float
    cpu_seconds: float


class _Time(NamedTuple):
    """What work took: on the clock, and of processors."""

    seconds: float
    cpu_seconds: float


# The last game only: games may be large.
_arenas: dict[str, tuple[GameInstance, ExactJudge]] = {}
# (game, limit): why it was refused. It would take long to find that out again.
_refused: dict[tuple[str, int | None], str] = {}


def measure_run(cell: Run) -> dict[str, Any]:
    """Runs a cell; returns its line of `results.jsonl`, whatever happens.

    A cell that fails has an `error`; one that cannot run here has `missing`, the
    reason. Both have no numbers.
    """
    started = time.perf_counter()
    record: dict[str, Any] = {
        **cell.key._asdict(),
        "seconds": None,
        "iterations": None,
        "nash_conv": None,
        "game_value": None,
        "error": None,
    }
    try:
        entry = registry.find(cell.algorithm)
        reason = registry.why_missing(entry)
        if reason is not None:
            raise MissingError(reason)
        record.update(_measure(entry, cell))
    except MissingError as reason:
        record["missing"] = str(reason)
    except Exception as error:
        # Whatever an algorithm does wrong, the others go on.
        first = (str(error).strip().splitlines() or ["no message"])[0]
        record["error"] = f"{type(error).__name__}: {first}"
    record["machine"] = conditions.machine()
    record["source"] = conditions.source()
    record["optional_versions"] = conditions.optional_versions()
    now = datetime.datetime.now(datetime.UTC)
    record["finished"] = now.isoformat(timespec="seconds")
    record["wall_seconds"] = round(time.perf_counter() - started, 4)
    return record


def _measure(entry: Entry, cell: Run) -> dict[str, Any]:
    instance, judge = _enter(cell.game, cell.memory_limit)
    started = time.perf_counter()
    adapter = entry.make(instance, cell.seed)
    made = time.perf_counter() - started
    compiled = adapter.compile_seconds
    points, worked = _follow(entry, adapter, cell.budget, judge)
    verdict = judge.final(adapter.strategy())
    curve = [[p.seconds, p.iterations, p.nash_conv] for p in points]
    # The last point is what is judged with all care.
    curve.append([points[-1].seconds, points[-1].iterations, verdict.nash_conv])
    del curve[-2]
    return {
        "seconds": worked,
        "iterations": points[-1].iterations,
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        "judge": verdict.by,
        "judge_reason": verdict.reason,
        "curve": curve,
        "curve_judge": judge.way_by,
        "setup_seconds": made
        - compiled
        + (instance.walk_seconds if entry.ours else 0.0),
        "compile_seconds": adapter.compile_seconds,
        "cpu_seconds": points[-1].cpu_seconds,
        "note": adapter.note,
    }


def _enter(game: str, limit: int | None) -> tuple[GameInstance, ExactJudge]:
    if (game, limit) in _refused:
        raise MissingError(_refused[game, limit])
    if game not in _arenas:
        _arenas.clear()
        try:
            instance = enter(game, memory_limit=limit)
        except MissingError as error:
            _refused[game, limit] = str(error)
            raise
        _arenas[game] = instance, ExactJudge(instance)
    return _arenas[game]


def _follow(
    entry: Entry, adapter: SolverAdapter, budget: Budget, judge: ExactJudge
) -> tuple[list[_Point], float]:
    """Lets a adapter work; the curve, and the seconds of its last strategy."""
    steps = {"iterates": _iterate, "restarts": _restart, "once": _once}[entry.way]
    points: list[_Point] = []
    for spent, iterations, last in steps(entry, adapter, budget):
        nash_conv = float("nan")
        if not last:
            nash_conv = judge.on_the_way(adapter.strategy())
        points.append(_Point(spent.seconds, iterations, nash_conv, spent.cpu_seconds))
    return points, points[-1].seconds


_Steps = Iterator[tuple[_Time, int | None, bool]]


def _iterate(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """Yields (time, iterations, whether it was the last) at each look."""
    looks = budget.looks()
    seconds, cpu, done = 0.0, 0.0, 0
    for look in looks:
        before = done
        while True:
            if budget.seconds is not None:
                room = (look - seconds) * done / seconds if seconds else 1.0
                over = seconds >= look
            else:
                room, over = look - done, done >= look
            if over:
                break
            rate = done / seconds if seconds else 1.0
            chunk = min(room, rate * _CHUNK_SECONDS, 4.0 * max(done, 1))
            count = max(1, min(int(chunk), _MOST_ITERATIONS))
            spent = _clocked(adapter, count)
            seconds += spent.seconds
            cpu += spent.cpu_seconds
            done += count
        last = look == looks[-1]
        if done > before or last:
            yield _Time(seconds, cpu), done, last


def _restart(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    """The same; every point is a run of its own."""
    if budget.iterations is not None:
        for look in budget.looks():
            count = max(entry.least, int(look))
            if look == budget.iterations or count == int(look):
                spent = _clocked(adapter, count)
                yield spent, count, look == budget.iterations
        return
    assert budget.seconds is not None
    count, limit = entry.least, budget.seconds
    while True:
        spent = _clocked(adapter, count)
        # As many as fit, by what this run took; longer runs are quicker an iteration.
        fit = int(_AIM * limit / max(spent.seconds, 1e-9) * count)
        following = min(4 * count, fit, _MOST_ITERATIONS)
        last = following < 1.3 * count
        yield spent, count, last
        if last:
            return
        count = following


def _once(entry: Entry, adapter: SolverAdapter, budget: Budget) -> _Steps:
    spent = _clocked(adapter, 1)
    # What one iteration is, it says itself, where that means anything.
    yield spent, getattr(adapter, "iterations", None), True


def _clocked(adapter: SolverAdapter, iterations: int) -> _Time:
    """Processor time is of the same stretch, with what was compiled in it."""
    cpu, started = time.process_time(), time.perf_counter()
    own = adapter.run(iterations)
    seconds = time.perf_counter() - started if own is None else own
    return _Time(seconds, time.process_time() - cpu)
