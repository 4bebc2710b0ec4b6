"""Long solves survive: the solver's state in a file, and the way back."""

import dataclasses
import os
import pathlib
import time

import jax
import numpy as np

from spiel_cr.cfr.abstraction import digest
from spiel_cr.cfr.solver import Solver
from spiel_cr.common import storage
from spiel_cr.common.checks import check_number
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies.result import CurvePoint


class Keeper:
    """Writes a solver's state from time to time and reads it back.

    The state is all there is: a resumed solve gives the same bits as one that was never
    interrupted.

    Attributes:
      curve: what was evaluated so far; kept in the file too. Append to it.
    """

    def __init__(
        self,
        path: storage.Path,
        tree: CompiledGame,
        solver: Solver,
        every: float,
        *,
        seed: int | None = None,
    ) -> None:
        """Prepares; nothing is read or written yet.

        Args:
          path: the checkpoint file.
          tree: the game.
          solver: whose state to keep.
          every: seconds between writes.
          seed: of the run, where it samples.

        Raises:
          ValueError: `every` is not positive.
        """
        check_number(every, "checkpoint_every", "(0, inf)")
        self._path = pathlib.Path(path)
        self._solver = solver
        self._every = every
        self._written = time.monotonic()
        config = dataclasses.asdict(solver.config)
        config.pop("name")
        self._identity = {
            "kind": "checkpoint",
            "game": str(tree.game),
            "fingerprint": fingerprint(tree),
            # JSON has no infinity.
            "config": repr(config),
            "dtype": solver.dtype.name,
            "seed": seed,
            "buckets": digest(solver.buckets),
        }
        self.curve: list[CurvePoint] = []

    def resume(self) -> bool:
        """Puts the file's state into the solver; False where there is no file.

        Raises:
          ValueError: the file is damaged, or of another game, algorithm or dtype.
        """
        if not self._path.exists():
            return False
        arrays, metadata = storage.load(self._path)
        for name, mine in self._identity.items():
            if metadata.get(name) != mine:
                raise ValueError(
                    f"{os.fspath(self._path)} is a checkpoint with {name} "
                    f"{metadata.get(name)!r}, and this run has {mine!r}; give another "
                    f"checkpoint path or the same arguments"
                )
        try:
            leaves = [arrays[f"leaf{i}"] for i in range(len(arrays))]
            curve = [CurvePoint(*point) for point in metadata["curve"]]
            self._solver.restore(leaves, seconds=float(metadata["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(self._path)} is a damaged checkpoint ({error!r}); delete "
                f"it to start anew"
            ) from error
        self.curve[:] = curve
        return True

    def tick(self) -> None:
        """Writes if it is time to."""
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Writes the solver's state now, atomically."""
        leaves = jax.tree.leaves(self._solver.state)
        storage.save(
            self._path,
            {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)},
            {
                **self._identity,
                "iterations": self._solver.iterations,
                "seconds": self._solver.seconds,
                "curve": [list(point) for point in self.curve],
                "versions": storage.versions(),
            },
        )
        self._written = time.monotonic()
