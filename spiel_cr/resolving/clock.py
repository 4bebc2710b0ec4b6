"""Time limits of re-solving players: deadlines of solves, their costs, statistics."""

import contextlib
import dataclasses
import gc
import time
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from spiel_cr.common.checks import check_iterations, check_number
from spiel_cr.solvers.cfr.solver import Solver

# Share of a move's time that is kept in reserve, because times vary.
_RESERVE = 0.15
# Share of an earlier delay that the next move still allows for; and the largest share
# of a solve that is kept in reserve because other processes delay its iterations.
_KEPT, _MOST_LOST = 0.95, 0.6
# Maximum number of measurements that `Cost` keeps.
_REMEMBERED = 24
# Quantile of the measurements that an estimate covers.
_CAUTION = 0.8
# Factor of an estimate each time that it exceeds the time left. Estimates from periods
# of high background load are therefore tried again, and a slow machine misses a
# deadline only once in hundreds of moves.
_FADE = 0.998


@dataclasses.dataclass
class Statistics:
    """Statistics of a player since its construction.

    Attributes:
      moves: Number of decisions.
      solves: Number of solves of subgames, or of targets of a sampling solver.
      iterations: Number of iterations of all solves.
      deadline_misses: Number of moves that took longer than `move_ms`.
      max_ms: Time of the longest move in milliseconds.
      compilations: Number of JAX functions compiled since the warm-up.
    """

    moves: int = 0
    solves: int = 0
    iterations: int = 0
    deadline_misses: int = 0
    max_ms: float = 0.0
    compilations: int = 0


def check_budget(
    player: str,
    name: str,
    count: int | None,
    move_ms: float | None,
    init_ms: float | None,
) -> None:
    """Raise ValueError if a player has no budget, or a time is out of range.

    Args:
      player: Kind of the player, for the error message.
      name: Name of the count, for the error message.
      count: Number of iterations, or of the player's equivalent; None: no limit.
      move_ms: Time limit per move in milliseconds; None: no limit.
      init_ms: Time limit before the first move in milliseconds; None: no limit.

    Raises:
      ValueError: If a number is out of range, or count and time limit are both missing.
    """
    if count is not None:
        check_iterations(count, name=name)
    for name_of_time, milliseconds in (("move_ms", move_ms), ("init_ms", init_ms)):
        if milliseconds is not None:
            remedy = "leave it out for no limit"
            check_number(milliseconds, name_of_time, "(0, inf)", remedy=remedy)
    if count is None and move_ms is None:
        raise ValueError(
            f"{name}=None: a {player} player needs a budget; set {name}, move_ms, or "
            f"both"
        )


@runtime_checkable
class KeepsStatistics(Protocol):
    """Bot that records statistics."""

    @property
    def statistics(self) -> Statistics: ...


