"""The base class of all solvers that iterate to a goal."""

import abc
import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import interrupts
from spiel_cr.common.checks import check_iterations
from spiel_cr.policies.result import CurvePoint

# The largest int32, in which solvers count iterations.
MOST_ITERATIONS = 2**31 - 1
# Duration in seconds up to which an interrupt waits for the end of an iteration.
_LONG_SECONDS = 0.5
# The state is copied before each longer iteration, unless the state is larger than this
# number of bytes, or copying it (at the given number of bytes per second) would take
# more than this share of the iteration's time.
_MOST_COPIED_BYTES = 1 << 28
_COPY_SHARE, _COPY_RATE = 0.1, 1e9
# Numbers of a checkpoint that are checked together.
_CHECKED = 1 << 16

AfterChunk: TypeAlias = Callable[[int], bool | None]


class Snapshot(NamedTuple):
    """A copy of a solver's state between two iterations.

    Attributes:
      arrays: Everything that the solver needs to continue.
      iterations: Number of iterations completed.
      seconds: Time spent iterating.
    """

    arrays: dict[str, np.ndarray]
    iterations: int
    seconds: float


def settings_text(config: Any) -> str:
    """Return the settings of an algorithm without its name, for checkpoints."""
    settings = dataclasses.asdict(config)
    settings.pop("name")
    # Newer settings are left out if unused, so that older checkpoints stay valid.
    rule = settings.get("rule")
    unused = {"prediction": 1.0, "ramp": 0.0, "custom": None}
    unused |= dict.fromkeys(("weights", "sampling", "learning"))
    for parts in (settings, rule if isinstance(rule, dict) else {}):
        for name, plain in unused.items():
            if parts.get(name, plain) == plain:
                parts.pop(name, None)
    # JSON has no infinity.
    return repr(settings)


def check_arrays(
    arrays: Mapping[str, np.ndarray],
    like: Mapping[str, np.ndarray],
    *,
    resized: Collection[str] = (),
) -> None:
    """Raise ValueError if arrays have other names, types or shapes than expected.

    Args:
      arrays: Arrays of a checkpoint.
      like: Arrays of a solver of the same game and settings.
      resized: Names of arrays whose shapes may differ, but not their dimensions.
    """
    for name, expected in like.items():
        array = arrays.get(name, np.zeros((0, 0, 0)))
        same = array.dtype == expected.dtype and array.ndim == expected.ndim
        if not same or name not in resized and array.shape != expected.shape:
            raise ValueError(f"its array {name} does not fit this run")
    if len(arrays) != len(like):
        raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(like)}")


def check_numbers(arrays: Mapping[str, np.ndarray], least: Mapping[str, float]) -> None:
    """Raise ValueError if arrays contain values that no run can produce.

    Args:
      arrays: Arrays of a checkpoint.
      least: Smallest valid number by name of the array; all must be finite.
    """
    for name, low in least.items():
        numbers = np.atleast_1d(arrays[name])
        # In parts, because arrays may be large.
        for start in range(0, len(numbers), _CHECKED):
            part = numbers[start : start + _CHECKED]
            # Written so that NaN fails.
            if not (np.isfinite(part) & (part >= low)).all():
                raise ValueError(f"its array {name} contains invalid values")


