"""Exact judging of games that are too large to be laid out: abrupt hidden boards.

Both players' leaf values against a policy are added up piece by piece, a piece for each
pair of first attempts. That takes minutes, goes on from a checkpoint, and keeps nothing
but two numbers for each sequence.
"""

import functools
import hashlib
import time
from typing import Any

import numpy as np
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.evaluation.result import Seat
from spiel_cr.games.phantom.abrupt import AbruptGame, Infosets, Leaves
from spiel_cr.games.phantom.phantom_queries import path_batch
from spiel_cr.policies.queries import query_batch
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.run import Checkpoint, Goal, drive

# Infosets that are asked about at once.
_CHUNK = 1 << 16


class Streamed:
    """A policy of an abrupt game, and what it is worth once somebody asks.

    Attributes:
      game: the game.
      policy: of both players.
      checkpoint: the file to go on from and to write to; None: there is none.
      progress: show bars on stderr.
    """

    def __init__(
        self, game: AbruptGame, policy: openspiel_policy.Policy, *, progress: bool
    ) -> None:
        """Asks nothing yet."""
        self.game, self.policy, self.progress = game, policy, progress
        self.checkpoint: Checkpoint | None = None

    @functools.cached_property
    def seats(self) -> tuple[Seat, Seat]:
        """Exact best responses in both seats, as values.

        Raises:
          ValueError: the policy's answers are no probabilities; or the checkpoint is of
            another game or policy.
          CorruptFileError: the checkpoint was changed since it was written.
        """
        begun = time.perf_counter()
        with tqdm(desc="infosets", disable=not self.progress) as bar:
            reach = [self._reach(player, bar) for player in range(2)]
        leaves = Leaves(self.game, reach)
        sums, keeper = _LeafSums(leaves), None
        if self.checkpoint is not None:
            identity = {"kind": "streamed judging", **sums.identity()}
            every = self.checkpoint.every
            keeper = Keeper(self.checkpoint.path, identity, sums, every)
            keeper.resume()
        pieces = self.game.cells**2
        drive(sums, Goal(pieces), keeper, most=pieces, progress=self.progress)
        half, no_matches = (time.perf_counter() - begun) / 2, np.zeros(0)
        first, second = (
            Seat(p, best, True, best, leaves.value(p), no_matches, 0, half, largest=1.0)
            for p, best in enumerate(map(leaves.best_value, (0, 1)))
        )
        return first, second

    def _reach(self, player: int, bar: tqdm) -> dict[str, np.ndarray]:
        """A player's reach of sequences, as `Leaves` has it."""
        reach: dict[str, np.ndarray] = {}
        uniform = type(self.policy) is openspiel_policy.UniformRandomPolicy
        for infosets in self.game.infosets(player):
            outcomes, rows = infosets.outcomes, np.flatnonzero(infosets.possible)
            before = reach[outcomes[:-1]] if outcomes else np.ones(1)
            left = self.game.cells - len(outcomes)
            played = np.full((len(before), left), 1 / left)
            if left > 1 and not uniform:
                for begin in range(0, len(rows), _CHUNK):
                    some = rows[begin : begin + _CHUNK]
                    played[some] = self._played(player, infosets, some)
                    bar.update(len(some))
            reach[outcomes] = (before[:, None] * played).ravel()
        return reach

    def _played(self, player: int, infosets: Infosets, rows: np.ndarray) -> np.ndarray:
        """float64 [r, actions], what the policy plays at some infosets, checked."""
        free = self.game.attempts[len(infosets.outcomes)].free[rows]
        batch = path_batch(
            self.game,
            player,
            np.full(len(rows), free.shape[1]),
            free.ravel(),
            self.game.histories(player, infosets, rows),
            np.zeros(len(rows), np.int64),
        )
        return query_batch(self.policy, batch).reshape(free.shape)


class _LeafSums(IterativeSolver):
    """A sum of leaf values that may be interrupted; an iteration adds a piece."""

    name = "exact"

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves

    @property
    def iterations(self) -> int:  # type: ignore[override]
        """Number of pieces added."""
        return self._leaves.iterations

    def arrays(self) -> dict[str, np.ndarray]:
        """See `IterativeSolver.arrays`."""
        first, second = self._leaves.flat
        return {"first": first, "second": second, "pieces": np.array(self.iterations)}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """See `IterativeSolver.restore`."""
        for name, sums in zip(("first", "second"), self._leaves.flat, strict=True):
            if arrays[name].shape != sums.shape:
                raise ValueError("its arrays have other sizes")
            sums[:] = arrays[name]
        self._leaves.iterations, self.seconds = int(arrays["pieces"]), seconds

    def _iterate(self) -> None:
        self._leaves.run(1)

    def identity(self) -> dict[str, Any]:
        """See `IterativeSolver.identity`."""
        digest = hashlib.sha256()
        for reach in self._leaves.reach:
            for part in reach.values():
                digest.update(part.data)
        game = str(self._leaves.game.game)
        return {"game": game, "fingerprint": digest.hexdigest()}