class Clock:
    """Budget of a player: milliseconds per move, iterations per solve, or both.

    Attributes:
      statistics: Statistics so far.
      stretch: Factor of the time of a move, 1 except during the warm-up.
      after: Time in seconds that a solve needs after its last iteration.
    """

    def __init__(self, move_ms: float | None, iterations: int | None) -> None:
        self.statistics = Statistics()
        self.stretch = 1.0
        self._move_ms = move_ms
        self._iterations = iterations
        self._move_started = 0.0
        self.after = 0.0
        # Delay in seconds with which iterating ends, because of other processes.
        self._lost = 0.0
        # Time that an answer needs after its last solve, and the end of that solve.
        self._tail = 0.0
        self._solved: float | None = None

    @contextlib.contextmanager
    def move(self) -> Iterator[None]:
        """Measure a move; the block contains everything that the answer needs.

        With a time limit, Python's cyclic garbage collection is postponed until the
        end: with the many objects that JAX creates it takes a tenth of a second.
        """
        self._move_started, self._solved = time.perf_counter(), None
        waits = contextlib.nullcontext() if self._move_ms is None else _garbage_waits()
        with waits:
            yield
        now = time.perf_counter()
        elapsed = 1000 * (now - self._move_started)
        tail = 0.0 if self._solved is None else now - self._solved
        self._tail = max(tail, _KEPT * self._tail)
        self.statistics.moves += 1
        self.statistics.max_ms = max(self.statistics.max_ms, elapsed)
        if self._move_ms is not None and elapsed > self._move_ms:
            self.statistics.deadline_misses += 1

    def deadline(self, solves: int = 1) -> float | None:
        """Return the deadline of the next solve of this move; None: no limit.

        Args:
          solves: Number of solves that this move still needs. They share the
            remaining time equally.
        """
        if self._move_ms is None:
            return None
        now = time.perf_counter()
        move_seconds = self.stretch * self._move_ms / 1000
        end = self._move_started + move_seconds * (1 - _RESERVE) - self._tail
        return now + (end - now) / solves

    def init_deadline(self, init_ms: float | None) -> float | None:
        """Return the deadline of the solve before the first move; None: no limit.

        Args:
          init_ms: Time limit in milliseconds; None: as long as the iterations take, or
            ten times the time of a move if there is no limit on iterations.
        """
        if init_ms is None and self._iterations is None and self._move_ms is not None:
            init_ms = 10 * self._move_ms
        return None if init_ms is None else time.perf_counter() + init_ms / 1000

    @contextlib.contextmanager
    def solve(
        self, solver: Solver, deadline: float | None, most: int | None = None
    ) -> Iterator[None]:
        """Run a solver until its deadline, then the rest of the solve in the block.

        If other processes use the processor, iterating may end later than planned. The
        next solves then stop earlier.

        Args:
          solver: Solver that iterates.
          deadline: Deadline of iterations and block, by `time.perf_counter`; None: no
            limit.
          most: Maximum number of iterations; None: the player's.
        """
        before = solver.iterations
        if most is None:
            most = self._iterations or 2**31 - 1
        if deadline is None:
            solver.run(most)
        else:
            end, now = deadline - self.after, time.perf_counter()
            lost = min(self._lost, _MOST_LOST * max(0.0, end - now))
            solver.run_until(end - lost, most=most)
            over = time.perf_counter() - max(now, end - lost)
            self._lost = max(over, _KEPT * self._lost)
        iterated = time.perf_counter()
        yield
        self._solved = time.perf_counter()
        self.after = max(self._solved - iterated, _KEPT * self.after)
        self.statistics.solves += 1
        self.statistics.iterations += solver.iterations - before

    def restart_statistics(self) -> None:
        """Reset the statistics after a warm-up; measured costs are kept."""
        self.statistics = Statistics()


@contextlib.contextmanager
def _garbage_waits() -> Iterator[None]:
    """Postpone cyclic garbage collection; reference counting stays on."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Collecting the youngest generation takes a millisecond. Otherwise the next new
        # object would start a collection, sometimes of all objects, before the answer
        # reaches the opponent.
        gc.collect(0)
        gc.enable()


class Cost:
    """Estimate of the time in seconds for work on n histories: a + b n.

    The numbers a and b are fitted to measurements.
    """

    def __init__(self) -> None:
        """Start without measurements."""
        # The first measurement is kept, because it is of a large part.
        self._known: list[tuple[int, float]] = []
        self._line = np.zeros(2)
        self._faded = 1.0

    def add(self, histories: int, seconds: float) -> None:
        """Add a measurement."""
        self._known.append((histories, seconds))
        del self._known[1:-_REMEMBERED]
        self._line, self._faded = self._fitted(), 1.0

    def fade(self) -> None:
        """Reduce the estimate, because there was not enough time to measure again."""
        self._faded *= _FADE

    @property
    def line(self) -> tuple[float, float]:
        """The numbers a and b, in seconds; zeros without measurements."""
        a, b = self._faded * self._line
        return float(a), float(b)

    def _fitted(self) -> np.ndarray:
        n, seconds = np.array(self._known).T
        slope = seconds.sum() / n.sum()
        spread = ((n - n.mean()) ** 2).sum()
        if spread > 0:
            fitted = ((n - n.mean()) * (seconds - seconds.mean())).sum() / spread
            # With few points, the fitted slope might be negative.
            slope = np.clip(fitted, slope / 4, slope)
        rest = seconds - slope * n
        return np.array([max(0.0, np.quantile(rest, _CAUTION)), slope])