class IterativeSolver(abc.ABC):
    """A solver that `drive` iterates to a goal.

    Attributes:
      config: The algorithm, a frozen dataclass with a `name`.
      iterations: Number of iterations completed.
      seconds: Time spent iterating.
      compile_seconds: Time spent tracing and compiling JAX functions, which `seconds`
        does not include.
      is_complete: Whether the state is between two iterations, so that a run can
        resume from it.
      in_one_step: Whether the solver works in a single step, without a progress bar.
      iterates: Whether `drive` is iterating, so that the state may change.
      saves: Whether the state is written to a checkpoint.
      snapshot: State before the current iteration, if it was copied.
      reason: Why this algorithm was chosen; empty if the caller named it.
      curve: Points of the convergence curve from before `drive` was called.
      switch: Function that `drive` calls with the curve before it iterates further. It
        returns the solver to continue with, or None to keep this one.
    """

    config: Any
    iterations: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    reason: str = ""
    curve: tuple[CurvePoint, ...] = ()
    is_complete: bool = True
    in_one_step: bool = False
    iterates: bool = False
    saves: bool = False
    snapshot: Snapshot | None = None
    switch: "Callable[[Sequence[CurvePoint]], IterativeSolver | None] | None" = None
    # Seconds that the last iteration took; before the first one, an upper bound.
    _last_seconds: float = _LONG_SECONDS

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return str(self.config.name)

    @abc.abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs; valid until the next iteration."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Restore the state that `arrays` returned; continue bitwise identically.

        Args:
          arrays: Arrays by name; the solver may remove some of them.
          seconds: Time spent iterating before.

        Raises:
          ValueError: If the arrays are not those of such a solver.
        """

    def run(
        self,
        iterations: int,
        *,
        seconds: float | None = None,
        after_chunk: AfterChunk | None = None,
    ) -> bool:
        """Iterate, by default one iteration at a time.

        Args:
          iterations: Number of further iterations, at most.
          seconds: Approximate time that is left; None: no limit.
          after_chunk: Function that is called at least about every quarter of a second
            or iteration with the number of iterations since its last call. It returns
            True to stop.

        Returns:
          Whether `after_chunk` stopped the solver.

        Raises:
          ValueError: If the number of iterations is not a positive integer.
        """
        with interrupts.Steps() as steps:
            for _ in range(check_iterations(iterations)):
                saves, before = self.saves and self.is_complete, self.seconds
                self.snapshot = self._copied() if saves else None
                # Without a checkpoint, and with a copy of the state, an interrupt may
                # abandon the iteration.
                postpones = saves and self.snapshot is None
                with steps.step() if postpones else contextlib.nullcontext():
                    self.is_complete, start = False, time.perf_counter()
                    self._iterate()
                    self.seconds += time.perf_counter() - start
                    self.is_complete = True
                self.snapshot, self._last_seconds = None, self.seconds - before
                if after_chunk is not None and after_chunk(1):
                    return True
        return False

    def _iterate(self) -> None:
        """Do one iteration, if the solver does not override `run`."""
        raise NotImplementedError

    def _copied(self) -> Snapshot | None:
        """Copy the state before a long iteration, unless copying it costs too much."""
        if self._last_seconds < _LONG_SECONDS:
            return None
        arrays = self.arrays()
        size = sum(array.nbytes for array in arrays.values())
        limit = min(_MOST_COPIED_BYTES, _COPY_RATE * _COPY_SHARE * self._last_seconds)
        if size > limit:
            return None
        copies = {name: np.array(array) for name, array in arrays.items()}
        return Snapshot(copies, self.iterations, self.seconds)

    def progress_counts(self) -> dict[str, Any]:
        """Return the values that a progress bar shows in addition to the iterations."""
        return {}

    @property
    def schedule_share(self) -> float:
        """Completed share of a schedule of learning rates; 1 if there is none."""
        return 1.0

    def nash_conv(self) -> float:
        """Compute the exact NashConv of the average strategy in the whole game.

        Raises:
          ValueError: If the solver has no game tree.
        """
        raise ValueError(
            f"{self.name}: NashConv needs the game tree; use spiel_cr.exploit for a "
            f"bound"
        )

    def nash_conv_with_locks(self) -> float:
        """Compute the exact NashConv of the average strategy in the game with locks."""
        return self.nash_conv()

    @property
    def has_locks(self) -> bool:
        """Whether any infoset is locked."""
        return False

    def evaluate(self) -> CurvePoint:
        """Compute the point of the convergence curve at the present iteration."""
        nash_conv = self.nash_conv()
        with_locks = self.nash_conv_with_locks() if self.has_locks else None
        return CurvePoint(self.iterations, self.seconds, nash_conv, with_locks)

    def identity(self) -> dict[str, Any]:
        """Return properties in which checkpoint and run must agree, as JSON."""
        return {}

    def outcome(self) -> dict[str, Any]:
        """Return the fields of `Result` that the solver determines."""
        return {}

    def close(self) -> None:  # noqa: B027
        """Close the simulator of the game, if the solver has one."""
