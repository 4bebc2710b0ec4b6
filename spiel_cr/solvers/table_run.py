"""A table of a game that is not laid out, on its way."""

import functools
import os
from typing import Any

import numpy as np

from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.stepping import key_making, recall_checks
from spiel_cr.games.stepping.rules_source import RulesSource
from spiel_cr.games.stepping.simulator import Simulator
from spiel_cr.games.stepping.workers import Workers
from spiel_cr.policies.result import HeldByPolicy, TableFacts
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.laying_out import STEPPED, Laid, Layout
from spiel_cr.solvers.mccfr.public_chance import PublicChanceSolver
from spiel_cr.solvers.mccfr.table.state_checks import check_state
from spiel_cr.solvers.mccfr.table.table_files import save_table_policy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy
from spiel_cr.solvers.mccfr.table.table_solver import BRANCHES, UncompiledSolver
from spiel_cr.solvers.run import Run, settings_text
from spiel_cr.solvers.task import Task

# Of so many depths the states of a batch are held.
_DEPTHS = 2
# Actions of a decision that a table can count.
_MOST_ACTIONS = 2**16 - 1


def make_table(laid: Laid, task: Task) -> Run:
    """The solver that fills a table on its way.

    Args:
      laid: the game, stepped.
      task: what is asked for.

    Raises:
      GameTooLargeError, ValueError: as `solve`.
    """
    assert isinstance(laid.game, Opened)
    layout, config = task.layout, task.algorithm.config_in(STEPPED)
    kind, source, taken = _source(laid.game, layout)
    try:
        if source.max_actions > _MOST_ACTIONS:
            raise GameTooLargeError(
                f"{source.game}: decisions have up to {source.max_actions:,} actions, "
                f"and a table takes at most {_MOST_ACTIONS:,}; choose smaller game "
                f"parameters"
            )
        limit = layout.memory_limit
        size, room = _table_room(source, config, limit, task.path, taken)
        solver = UncompiledSolver(
            source,
            config,
            seed=task.seed,
            max_bytes=room,
            # Not of the room, which depends on workers, and on this process.
            branch_bytes=BRANCHES * max(0, size - memory.BASE_BYTES),
        )
        # Matches hold lists of actions, so what is too large is refused before.
        recall_checks.check_source(source, exact=config.averaging == "exact")
        return TableRun(solver, kind, {"memory_limit": size, "table_limit": room})
    except BaseException:
        source.close()
        raise


def _source(opened: Opened, layout: Layout) -> tuple[str, Simulator, int]:
    """What its keys are, what steps a game, and the bytes that its buckets take.

    Raises:
      GameTooLargeError: buckets take more than the limit.
      ValueError: as `key_making.make_source`.
    """
    kind = key_making.kind_for(
        opened, use_rules=layout.vectorised, buckets=layout.hand_buckets
    )
    taken = 0
    rules: Any = opened.rules
    if layout.hand_buckets is not None and not layout.vectorised:
        raise ValueError(
            f"hand_buckets={layout.hand_buckets} needs the game's rules on arrays; "
            f"leave vectorised=False (--no-vectorised) out"
        )
    if layout.hand_buckets is not None and hasattr(rules, "bucket_bytes"):
        taken = rules.bucket_bytes()
        _check_room(opened, layout, taken)
    source = key_making.make_source(opened, kind, workers=layout.workers)
    return kind, source, taken


def _check_room(opened: Opened, layout: Layout, taken: int) -> None:
    """Refuses hands in buckets that take more than the limit: GameTooLargeError."""
    size = int(memory.parse_limit(layout.memory_limit))
    if taken + memory.BASE_BYTES > size:
        raise GameTooLargeError(
            f"{memory.describe_limit(layout.memory_limit, size)}, and buckets of "
            f"{opened.game} take about {memory.describe_bytes(taken)} beside Python; "
            f"raise the limit, or give fewer hand_buckets"
        )


