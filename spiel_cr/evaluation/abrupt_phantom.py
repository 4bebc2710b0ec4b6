"""Exact evaluation of abrupt phantom games, which are too large for any representation.

Both players' leaf values against a policy are added up piece by piece, one piece for
each pair of first moves. That takes minutes, can resume from a checkpoint, and stores
two numbers for each sequence.
"""

import functools
import hashlib
import time
from typing import Any

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.result import ResponseValue
from spiel_cr.games.phantom.abrupt import AbruptGame, AbruptInfosets, Leaves
from spiel_cr.games.phantom.phantom_queries import path_batch
from spiel_cr.policies.queries import query_batch
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.run import Checkpoint, Goal, drive

# Number of infosets in one query.
_CHUNK = 1 << 16


class AbruptEvaluation:
    """Exact evaluation of a policy of an abrupt phantom game.

    The evaluation runs when `values` is first read, so set `checkpoint` before that.

    Attributes:
      game: The game.
      policy: The policy of both players.
      checkpoint: The file to resume from and to write to; None for no checkpoint.
    """

    def __init__(self, game: AbruptGame, policy: openspiel_policy.Policy) -> None:
        self.game, self.policy = game, policy
        self.checkpoint: Checkpoint | None = None

    @functools.cached_property
    def values(self) -> tuple[ResponseValue, ResponseValue]:
        """Exact best responses of both players, as values.

        Raises:
          ValueError: If the policy's answers are not probabilities, or the checkpoint
            belongs to another game or policy.
          CorruptFileError: If the checkpoint is corrupt.
        """
        start = time.perf_counter()
        with progress_bar(desc="infosets") as bar:
            reach = [self._reach(player, bar) for player in range(2)]
        leaves = Leaves(self.game, reach)
        sums, keeper = _LeafSums(leaves), None
        if self.checkpoint is not None:
            identity = {"kind": "streamed judging", **sums.identity()}
            every = self.checkpoint.every
            keeper = Keeper(self.checkpoint.path, identity, sums, every)
            keeper.resume()
        pieces = self.game.cells**2
        drive(sums, Goal(pieces), keeper, most=pieces, progress=None)
        seconds = (time.perf_counter() - start) / 2
        first, second = (
            ResponseValue(
                player,
                "exact",
                best,
                seconds=seconds,
                exact_value=best,
                on_policy=leaves.value(player),
                largest=1.0,
            )
            for player, best in enumerate(map(leaves.best_value, (0, 1)))
        )
        return first, second

    def _reach(self, player: int, bar: Any) -> dict[str, np.ndarray]:
        """Return a player's reach probabilities of sequences, see `Leaves`."""
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
                    played[some] = self._probabilities(player, infosets, some)
                    bar.update(len(some))
            reach[outcomes] = (before[:, None] * played).ravel()
        return reach

    def _probabilities(
        self, player: int, infosets: AbruptInfosets, rows: np.ndarray
    ) -> np.ndarray:
        """Query the policy at some infosets and check its answers.

        Returns:
          The probabilities of the actions, float64 [r, actions].
        """
        free = self.game.orders[len(infosets.outcomes)].free[rows]
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
    """Resumable sum of leaf values; an iteration adds one piece."""

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
