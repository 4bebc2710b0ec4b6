"""Sampling a game that is never compiled: `sample_uncompiled`, and what it gives."""

import dataclasses
import math
import os
import time
from typing import Any

import numpy as np
import pyspiel
from absl import logging
from tqdm import tqdm

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.checks import (
    check_iterations,
    check_number,
    check_seed,
    check_whole,
)
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.short_repr import short_repr
from spiel_cr.compilation.loading import load_game
from spiel_cr.solving.checkpoint import Keeper, settings_of
from spiel_cr.uncompiled import key_making, recall_checks
from spiel_cr.uncompiled.policy import TablePolicy, arrays_of
from spiel_cr.uncompiled.policy_files import TABLE
from spiel_cr.uncompiled.solver import BRANCHES, UncompiledSolver, parse_uncompiled
from spiel_cr.uncompiled.source import Source
from spiel_cr.uncompiled.state_checks import check_state
from spiel_cr.uncompiled.workers import MOST_WORKERS, Workers

_ITERATIONS = 1000
# What a process takes besides the table: imported packages, and numpy's temporary
# arrays.
_PROCESS_BYTES = memory.BASE_BYTES
# Of so many depths the states of a batch are held.
_DEPTHS = 2


@dataclasses.dataclass(frozen=True, repr=False)
class SampledResult:
    """What sampling a game without compiling it gave.

    Attributes:
      policy: the average strategy, uniform at infosets that were never met.
      algorithm: as given.
      iterations: done, a batch of trajectories for each player in each.
      trajectories: sampled.
      seconds: time spent iterating.
      build_seconds: time spent before.
      table_bytes: what the table took in the end.
      table_limit: what it might have taken; a batch takes the rest of the memory.
      full: whether infosets were left out because there was no more memory.
      met: decisions of updating players on all trajectories.
      known: those among them whose infoset was in the table before.
      keys: what infosets are told apart by: "rules" on arrays, or "strings".
    """

    __repr__ = short_repr

    policy: TablePolicy
    algorithm: str
    iterations: int
    trajectories: int
    seconds: float
    build_seconds: float
    table_bytes: int
    table_limit: int
    full: bool
    met: int
    known: int
    keys: str

    @property
    def game(self) -> pyspiel.Game:
        """The (sequential) game."""
        return self.policy.game

    @property
    def infosets(self) -> int:
        """How many infosets the table has."""
        return len(self.policy.strategy)

    @property
    def trajectories_per_second(self) -> float:
        """0 if nothing was done."""
        return self.trajectories / self.seconds if self.seconds else 0.0

    def average_policy(self) -> TablePolicy:
        """The average strategy, as of `SolveResult`."""
        return self.policy

    def save(self, path: atomic.Path) -> None:
        """Writes the policy to an `.npz` file, atomically; `load_policy` reads it.

        Raises:
          OSError: it cannot be written; the old file is as it was.
        """
        metadata = {
            "kind": TABLE,
            "game": str(self.game),
            "keys": self.keys,
            "fingerprint": key_making.fingerprint(self.policy.source),
            "algorithm": self.algorithm,
            "iterations": self.iterations,
            "trajectories": self.trajectories,
            "infosets": self.infosets,
            "versions": storage.versions(),
        }
        storage.save(path, arrays_of(self.policy.strategy), metadata)


def check_sampling(
    algorithm: str | MCCFRConfig = "os-mccfr",
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    seed: int = 0,
    workers: int = 1,
    memory_limit: memory.Limit = None,
    checkpoint_every: float = 60.0,
) -> MCCFRConfig:
    """Refuses arguments of `sample_uncompiled` that no game makes right.

    Args: as there.

    Returns:
      The algorithm's settings.

    Raises:
      ValueError: a bad argument, or an algorithm that needs the compiled game.
    """
    config = parse_uncompiled(algorithm)
    if iterations is not None:
        check_iterations(iterations)
    if seconds is not None:
        check_number(seconds, "seconds", "(0, inf)")
    check_seed(seed)
    check_whole(workers, "workers", 1, MOST_WORKERS)
    check_number(checkpoint_every, "checkpoint_every", "(0, inf)")
    if math.isinf(memory.parse_limit(memory_limit)):
        raise ValueError(
            f"memory_limit={memory_limit!r}: the table grows as long as there is "
            f"room, so it needs a limit; give one such as 4GB"
        )
    return config


