"""The one loop that drives every solver to its goal: clock, curve, checkpoints,
bars.
"""

import abc
import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from absl import logging
from tqdm import tqdm

from spiel_cr.common import atomic, interrupts
from spiel_cr.common.checks import COUNT, Wanted, check_number, check_settings
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers.cfr.solver import MOST_ITERATIONS
from spiel_cr.solvers.checkpoint import Keeper, Snapshot

# With `until` and no `eval_every`, NashConv is computed each time that the iterations
# have grown by this factor.
_EVALUATION_GROWTH = 1.2

# An interrupt waits for the end of an iteration that is expected to be shorter.
_LONG_SECONDS = 0.5
# Before a longer one the state is copied, unless it is larger or copying it takes a
# larger share of the iteration's time.
_MOST_COPIED_BYTES = 1 << 28
_COPY_SHARE, _COPY_RATE = 0.1, 1e9

AfterChunk: TypeAlias = Callable[[int], bool]


@dataclasses.dataclass(frozen=True)
class Goal:
    """When a run stops, and when NashConv is evaluated.

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
    """

    iterations: int | None = None
    seconds: float | None = None
    until: float | None = None
    eval_every: int | None = None

    def __post_init__(self) -> None:
        wanted: Wanted = {"iterations eval_every": COUNT, "seconds until": "(0, inf)"}
        check_settings(self, wanted, optional=True)

    @classmethod
    def of(cls, goal: "int | Goal | None") -> "Goal":
        """A goal, or a number of iterations; raises ValueError for anything else."""
        return goal if isinstance(goal, Goal) else cls(goal)

    def most(self, usual: int) -> int:
        """The iterations to stop at.

        Args:
          usual: where nothing says when to stop.
        """
        if self.iterations is not None:
            return self.iterations
        if self.seconds is None and self.until is None:
            return usual
        return MOST_ITERATIONS

    @property
    def evaluates(self) -> bool:
        """Whether NashConv is computed on the way."""
        return self.until is not None or self.eval_every is not None

    def next_evaluation(self, done: int, most: int) -> int:
        """The number of iterations at which to evaluate next.

        It depends on the count alone, so that a resumed run stops where any other does.

        Args:
          done: iterations so far.
          most: to stop at.
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
    """

    path: atomic.Path
    every: float = 60.0

    def __post_init__(self) -> None:
        check_number(self.every, "checkpoint_every", "(0, inf)")

    @classmethod
    def of(cls, checkpoint: "atomic.Path | Checkpoint | None") -> "Checkpoint | None":
        """A checkpoint, or the path of one."""
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            return checkpoint
        return cls(checkpoint)


class Run(abc.ABC):
    """A solver on its way, whatever it is made of: what those of all families share.

    Attributes:
      solver: that is driven.
      name: of the algorithm.
      whole: whether all iterations are whole, so that somebody may go on from here.
      in_one_step: whether nothing is seen of it on the way, so that it has no bar.
      saves: Whether the state is written to a checkpoint.
      snapshot: State before the current iteration, if it was copied.
      compile_seconds: spent on making and compiling programs, beside iterating.
      why: why this algorithm, where it was chosen; else empty.
      curve: what was evaluated before it was handed over.
    """

    compile_seconds: float = 0.0
    why: str = ""
    curve: tuple[CurvePoint, ...] = ()
    whole: bool = True
    in_one_step: bool = False
    saves: bool = False
    snapshot: Snapshot | None = None
    # Seconds that the last iteration took; before the first one, an upper bound.
    _pace: float = _LONG_SECONDS

    def __init__(self, solver: Any) -> None:
        self.solver = solver
        self.name: str = solver.config.name

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return self.solver.iterations

    @property
    def seconds(self) -> float:
        """Time spent iterating so far."""
        return self.solver.seconds

    @abc.abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """Iterates, one by one where nothing else is said.

        Args:
          count: how many more, at most.
          seconds: about how much time is left; None: no limit.
          after_chunk: called now and then, at least about every quarter of a second or
            iteration, with the number of iterations since; returns True to stop.

        Returns:
          Whether `after_chunk` stopped it.
        """
        with interrupts.Steps() as steps:
            for _ in range(count):
                saves, began = self.saves and self.whole, self.seconds
                self.snapshot = self._copied() if saves else None
                # Without a checkpoint, and with a copy of the state, an interrupt may
                # abandon the iteration.
                postpones = saves and self.snapshot is None
                with steps.step() if postpones else contextlib.nullcontext():
                    self.whole = False
                    self.solver.run(1)
                    self.whole = True
                self.snapshot, self._pace = None, self.seconds - began
                if after_chunk(1):
                    return True
        return False

    def _copied(self) -> Snapshot | None:
        """Copy the state before a long iteration, unless copying it costs too much."""
        if self._pace < _LONG_SECONDS:
            return None
        arrays = self.arrays()
        size = sum(array.nbytes for array in arrays.values())
        if size > min(_MOST_COPIED_BYTES, _COPY_RATE * _COPY_SHARE * self._pace):
            return None
        copies = {name: np.array(array) for name, array in arrays.items()}
        return Snapshot(copies, self.iterations, self.seconds)

    def shown(self) -> dict[str, Any]:
        """What people see of a run beside its iterations."""
        return {}

    def nash_conv(self) -> float:
        """Compute the exact NashConv of the average strategy in the whole game."""
        return self.solver.nash_conv()

    def nash_conv_with_locks(self) -> float | None:
        """Compute the exact NashConv in the game with locks; None without locks."""
        return None

    def evaluate(self) -> CurvePoint:
        """Compute the point of the convergence curve at the present iteration."""
        return CurvePoint(
            self.iterations,
            self.seconds,
            self.nash_conv(),
            self.nash_conv_with_locks(),
        )

    def going_on(self, curve: Sequence[CurvePoint]) -> None:  # noqa: B027
        """Is told, before it iterates further, what was evaluated so far.

        Args:
          curve: all of it, the latest last.
        """

    def finish(self, *, progress: bool) -> None:  # noqa: B027
        """Does what follows the last iteration, and says so; the state stays as it is.

        Args:
          progress: say it on stderr, too.
        """

    @abc.abstractmethod
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must have in common with the run."""

    @abc.abstractmethod
    def outcome(self) -> dict[str, Any]:
        """Fields of the result."""

    def close(self) -> None:  # noqa: B027
        """Closes what steps the game, if it is stepped."""


def settings_text(config: Any) -> str:
    """An algorithm's settings in one line, whatever its name."""
    settings = dataclasses.asdict(config)
    settings.pop("name")
    # What newer versions can do is left out where it is not used: files stay good.
    rule = settings.get("rule", {})
    for name, plain in (("prediction", 1.0), ("ramp", 0.0), ("custom", None)):
        if rule.get(name) == plain:
            rule.pop(name, None)
    # JSON has no infinity.
    return repr(settings)


