"""Main loop of all solvers: time limit, curve, checkpoints and progress bars."""

import contextlib
import dataclasses
import math
import sys
import time
from typing import Any

from absl import logging

from spiel_cr.common import atomic
from spiel_cr.common.checks import COUNT, Wanted, check_number, check_settings
from spiel_cr.common.messages import progress_bar
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.iterative_solver import MOST_ITERATIONS, IterativeSolver

# With `until` and no `eval_every`, NashConv is computed each time that the iterations
# have grown by this factor.
_EVALUATION_GROWTH = 1.2


@dataclasses.dataclass(frozen=True)
class Goal:
    """Criteria for stopping a run and for evaluating NashConv.

    Attributes:
      iterations: Maximum number of iterations. Each one updates both players once; a
        sampling algorithm draws a batch of trajectories per player. If None, the
        algorithm's default, or no limit with `seconds` or `until`.
      seconds: Stop after this many seconds of iterating, previous runs of the same
        checkpoint included.
      until: Stop at this NashConv of the average strategy, in the game's units. With
        node locks, NashConv with locks is compared (`Result.nash_conv_with_locks`).
      eval_every: Number of iterations between two evaluations of NashConv, which are
        the points of the convergence curve.
      wall_clock: Stop this many seconds after the start of the call, or of the command,
        which then includes the evaluation at the end. Building and compiling count, but
        are not interrupted, and at least one iteration is done.

    Example:
      >>> import spiel_cr
      >>> goal = spiel_cr.Goal(iterations=10_000, until=1e-3, eval_every=100)
      >>> spiel_cr.solve("kuhn_poker", "cfr+", goal).stop_reason
      'nash_conv'
    """

    iterations: int | None = None
    seconds: float | None = None
    until: float | None = None
    eval_every: int | None = None
    wall_clock: float | None = None

    def __post_init__(self) -> None:
        wanted: Wanted = {
            "iterations eval_every": COUNT,
            "seconds until wall_clock": "(0, inf)",
        }
        check_settings(self, wanted, optional=True)

    @classmethod
    def of(cls, goal: "int | Goal | None") -> "Goal":
        """Return a goal from a goal or a number of iterations."""
        return goal if isinstance(goal, Goal) else cls(goal)

    def most(self, usual: int) -> int:
        """Return the number of iterations to stop at.

        Args:
          usual: Number of iterations if the goal has no limit.
        """
        if self.iterations is not None:
            return self.iterations
        if (self.seconds, self.until, self.wall_clock) == (None, None, None):
            return usual
        return MOST_ITERATIONS

    @property
    def evaluates(self) -> bool:
        """Whether NashConv is computed during the run."""
        return self.until is not None or self.eval_every is not None

    def next_evaluation(self, done: int, most: int) -> int:
        """Return the number of iterations at which to evaluate next.

        It depends on the count alone, so that a resumed run stops where any other does.

        Args:
          done: Number of iterations completed.
          most: Number of iterations to stop at.
        """
        count = most
        if self.eval_every is not None:
            count = (done // self.eval_every + 1) * self.eval_every
        elif self.until is not None:
            count = 10
            while count <= done:
                count = max(count + 10, int(count * _EVALUATION_GROWTH))
        return min(most, count)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A file from which an interrupted run resumes, and to which it writes its state.

    The last state is also written if the run is interrupted from the keyboard, which
    ends the run between two iterations. If a write fails, a warning names the file and
    the run continues; a failure of the last write is an `UnsavedWarning`.

    Attributes:
      path: Checkpoint file: a run resumes from it if it exists, and writes its state to
        it.
      every: Time in seconds between two writes of the checkpoint.

    Example:
      >>> import spiel_cr
      >>> checkpoint = spiel_cr.Checkpoint("kuhn.npz", every=60)
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", 100, checkpoint=checkpoint)
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", 300, checkpoint=checkpoint)
      >>> result.iterations
      300
    """

    path: atomic.Path
    every: float = 60.0

    def __post_init__(self) -> None:
        check_number(self.every, "checkpoint_every", "(0, inf)")

    @classmethod
    def of(cls, checkpoint: "atomic.Path | Checkpoint | None") -> "Checkpoint | None":
        """Return a checkpoint from a checkpoint or its path."""
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            return checkpoint
        return cls(checkpoint)


def drive(
    solver: IterativeSolver,
    goal: Goal,
    keeper: Keeper | None,
    *,
    most: int,
    progress: bool | None,
    deadline: float = math.inf,
) -> tuple[IterativeSolver, tuple[CurvePoint, ...], str]:
    """Iterate to a goal; write checkpoints on the way and at the end.

    The last state is written also if an exception or an interrupt ends the run.

    Args:
      solver: The solver, at its start or as restored from a checkpoint.
      goal: Criteria for stopping and evaluating.
      keeper: Writer of the checkpoint; None: no checkpoint.
      most: Number of iterations to stop at.
      progress: Whether to show a progress bar on stderr.
      deadline: Time by `time.perf_counter` at which to stop, after one iteration.

    Returns:
      The solver of the last iteration; the points of the convergence curve; and the
      reason for stopping, see `Result.stop_reason`.
    """
    curve = list(solver.curve) if keeper is None else keeper.curve
    start = solver.iterations

    def seconds_left() -> float:
        budget = math.inf if goal.seconds is None else goal.seconds
        return min(budget - solver.seconds, deadline - time.perf_counter())

    def is_over() -> bool:
        if goal.seconds is not None and solver.seconds >= goal.seconds:
            return True
        return solver.iterations > start and seconds_left() <= 0

    options: dict[str, Any] = {
        "total": None if most == MOST_ITERATIONS else most,
        "desc": solver.name,
        "progress": progress,
        "disable": solver.in_one_step or progress is False,
        "initial": solver.iterations,
    }
    block = contextlib.nullcontext() if keeper is None else keeper.saving()
    with progress_bar(**options) as bar, block:

        def after_chunk(count: int) -> bool:
            counts = solver.progress_counts()
            if goal.seconds is not None and not goal.evaluates:
                counts["time"] = f"{solver.seconds / goal.seconds:.0%}"
            if solver.schedule_share < 1:
                counts["schedule"] = f"{solver.schedule_share:.0%}"
            if counts:
                bar.set_postfix(counts, refresh=False)
            bar.update(count)
            if keeper is not None:
                keeper.tick(count)
            return is_over()

        def is_reached() -> bool:
            if not curve or curve[-1].iterations < solver.iterations:
                curve.append(solver.evaluate())
            name, gap = curve[-1].gap_name, curve[-1].gap
            bar.set_postfix({name: f"{gap:.2e}"}, refresh=sys.stderr.isatty())
            return goal.until is not None and gap <= goal.until

        def stop_reason(*, evaluates: bool, stopped: bool = False) -> str:
            reached = goal.evaluates and evaluates and is_reached()
            if solver.in_one_step and (stopped or solver.iterations):
                return "exact"
            if reached:
                return "nash_conv"
            if is_over():
                return "seconds"
            return "iterations" if solver.iterations >= most else ""

        # A resumed run may start at an iteration at which an uninterrupted run
        # evaluates and stops.
        done = solver.iterations
        due = done > 0 and goal.next_evaluation(done - 1, most) == done
        reason = stop_reason(evaluates=due)
        while not reason:
            solver.iterates = True
            if solver.switch is not None:
                solver = solver.switch(curve) or solver
            more = goal.next_evaluation(solver.iterations, most) - solver.iterations
            seconds = None if math.isinf(left := seconds_left()) else left
            stopped = solver.run(more, seconds=seconds, after_chunk=after_chunk)
            solver.iterates = False
            reason = stop_reason(evaluates=True, stopped=stopped)
    if solver.iterations == MOST_ITERATIONS and reason == "iterations":
        logging.warning(
            "%s stops at %d iterations, the maximum; use a larger batch to sample "
            "more per iteration",
            solver.name,
            MOST_ITERATIONS,
        )
    return solver, tuple(curve), reason
