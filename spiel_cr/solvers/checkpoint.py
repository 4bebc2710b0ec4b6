"""Checkpoints: files with a solver's state, from which an interrupted run resumes."""

import contextlib
import os
import pathlib
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

from spiel_cr.common import atomic, interrupts, json_records, storage
from spiel_cr.common.errors import CorruptFileError, UnsavedWarning
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers.iterative_solver import IterativeSolver, Snapshot


class Keeper:
    """Reader and periodic writer of a solver's checkpoint.

    The file holds the complete state, so a resumed run is bitwise identical to one that
    was never interrupted.

    Attributes:
      curve: Points of the convergence curve so far, which the file holds, too. The
        caller appends to this list.
      completed: Number of iterations completed in a run, as far as they were reported.
    """

    def __init__(
        self,
        path: atomic.Path,
        identity: Mapping[str, Any],
        solver: IterativeSolver,
        every: float,
    ) -> None:
        """Store the settings; nothing is read or written yet.

        Args:
          path: Path of the checkpoint.
          identity: Properties in which the run and the file must agree, as JSON values.
          solver: Solver of the run.
          every: Time in seconds between two writes.
        """
        self._path = pathlib.Path(path)
        self._solver = solver
        self._every = every
        self._written = time.monotonic()
        self._identity = dict(identity)
        # Number of iterations, and of points of the curve, in the file.
        self._saved = 0, 0
        # A second thread may write too; see `drive`.
        self._writing = threading.RLock()
        self.curve: list[CurvePoint] = []
        self.completed = 0

    def resume(self, most: int | None = None) -> bool:
        """Restore the solver's state; return False if the file does not exist.

        Args:
          most: Maximum number of iterations of the state; None: no maximum.

        Raises:
          CorruptFileError: If the file was modified since it was written.
          ValueError: If the file is of another game, algorithm or dtype, or has more
            iterations.
        """
        if not self._path.exists():
            return False
        try:
            arrays, metadata = storage.load(self._path)
        except CorruptFileError as error:
            raise CorruptFileError(f"checkpoint {error}") from error
        for name, run_value in self._identity.items():
            if metadata.get(name) != run_value:
                file_value = metadata.get(name)
                if name == "config" and isinstance(metadata.get("algorithm"), str):
                    name, file_value = "algorithm", metadata["algorithm"]
                    run_value = self._solver.name
                remedy = f"this run has {run_value!r}; use the same arguments or"
                if name == "extra":
                    remedy = (
                        f"this run has {run_value!r}; install the same extras of "
                        f"spiel_cr, run on the same kind of device, or use"
                    )
                if file_value == run_value:
                    remedy = "this version has other settings of that name; use"
                raise ValueError(
                    f"{os.fspath(self._path)} is a checkpoint with {name} "
                    f"{file_value!r}, and {remedy} another checkpoint path"
                )
        count, seconds, curve = self._progress(metadata)
        try:
            self._solver.restore(arrays, seconds=seconds)
        except ValueError as error:
            raise self._damaged(str(error)) from error
        if self._solver.iterations != count:
            raise self._damaged(
                f"iterations={count!r}, but {self._solver.iterations} in the state"
            )
        self.curve[:] = curve
        self._saved = count, len(curve)
        if most is not None and count > most:
            raise ValueError(
                f"the checkpoint {os.fspath(self._path)} has {count} iterations "
                f"already, more than iterations={most}; use at least as many, or "
                f"another path"
            )
        return True

    def _progress(
        self, metadata: Mapping[str, Any]
    ) -> tuple[int, float, list[CurvePoint]]:
        """Return the iterations, seconds and curve of a file.

        Args:
          metadata: Metadata of the file.

        Raises:
          CorruptFileError: If no run can have written them.
        """
        length = len(CurvePoint._fields) - (not self._identity.get("locks"))
        is_row = json_records.is_list(json_records.is_number, length)
        tests = {
            "iterations": json_records.is_count,
            "seconds": json_records.is_duration,
            "curve": json_records.is_list(
                lambda row: is_row(row) and json_records.is_count(row[0])
            ),
        }
        try:
            json_records.check_fields(metadata, tests)
        except ValueError as error:
            raise self._damaged(f"it {error}") from error
        curve = [CurvePoint(*row) for row in metadata["curve"]]
        return metadata["iterations"], metadata["seconds"], curve

    def _damaged(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            f"{os.fspath(self._path)} is a corrupt checkpoint ({problem}); delete "
            f"it to start from scratch"
        )

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Run the block, and write the last state at its end, also after an error."""
        self._solver.saves, self.completed = True, self._solver.iterations
        with interrupts.saving(self._save):
            try:
                yield
            finally:
                self._end()

    def _save(self) -> bool:
        """Write results that the file lacks; `interrupts.save_results` calls this."""
        if self.is_saved(self.completed):
            return True
        snapshot = self._solver.snapshot
        if self._solver.iterates and snapshot is None:
            return False
        # If this fails, a warning says so; waiting would not help.
        self.write_end(is_complete=snapshot is None, snapshot=snapshot)
        return True

    def _end(self) -> None:
        """Write the last state, or the one before an iteration that was abandoned."""
        solver = self._solver
        if solver.is_complete:
            # This may include iterations that were not reported.
            self.completed = solver.iterations
        elif solver.snapshot is None and self.is_saved(self.completed):
            return
        # A signal that comes while this is written would lose all of it.
        with interrupts.Steps() as steps, steps.step():
            self.write_end(is_complete=solver.is_complete, snapshot=solver.snapshot)

    def tick(self, count: int) -> None:
        """Write the state if enough time has passed; log a warning if that fails.

        Args:
          count: Number of iterations completed since the last call.
        """
        self.completed += count
        if time.monotonic() - self._written < self._every:
            return
        try:
            self.write()
        except OSError as error:
            logging.warning(
                "no checkpoint at iteration %d: %s", self._solver.iterations, error
            )
            self._written = time.monotonic()

    def is_saved(self, iterations: int) -> bool:
        """Return whether the file holds these iterations and the curve, if any."""
        return self._saved >= (iterations, len(self.curve))

    def write_end(
        self, *, is_complete: bool = True, snapshot: Snapshot | None = None
    ) -> None:
        """Write the last state; if that fails, warn with an `UnsavedWarning`.

        Args:
          is_complete: Whether the solver's state is between two iterations; False if
            an iteration was interrupted.
          snapshot: State before that iteration. Without a snapshot, the file keeps the
            state that was written last.
        """
        try:
            if is_complete:
                self.write()
            elif snapshot is not None:
                self.write(snapshot)
            else:
                logging.warning(
                    "iteration %d was interrupted, so it is not written to the "
                    "checkpoint, which keeps the state that was written last",
                    self._solver.iterations,
                )
        except OSError as error:
            warnings.warn(UnsavedWarning(error), stacklevel=2)

    def write(self, snapshot: Snapshot | None = None) -> None:
        """Write a state atomically.

        Args:
          snapshot: State to write; None: the solver's current state.

        Raises:
          OSError: If the file cannot be written; the old file stays as it was.
        """
        with self._writing:
            solver = self._solver
            if snapshot is None:
                snapshot = Snapshot(solver.arrays(), solver.iterations, solver.seconds)
            storage.save(
                self._path,
                snapshot.arrays,
                {
                    **self._identity,
                    "algorithm": solver.name,
                    "reason": solver.reason,
                    "iterations": snapshot.iterations,
                    "seconds": snapshot.seconds,
                    "curve": [list(point.as_json().values()) for point in self.curve],
                    "versions": storage.versions(),
                },
            )
            self._written = time.monotonic()
            self._saved = snapshot.iterations, len(self.curve)
