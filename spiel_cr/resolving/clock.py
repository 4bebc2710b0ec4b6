"""Play against the clock: when solves end, what they cost, and the record of it."""

import contextlib
import dataclasses
import gc
import time
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from spiel_cr.common.checks import check_iterations, check_number
from spiel_cr.solvers.cfr.solver import Solver

# Of a move's time, this share is never planned for: machines are not exact.
_RESERVE = 0.15
# Of time once lost, this much is kept free a move later; but not more than this share
# of a solve for what its iterations lose to other work of the machine.
_KEPT, _MOST_LOST = 0.95, 0.6
# Measurements that `Cost` remembers.
_REMEMBERED = 24
# A plan holds for such a share of what was measured before.
_CAUTION = 0.8
# What there was no time for is thought to cost so much of that the next time. So a
# machine that was busy is found idle again, and one that is slow is late once in
# hundreds of moves.
_FADE = 0.998


@dataclasses.dataclass
class Statistics:
    """What a player did since it was made.

    Attributes:
      moves: decisions asked for.
      solves: solves, of a subgame or of what a sampled solver aimed at.
      iterations: of all solves.
      late_moves: answers after more than `move_ms`.
      max_ms: the longest that an answer took.
      programs_compiled: JAX programs compiled since warming up.
    """

    moves: int = 0
    solves: int = 0
    iterations: int = 0
    late_moves: int = 0
    max_ms: float = 0.0
    programs_compiled: int = 0


def check_budget(
    player: str,
    name: str,
    count: int | None,
    move_ms: float | None,
    init_ms: float | None,
) -> None:
    """Refuses a budget that is none, and times that are out of range.

    Args:
      player: whose, for the error.
      name: of the count, for the error.
      count: of iterations, or of what the player has in their place; None: no limit.
      move_ms, init_ms: milliseconds per move and before the first one; None: no clock.

    Raises:
      ValueError: a number is out of range, or there is neither a count nor a clock.
    """
    if count is not None:
        check_iterations(count, name=name)
    for name_of_time, milliseconds in (("move_ms", move_ms), ("init_ms", init_ms)):
        if milliseconds is not None:
            remedy = "leave it out for no clock"
            check_number(milliseconds, name_of_time, "(0, inf)", remedy=remedy)
    if count is None and move_ms is None:
        raise ValueError(
            f"a {player} player needs a budget: give {name}, move_ms, or both"
        )


@runtime_checkable
class KeepsStatistics(Protocol):
    """A bot that records what it did."""

    @property
    def statistics(self) -> Statistics: ...


class Clock:
    """A player's time: milliseconds per move, iterations per solve, or both.

    Attributes:
      statistics: so far.
      stretch: a move takes so many times its time, 1 but for a player that warms up.
      after: seconds that a solve takes after iterating before it can answer.
    """

    def __init__(self, move_ms: float | None, iterations: int | None) -> None:
        self.statistics = Statistics()
        self.stretch = 1.0
        self._move_ms = move_ms
        self._iterations = iterations
        self._move_started = 0.0
        self.after = 0.0
        # How much later than asked iterating ends, beside other work.
        self._lost = 0.0
        # What an answer takes after its last solve, and when that ended.
        self._tail = 0.0
        self._solved: float | None = None

    @contextlib.contextmanager
    def move(self) -> Iterator[None]:
        """Around everything that an answer needs.

        Under a clock, Python's search for garbage waits until the answer is there: with
        the many objects that JAX makes it takes a tenth of a second.
        """
        self._move_started, self._solved = time.perf_counter(), None
        with _garbage_waits() if self._move_ms is not None else _NOTHING:
            yield
        now = time.perf_counter()
        elapsed = 1000 * (now - self._move_started)
        tail = 0.0 if self._solved is None else now - self._solved
        self._tail = max(tail, _KEPT * self._tail)
        self.statistics.moves += 1
        self.statistics.max_ms = max(self.statistics.max_ms, elapsed)
        if self._move_ms is not None and elapsed > self._move_ms:
            self.statistics.late_moves += 1

    def deadline(self, solves: int = 1) -> float | None:
        """When the next of N solves of this move must be done; None: no clock."""
        if self._move_ms is None:
            return None
        now = time.perf_counter()
        move_seconds = self.stretch * self._move_ms / 1000
        end = self._move_started + move_seconds * (1 - _RESERVE) - self._tail
        return now + (end - now) / solves

    def init_deadline(self, init_ms: float | None) -> float | None:
        """When the solve before the first move must be done; None: no clock.

        Args:
          init_ms: milliseconds for it; None: as long as the iterations take, or ten
            moves' time where only a move's time is given.
        """
        if init_ms is None and self._iterations is None and self._move_ms is not None:
            init_ms = 10 * self._move_ms
        return None if init_ms is None else time.perf_counter() + init_ms / 1000

    @contextlib.contextmanager
    def solve(
        self, solver: Solver, deadline: float | None, most: int | None = None
    ) -> Iterator[None]:
        """Iterates; the block under it is the rest of the solve.

        Beside other work a process gets a part of the time, in pieces. Where iterating
        ended too late for that, the next solves stop earlier.

        Args:
          solver: to run.
          deadline: by `time.perf_counter`, for iterating and the block; None: none.
          most: iterations at most; None: as many as the player has.
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
        """Forgets what was recorded while warming up, but not what solves take."""
        self.statistics = Statistics()


_NOTHING = contextlib.nullcontext()


@contextlib.contextmanager
def _garbage_waits() -> Iterator[None]:
    """No garbage is searched for meanwhile; reference counts free as ever."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # What was made meanwhile is looked through now, which takes a millisecond. Else
        # the next object made would set off a search, of all objects now and then, and
        # the answer is not with the opponent yet.
        gc.collect(0)
        gc.enable()


class Cost:
    """Seconds for work on n histories, a + b n, fitted to what was measured."""

    def __init__(self) -> None:
        """Nothing was measured."""
        # The first one stays: it is of a large part.
        self._known: list[tuple[int, float]] = []
        self._line = np.zeros(2)
        self._faded = 1.0

    def add(self, histories: int, seconds: float) -> None:
        """Takes a measurement in."""
        self._known.append((histories, seconds))
        del self._known[1:-_REMEMBERED]
        self._line, self._faded = self._fitted(), 1.0

    def fade(self) -> None:
        """Doubts what was measured, for which there was no time."""
        self._faded *= _FADE

    @property
    def line(self) -> tuple[float, float]:
        """a and b, in seconds; zeros as long as nothing is known."""
        a, b = self._faded * self._line
        return float(a), float(b)

    def _fitted(self) -> np.ndarray:
        n, seconds = np.array(self._known).T
        slope = seconds.sum() / n.sum()
        spread = ((n - n.mean()) ** 2).sum()
        if spread > 0:
            fitted = ((n - n.mean()) * (seconds - seconds.mean())).sum() / spread
            # No line through few points must promise that more costs less.
            slope = np.clip(fitted, slope / 4, slope)
        rest = seconds - slope * n
        return np.array([max(0.0, np.quantile(rest, _CAUTION)), slope])