def sample_uncompiled(
    game: str | pyspiel.Game,
    algorithm: str | MCCFRConfig = "os-mccfr",
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    seed: int = 0,
    workers: int = 1,
    vectorised: bool = True,
    memory_limit: memory.Limit = None,
    checkpoint_path: atomic.Path | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> SampledResult:
    """Samples a game of any size by Monte Carlo CFR; its tree is never laid out.

    Infosets that trajectories meet are kept in a table that grows up to the memory
    limit; when it is full it takes in no more, says so once, and goes on. The same
    arguments (without `seconds`) give the same bits, interrupted and resumed or not;
    where a memory limit is given and the table is not full, for any number of workers.

    Args:
      game: OpenSpiel game string or game, two players and zero-sum, with
        information-state strings. Simultaneous moves are converted to turns.
      algorithm: one that samples, with its settings, such as
        "os-mccfr(epsilon=0.4,batch=4096)"; see `uncompiled.solver.parse_uncompiled` for
        the defaults here, and for settings that need the compiled game.
      iterations: how many at most, a batch for each player in each. By default 1000, or
        no limit where `seconds` says when to stop.
      seconds: stop after this time of iterating (what a checkpoint took included).
      seed: of all that is drawn.
      workers: processes that step OpenSpiel's states; 1: this process does. Not for
        games that are played by rules on arrays.
      vectorised: play by the game's own rules on arrays, if it has them; else, and with
        False, step OpenSpiel's states.
      memory_limit: of the process, for table, batch and all else: bytes, or a size like
        "4GB"; None: 70 % of what the process may have, or what the checkpoint began
        with.
      checkpoint_path: a file to continue from where it exists, and to write to.
      checkpoint_every: seconds between writes; the last state is written too, also
        when the run is interrupted from the keyboard, which ends it between two
        iterations. After an error within one (a worker process ended) the file stays
        as it was. If a write fails, a warning names the file and the run goes on; that
        of the last one is an `UnsavedWarning`.
      progress: show a progress bar on stderr.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: the limit does not hold what one trajectory meets.
      ValueError: the game is not two-player zero-sum or has no information-state
        strings; a bad argument; an algorithm that needs the compiled game; a checkpoint
        of another run, or one that cannot be written.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
      InvalidGameError: the game breaks what it promises; names the history.
      WorkerFailedError: a worker process ended.
    """
    config = check_sampling(
        *(algorithm, iterations),
        seconds=seconds,
        seed=seed,
        workers=workers,
        memory_limit=memory_limit,
        checkpoint_every=checkpoint_every,
    )
    if iterations is None and seconds is None:
        iterations = _ITERATIONS
    with atomic.reserved(checkpoint_path, "checkpoint_path"):
        started = time.perf_counter()
        loaded = load_game(game)
        kind = key_making.kind_for(loaded, use_rules=vectorised)
        source = key_making.make_source(loaded, kind, workers=workers)
        try:
            recall_checks.check_source(source, exact=config.averaging == "exact")
            size, room = _table_room(source, config, memory_limit, checkpoint_path)
            solver = UncompiledSolver(
                *(source, config),
                seed=seed,
                max_bytes=room,
                # Not of the room, which depends on workers, and on this process.
                branch_bytes=BRANCHES * max(0, size - _PROCESS_BYTES),
            )
            keeper = None
            if checkpoint_path is not None:
                identity = {
                    "kind": "checkpoint",
                    "game": str(loaded),
                    "keys": kind,
                    "fingerprint": key_making.fingerprint(source),
                    "config": settings_of(solver.config),
                    "seed": solver.seed,
                    "memory_limit": size,
                    "table_limit": room,
                }
                sampler = _Sampler(solver)
                keeper = Keeper(checkpoint_path, identity, sampler, checkpoint_every)
                keeper.resume(iterations)
            build_seconds = time.perf_counter() - started
            _run(solver, iterations, seconds, keeper, progress=progress)
        finally:
            source.close()
    average = solver.average()
    return SampledResult(
        policy=TablePolicy(loaded, key_making.make_source(loaded, kind), average),
        algorithm=config.name,
        iterations=solver.iteration,
        trajectories=solver.trajectories,
        seconds=solver.seconds,
        build_seconds=build_seconds,
        table_bytes=solver.table.nbytes,
        table_limit=solver.table.limit,
        full=solver.table.full,
        met=solver.met,
        known=solver.known,
        keys=kind,
    )


class _Sampler:
    """A solver as a checkpoint sees it."""

    def __init__(self, solver: UncompiledSolver) -> None:
        self._solver = solver

    @property
    def iterations(self) -> int:
        return self._solver.iteration

    @property
    def seconds(self) -> float:
        return self._solver.seconds

    def arrays(self) -> dict[str, np.ndarray]:
        return self._solver.state()

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        del seconds  # it is among the arrays
        fresh, actions = self._solver.state(), self._solver.source.max_actions
        check_state(arrays, fresh, max_actions=actions)
        try:
            self._solver.restore(arrays)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"its random numbers are none: {error!r}") from error


