"""Solvers of every family on their way, as `run.Run`, and what they leave."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic, interrupts, storage
from spiel_cr.games.stepping import key_making
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.result import Behaviours, HeldByTree, TableFacts
from spiel_cr.policies.signal_result import HeldBySignals
from spiel_cr.policies.world_policy import HeldByWorlds
from spiel_cr.solvers.cfr.abstraction import digest
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.deep.averages import BankAverage, NetworkAverage
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.network_policy import DeepPolicy, save_deep_policy
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.mccfr.table.state_checks import check_state
from spiel_cr.solvers.mccfr.table.table_files import TABLE
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy, arrays_of
from spiel_cr.solvers.mccfr.table.table_solver import UncompiledSolver

# A game in any of the forms that are laid out.
HeldLaidOut: TypeAlias = HeldByTree | HeldBySignals | HeldByWorlds
AfterChunk: TypeAlias = Callable[[int], bool]


def settings_text(config: Any) -> str:
    """An algorithm's settings in one line, whatever its name."""
    settings = dataclasses.asdict(config)
    settings.pop("name")
    # JSON has no infinity.
    return repr(settings)


class TabularRun:
    """A solver of a game that was laid out as `run.Run`.

    Attributes:
      solver: that is driven.
      held: the game in its form.
    """

    whole = True

    def __init__(
        self,
        solver: Solver,
        held: HeldLaidOut,
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
        self.solver, self.held = solver, held
        self.name: str = solver.config.name
        self._batch, self._seed = batch, seed

    @property
    def compile_seconds(self) -> float:
        """Time spent tracing and compiling so far."""
        return self.solver.compile_seconds

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return self.solver.iterations

    @property
    def seconds(self) -> float:
        """Time spent iterating so far."""
        return self.solver.seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return {f"leaf{i}": leaf for i, leaf in enumerate(self.solver.leaves())}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""
        names = [f"leaf{i}" for i in range(len(arrays))]
        if set(names) != set(arrays):
            raise ValueError("its arrays have other names")
        self.solver.restore([arrays[name] for name in names], seconds=seconds)

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """See `run.Run`; a chunk takes about a quarter of a second."""
        return self.solver.run(count, after_chunk=after_chunk)

    def shown(self) -> dict[str, Any]:
        """See `run.Run`."""
        return {}

    def nash_conv(self) -> float:
        """See `run.Run`."""
        return self.solver.nash_conv()

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must have in common with the run."""
        form, seal = self.held.identity()
        return {
            "game": str(self.held.game),
            "form": form,
            "fingerprint": seal,
            "config": settings_text(self.solver.config),
            "dtype": self.solver.dtype.name,
            "seed": self._seed,
            "buckets": digest(self.solver.buckets),
        }

    def outcome(self) -> dict[str, Any]:
        """Fields of the result."""
        solver = self.solver
        kind = getattr(self.held, "dtype", np.float64)

        def both(read: Callable[[int], np.ndarray]) -> Behaviours:
            return (
                read(0).astype(kind, copy=False),
                read(1).astype(kind, copy=False),
            )

        return {
            "held": self.held,
            "average": both(solver.average_behaviour),
            "current": both(solver.current_behaviour),
            "compile_seconds": solver.compile_seconds,
            "trajectories": 2 * self._batch * solver.iterations,
        }

    def close(self) -> None:
        """Nothing is open."""


class NetworkRun:
    """A solver that trains networks as `run.Run`.

    Attributes:
      solver: that is driven.
    """

    compile_seconds = 0.0

    def __init__(
        self, solver: DeepSolver | SelfPlay, tree: CompiledGame | None, seal: str
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          tree: the game, if it was compiled.
          seal: tells the game's version.
        """
        self.solver, self._tree, self._seal = solver, tree, seal
        self.name: str = solver.config.name
        self.whole = solver.iterations > 0

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return self.solver.iterations

    @property
    def seconds(self) -> float:
        """Time spent iterating so far."""
        return self.solver.seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return self.solver.arrays()

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

    def shown(self) -> dict[str, Any]:
        """See `run.Run`."""
        return {}

    def nash_conv(self) -> float:
        """See `run.Run`."""
        return self.solver.nash_conv()

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must have in common with the run."""
        return {
            "game": str(self.solver.source.game),
            "form": "deep" if self._tree is None else "deep, compiled",
            "fingerprint": self._seal,
            "config": settings_text(self.solver.config),
            "seed": self.solver.seed,
        }

    def outcome(self) -> dict[str, Any]:
        """Fields of the result."""
        solver = self.solver
        fields: dict[str, Any] = {"trajectories": solver.episodes}
        if self._tree is not None:
            return fields | {
                "held": HeldByTree(self._tree),
                "average": solver.average_behaviours(),
                "current": (solver.current_behaviour(0), solver.current_behaviour(1)),
            }
        average = solver.average()
        assert isinstance(average, BankAverage | NetworkAverage)
        policy = DeepPolicy(solver.source.game, average)
        return fields | {"held": HeldByNetworks(policy), "nodes": solver.nodes}

    def close(self) -> None:
        """Closes what steps a game that was not compiled."""
        if self._tree is None:
            self.solver.source.close()


class TableRun:
    """A solver that fills a table with the infosets that it meets, as `run.Run`.

    Attributes:
      solver: that is driven.
    """

    compile_seconds = 0.0

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
        self.solver, self._kind, self._size, self._room = solver, kind, size, room
        self.name: str = solver.config.name
        self._before = 0, 0

    @property
    def whole(self) -> bool:
        """Whether all iterations are whole."""
        return self.solver.whole

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return self.solver.iteration

    @property
    def seconds(self) -> float:
        """Time spent iterating so far."""
        return self.solver.seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return self.solver.state()

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`; the seconds are among the arrays."""
        fresh, actions = self.solver.state(), self.solver.source.max_actions
        check_state(arrays, fresh, max_actions=actions)
        try:
            self.solver.restore(arrays)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"its random numbers are none: {error!r}") from error
        self._before = self.solver.met, self.solver.known

    def advance(
        self, count: int, seconds: float | None, after_chunk: AfterChunk
    ) -> bool:
        """See `run.Run`; a chunk takes a quarter of a second or an iteration."""
        return self.solver.run(count, seconds=seconds, after_chunk=after_chunk)

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
        """What a checkpoint must have in common with the run."""
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
        """Fields of the result."""
        solver, game = self.solver, self.solver.source.game
        source = key_making.make_source(game, self._kind)
        average = solver.average()
        return {
            "held": HeldByTable(TablePolicy(game, source, average), self._kind),
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
        """Closes what steps the game."""
        self.solver.source.close()


@dataclasses.dataclass(frozen=True)
class HeldByTable:
    """A strategy by hashes of information states; see `result.Held`.

    Attributes:
      average: the policy, uniform at infosets that were never met.
      keys: what infosets are told apart by.
    """

    average: TablePolicy
    keys: str
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
        described = {
            "kind": TABLE,
            "game": str(self.game),
            "keys": self.keys,
            "fingerprint": key_making.fingerprint(self.average.source),
            **metadata,
            "versions": storage.versions(),
        }
        storage.save(path, arrays_of(self.average.strategy), described)


@dataclasses.dataclass(frozen=True)
class HeldByNetworks:
    """A strategy that networks play; see `result.Held`.

    Attributes:
      average: the policy.
    """

    average: DeepPolicy
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
        save_deep_policy(path, self.game, self.average.average, metadata)


AnyRun: TypeAlias = TabularRun | NetworkRun | TableRun
