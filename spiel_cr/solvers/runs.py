"""Solvers of every family on their way, as `run.Run`, and what they leave."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic, interrupts
from spiel_cr.games.stepping import key_making
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies import signal_files
from spiel_cr.policies.result import Behaviours, HeldByTree, TableFacts
from spiel_cr.policies.signal_result import HeldBySignals
from spiel_cr.solvers.cfr.abstraction import digest
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.deep.averages import BankAverage, NetworkAverage
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.network_policy import DeepPolicy, save_deep_policy
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.laying_out import SIGNALS
from spiel_cr.solvers.mccfr.table.state_checks import check_state
from spiel_cr.solvers.mccfr.table.table_files import save_table_policy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy
from spiel_cr.solvers.mccfr.table.table_solver import UncompiledSolver
from spiel_cr.solvers.run import AfterChunk, Run


def settings_text(config: Any) -> str:
    """An algorithm's settings in one line, whatever its name."""
    settings = dataclasses.asdict(config)
    settings.pop("name")
    # JSON has no infinity.
    return repr(settings)


class TabularRun(Run):
    """A solver of a compiled or a signal game."""

    def __init__(
        self,
        solver: Solver,
        held: HeldByTree | HeldBySignals,
        *,
        batch: int = 0,
        seed: int | None = None,
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          held: the game in its form.
          batch: trajectories of an iteration and player.
          seed: of the run, where it samples.
        """
        super().__init__(solver)
        self._held, self._batch, self._seed = held, batch, seed
        self.compile_seconds = solver.compile_seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return {f"leaf{i}": leaf for i, leaf in enumerate(self.solver.leaves())}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""
        names = [f"leaf{i}" for i in range(len(arrays))]
        if set(names) != set(arrays):
            raise ValueError("its arrays have other names")
        self.solver.restore([arrays[name] for name in names], seconds=seconds)

    def identity(self) -> dict[str, Any]:
        """See `run.Run`."""
        if isinstance(self._held, HeldByTree):
            form, seal = None, fingerprint(self._held.tree)
        else:
            form, seal = SIGNALS, signal_files.fingerprint(self._held.signals)
        return {
            "game": str(self._held.game),
            "form": form,
            "fingerprint": seal,
            "config": settings_text(self.solver.config),
            "dtype": self.solver.dtype.name,
            "seed": self._seed,
            "buckets": digest(self.solver.buckets),
        }

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        kind = np.dtype(np.float64)
        if isinstance(self._held, HeldBySignals):
            kind = self._held.dtype

        def both(read: Callable[[int], np.ndarray]) -> Behaviours:
            return read(0).astype(kind, copy=False), read(1).astype(kind, copy=False)

        return {
            "held": self._held,
            "average": both(self.solver.average_behaviour),
            "current": both(self.solver.current_behaviour),
            "compile_seconds": self.solver.compile_seconds,
            "trajectories": 2 * self._batch * self.iterations,
        }


class NetworkRun(Run):
    """A solver that trains networks."""

    def __init__(
        self, solver: DeepSolver | SelfPlay, tree: CompiledGame | None, seal: str
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          tree: the game, if it was compiled.
          seal: tells the game's version.
        """
        super().__init__(solver)
        self._tree, self._seal = tree, seal
        self.whole = solver.iterations > 0

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        found: dict[str, np.ndarray] = self.solver.arrays()
        return found

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""
        self.solver.restore(arrays, seconds=seconds)
        self.whole = True

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """See `run.Run`; a chunk is an iteration."""
        with interrupts.Steps() as steps:
            for _ in range(count):
                with steps.step():
                    self.whole = False
                    self.solver.run(1)
                    self.whole = True
                if after_chunk(1):
                    return True
        return False

    def identity(self) -> dict[str, Any]:
        """See `run.Run`."""
        return {
            "game": str(self.solver.source.game),
            "form": "deep" if self._tree is None else "deep, compiled",
            "fingerprint": self._seal,
            "config": settings_text(self.solver.config),
            "seed": self.solver.seed,
        }

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        solver = self.solver
        fields: dict[str, Any] = {"trajectories": solver.episodes}
        if self._tree is not None:
            return fields | {
                "held": HeldByTree(self._tree),
                "average": solver.average_behaviours(),
                "current": (solver.current_behaviour(0), solver.current_behaviour(1)),
            }
        game, average = solver.source.game, solver.average()
        assert isinstance(average, BankAverage | NetworkAverage)
        save = functools.partial(save_deep_policy, game=game, average=average)
        held = HeldByPolicy(DeepPolicy(game, average), save)
        return fields | {"held": held, "nodes": solver.nodes}

    def close(self) -> None:
        """See `run.Run`."""
        if self._tree is None:
            self.solver.source.close()


class TableRun(Run):
    """A solver that fills a table with the infosets that it meets."""

    def __init__(
        self, solver: UncompiledSolver, kind: str, size: int, room: int
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          kind: what infosets are told apart by, see `key_making.KINDS`.
          size: the memory limit in bytes.
          room: what it leaves for the table and a batch.
        """
        super().__init__(solver)
        self._kind, self._size, self._room = kind, size, room
        self._before = 0, 0

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """See `run.Run`."""
        whole: bool = self.solver.whole
        return whole

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        found: dict[str, np.ndarray] = self.solver.state()
        return found

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`; the seconds are among the arrays."""
        fresh, actions = self.solver.state(), self.solver.source.max_actions
        check_state(arrays, fresh, max_actions=actions)
        try:
            self.solver.restore(arrays)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"its random numbers are none: {error!r}") from error
        self._before = self.solver.met, self.solver.known

    def shown(self) -> dict[str, Any]:
        """See `run.Run`; the share of infosets met lately that were known."""
        solver = self.solver
        met, known = solver.met - self._before[0], solver.known - self._before[1]
        self._before = solver.met, solver.known
        return {
            "trajectories": f"{solver.trajectories:,}",
            "infosets": f"{solver.table.rows:,}",
            "MB": f"{solver.table.nbytes / 1e6:,.0f}",
            "known": f"{known / max(met, 1):.1%}",
        }

    def nash_conv(self) -> float:
        """Nobody knows it; raises ValueError."""
        raise ValueError(f"{self.solver.source.game}: NashConv needs the compiled game")

    def identity(self) -> dict[str, Any]:
        """See `run.Run`."""
        solver = self.solver
        return {
            "game": str(solver.source.game),
            "keys": self._kind,
            "fingerprint": key_making.fingerprint(solver.source),
            "config": settings_text(solver.config),
            "seed": solver.seed,
            "memory_limit": self._size,
            "table_limit": self._room,
        }

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        solver, game = self.solver, self.solver.source.game
        source = key_making.make_source(game, self._kind)
        average = solver.average()
        policy = TablePolicy(game, source, average)
        save = functools.partial(save_table_policy, policy=policy, keys=self._kind)
        return {
            "held": HeldByPolicy(policy, save),
            "trajectories": solver.trajectories,
            "table": TableFacts(
                infosets=len(average),
                keys=self._kind,
                bytes=solver.table.nbytes,
                limit=solver.table.limit,
                full=solver.table.full,
                met=solver.met,
                known=solver.known,
            ),
        }

    def close(self) -> None:
        """See `run.Run`."""
        self.solver.source.close()


@dataclasses.dataclass(frozen=True)
class HeldByPolicy:
    """A strategy of a game that was not laid out; see `result.Held`.

    Attributes:
      average: the policy: by hashes of information states, or of networks.
      save: writes it to a file, given its path and `metadata`.
    """

    average: TablePolicy | DeepPolicy
    save: Callable[..., None]
    form = None

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.average.game

    def policy(self, behaviour: Behaviours | None) -> openspiel_policy.Policy:
        """The average strategy."""
        return self.average

    def write(
        self, path: atomic.Path, average: Behaviours | None, metadata: Mapping[str, Any]
    ) -> None:
        """See `result.Held`."""
        self.save(path, metadata=metadata)