def _table_room(
    source: Source,
    config: MCCFRConfig,
    limit: memory.Limit,
    checkpoint_path: atomic.Path | None,
) -> tuple[int, int]:
    """The limit in bytes, and what it leaves for the table and a batch.

    A resumed run has what it began with: a table of another size might be full
    elsewhere, and the bits would be others.

    Raises:
      GameTooLargeError: nothing is left.
    """
    if checkpoint_path is not None and os.path.exists(checkpoint_path):
        kept = storage.load_metadata(checkpoint_path)
        size, room = kept.get("memory_limit"), kept.get("table_limit")
        same = limit is None or memory.parse_limit(limit) == size
        if same and isinstance(size, int) and isinstance(room, int) and room > 0:
            return size, room
    size = int(memory.parse_limit(limit))
    taken = max(_PROCESS_BYTES, memory.held_bytes())
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


def _run(
    solver: UncompiledSolver,
    iterations: int | None,
    seconds: float | None,
    keeper: Keeper | None,
    *,
    progress: bool,
) -> None:
    """Iterates to the goal; checkpoints on the way and at the end, however it comes."""
    with tqdm(
        total=iterations,
        initial=solver.iteration,
        desc=solver.config.name,
        disable=not progress,
    ) as bar:
        before = solver.met, solver.known

        def out_of_time() -> bool:
            return seconds is not None and solver.seconds >= seconds

        def after_chunk(count: int) -> bool:
            nonlocal before
            met, known = solver.met - before[0], solver.known - before[1]
            before = solver.met, solver.known
            bar.set_postfix(_shown(solver, known / max(met, 1)), refresh=False)
            bar.update(count)
            if keeper is not None:
                keeper.tick()
            return out_of_time()

        try:
            more = None if iterations is None else iterations - solver.iteration
            if more != 0 and not out_of_time():
                left = None if seconds is None else seconds - solver.seconds
                solver.run(more, seconds=left, after_chunk=after_chunk)
        finally:
            if keeper is not None and solver.whole:
                keeper.write_last()
            elif keeper is not None:
                logging.warning(
                    "iteration %d ended in its middle, so it is not written to the "
                    "checkpoint, which stays as it was written last",
                    solver.iteration,
                )


def _shown(solver: UncompiledSolver, known: float) -> dict[str, Any]:
    """What people see of a run: `known` of the infosets met lately were known."""
    return {
        "trajectories": f"{solver.trajectories:,}",
        "infosets": f"{solver.table.rows:,}",
        "MB": f"{solver.table.nbytes / 1e6:,.0f}",
        "known": f"{known:.1%}",
    }