def _table_room(
    source: Simulator,
    config: MCCFRConfig,
    limit: memory.Limit,
    checkpoint_path: atomic.Path | None,
    taken: int,
) -> tuple[int, int]:
    """The limit in bytes, and what it leaves for the table and a batch.

    Args:
      source: of the game.
      config: the algorithm.
      limit: as given.
      checkpoint_path: of the run.
      taken: bytes of buckets.

    A resumed run has what it began with: a table of another size might be full
    elsewhere, and the bits would be others.

    Raises:
      GameTooLargeError: nothing is left.
      ValueError: the checkpoint asks for more than this machine has.
    """
    if checkpoint_path is not None and os.path.exists(checkpoint_path):
        with storage.called("checkpoint"):
            kept = storage.load_metadata(checkpoint_path)
        size, room = kept.get("memory_limit"), kept.get("table_limit")
        same = limit is None or memory.parse_limit(limit) == size
        if same and isinstance(size, int) and isinstance(room, int):
            most = memory.machine_bytes() if limit is None else size
            if not 0 < room < size <= most:
                raise ValueError(
                    f"the checkpoint {os.fspath(checkpoint_path)} was begun with a "
                    f"table of {memory.describe_bytes(room)}, more than this machine "
                    f"may have; go on where there is more memory, or give another path"
                )
            return size, room
    size = int(memory.parse_limit(limit))
    # What a process takes besides the table: imported packages, and numpy's temporary
    # arrays.
    taken += memory.BASE_BYTES
    taken += _DEPTHS * config.batch * source.state_bytes
    if isinstance(source, Workers):
        taken += source.held_bytes
    if taken >= size:
        raise GameTooLargeError(
            f"{memory.describe_limit(limit, size)}, and sampling {source.game} takes "
            f"about {memory.describe_bytes(taken)} without a table; raise the limit, "
            f"or take a smaller batch or fewer workers"
        )
    return size, size - int(taken)


class TableRun(Run):
    """A solver that fills a table with the infosets that it meets."""

    def __init__(
        self,
        solver: UncompiledSolver | PublicChanceSolver,
        kind: str,
        limits: dict[str, int],
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          kind: what infosets are told apart by, see `key_making.KINDS`.
          limits: of memory, in bytes, that a resumed run must share.
        """
        super().__init__(solver)
        self._kind, self._limits = kind, limits
        self._before = 0, 0

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return self.solver.state()

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`; the seconds are among the arrays."""
        if isinstance(self.solver, UncompiledSolver):
            actions = self.solver.source.max_actions
            check_state(arrays, self.solver.state(), max_actions=actions)
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
            **self._limits,
        }

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        solver, game = self.solver, self.solver.source.game
        arrays = key_making.bucket_arrays(solver.source) or None
        source = key_making.make_source(Opened(game), self._kind, arrays=arrays)
        average = solver.average()
        # Exact averages are of games of perfect recall, which buckets have not.
        exact = arrays is None and solver.config.averaging == "exact"
        policy = TablePolicy(game, source, average, from_roots=exact)
        save = functools.partial(save_table_policy, policy=policy, keys=self._kind)
        return {
            "held": HeldByPolicy(policy, save),
            "trajectories": solver.trajectories,
            "table": TableFacts(len(average), self._kind, **solver.facts()),
        }

    def close(self) -> None:
        """See `run.Run`."""
        self.solver.source.close()


def make_boards(laid: Laid, task: Task) -> Run:
    """The solver that samples boards of a game whose hands are in buckets.

    Args:
      laid: the game, stepped.
      task: what is asked for.

    Raises:
      GameTooLargeError, ValueError: as `solve`.
    """
    assert isinstance(laid.game, Opened)
    if task.layout.hand_buckets is None:
        raise ValueError(
            f"algorithm={task.algorithm.asked!r} draws boards for hands in buckets: "
            f"give hand_buckets (--hand-buckets), such as '169-200-200-200' for limit "
            f"hold'em"
        )
    kind, source, taken = _source(laid.game, task.layout)
    assert isinstance(source, RulesSource)
    solver = PublicChanceSolver(source, task.algorithm.config, seed=task.seed)
    _check_room(laid.game, task.layout, taken + solver.num_bytes)
    # No bit depends on the memory.
    return BoardRun(solver, kind, {})


class BoardRun(TableRun):
    """A solver that samples boards."""

    def shown(self) -> dict[str, Any]:
        """See `run.Run`."""
        return {"boards": f"{self.solver.iterations:,}"}