class _Saving:
    """Results of a run that its checkpoint may lack.

    Attributes:
      completed: Number of iterations completed, as far as they were reported.
      iterates: Whether the run is iterating, so that its state may change.
    """

    def __init__(self, run: Run, keeper: Keeper | None) -> None:
        """Prepare; nothing is written.

        Args:
          run: The run, whose state the checkpoint has.
          keeper: Writer of its checkpoint; None: there is no checkpoint.
        """
        self._run, self._keeper = run, keeper
        run.saves = keeper is not None
        self.completed, self.iterates = run.iterations, False

    def save(self) -> bool:
        """Write what the checkpoint lacks, from any thread; see `interrupts.saving`."""
        if self._keeper is None or self._keeper.is_saved(self.completed):
            return True
        snapshot = self._run.snapshot
        if self.iterates and snapshot is None:
            return False
        # If this fails, a warning says so; waiting would not help.
        self._keeper.write_end(whole=snapshot is None, snapshot=snapshot)
        return True

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Run the block, and write the last state at its end, however it ends."""
        with interrupts.saving(self.save):
            try:
                yield
            finally:
                self._end()

    def _end(self) -> None:
        """Write the last state, or the one before an iteration that was abandoned."""
        run, keeper = self._run, self._keeper
        if keeper is None:
            return
        if run.whole:
            # This may include iterations that were not reported.
            self.completed = run.iterations
        elif run.snapshot is None and keeper.is_saved(self.completed):
            return
        # A signal that comes while this is written would lose all of it.
        with interrupts.Steps() as steps, steps.step():
            keeper.write_end(whole=run.whole, snapshot=run.snapshot)


def drive(
    run: Run, goal: Goal, keeper: Keeper | None, *, most: int, progress: bool
) -> tuple[CurvePoint, ...]:
    """Iterates to the goal; checkpoints on the way and at the end, however it comes.

    Args:
      run: what to drive.
      goal: when to stop and when to evaluate.
      keeper: of the run's checkpoint.
      most: iterations to stop at.
      progress: show a bar on stderr.

    Returns:
      What was evaluated on the way.
    """
    curve = list(run.curve) if keeper is None else keeper.curve
    total = None if most == MOST_ITERATIONS else most
    silent = run.in_one_step or not progress
    options: dict[str, Any] = {"desc": run.name, "disable": silent}
    options["initial"] = run.iterations
    saving = _Saving(run, keeper)
    with tqdm(total=total, **options) as bar, saving.block():

        def left() -> float | None:
            return None if goal.seconds is None else goal.seconds - run.seconds

        def late() -> bool:
            rest = left()
            return rest is not None and rest <= 0

        def after_chunk(count: int) -> bool:
            if shown := run.shown():
                bar.set_postfix(shown, refresh=False)
            bar.update(count)
            saving.completed += count
            if keeper is not None:
                keeper.tick()
            return late()

        def evaluate() -> bool:
            """Adds a point to the curve where one is due; whether it is the goal."""
            if not goal.evaluates:
                return False
            if not curve or curve[-1].iterations < run.iterations:
                curve.append(run.evaluate())
            last = curve[-1]
            name = "nash_conv"
            if last.nash_conv_with_locks is not None:
                name = "nash_conv_with_locks"
            shown = {name: f"{last.gap:.2e}"}
            bar.set_postfix(shown, refresh=sys.stderr.isatty())
            return goal.until is not None and last.gap <= goal.until

        stopped = late()
        # A resumed run may stand where an uninterrupted one evaluated, and stopped.
        done = run.iterations
        if done and goal.next_evaluation(done - 1, most) == done:
            stopped = evaluate() or stopped
        while run.iterations < most and not stopped:
            saving.iterates = True
            run.going_on(curve)
            following = goal.next_evaluation(run.iterations, most)
            more = following - run.iterations
            stopped = run.advance(more, left(), after_chunk) or late()
            saving.iterates = False
            stopped = evaluate() or stopped
        if run.iterations == MOST_ITERATIONS and not stopped:
            logging.warning(
                "%s stops at %d iterations, the most that are counted; draw more "
                "per iteration with a larger batch",
                run.name,
                MOST_ITERATIONS,
            )
    return tuple(curve)
