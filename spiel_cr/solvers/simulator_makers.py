"""Makers of solvers for simulated games, which store visited infosets in a table."""

import dataclasses
import os
from typing import Any

from absl import logging

from spiel_cr.common import atomic, memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.messages import announce, one_line
from spiel_cr.common.parameters import parse
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation import key_making, recall_checks
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.games.simulation.workers import Workers
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.public_chance import PublicChanceSolver
from spiel_cr.solvers.mccfr.table import table_solver
from spiel_cr.solvers.representation import GameOptions, checkpoint_metadata
from spiel_cr.solvers.task import Task

# Number of depths whose states are in memory at once.
_DEPTHS = 2
# Maximum number of actions of a decision in a table.
_MOST_ACTIONS = 2**16 - 1


def make_table(represented: Opened, task: Task) -> table_solver.TableSolver:
    """Make a solver that samples histories and fills a table with visited infosets.

    Args:
      represented: The simulated game.
      task: Algorithm, goal and options.

    Raises:
      GameTooLargeError, ValueError: See `solve`.
    """
    options = task.options
    kind, source, taken = _source(represented, options)
    try:
        if source.max_actions > _MOST_ACTIONS:
            raise GameTooLargeError(
                f"{source.game}: decisions have up to {source.max_actions:,} actions, "
                f"and a table supports at most {_MOST_ACTIONS:,}; use smaller game "
                f"parameters"
            )
        size, kept = _kept_limits(options.memory_limit, task.path)
        config, room = _with_batch(source, task, size, taken)
        room = room if kept is None else kept
        solver = table_solver.SampledTableSolver(
            source,
            config,
            seed=task.seed,
            max_bytes=room,
            # Independent of the room, which depends on workers and on this process.
            branch_bytes=table_solver.BRANCHES * max(0, size - memory.BASE_BYTES),
        )
        # Matches contain lists of actions, so sizes are checked before.
        recall_checks.check_source(source, exact=config.averaging == "exact")
        solver.keys = kind
        solver.limits = {"memory_limit": size, "table_limit": room}
        return solver
    except BaseException:
        source.close()
        raise


def _source(opened: Opened, options: GameOptions) -> tuple[str, Any, int]:
    """Return the kind of keys, the simulator, and the memory of hand buckets in bytes.

    Raises:
      GameTooLargeError: If buckets need more memory than the limit.
      ValueError: If the game cannot be simulated with these options, see
        `key_making.make_source`.
    """
    kind = key_making.kind_for(
        opened, use_rules=options.batched_rules, buckets=options.hand_buckets
    )
    taken = 0
    if options.hand_buckets is not None:
        if not options.batched_rules:
            raise ValueError(
                f"hand_buckets={options.hand_buckets}: needs the game's batched rules; "
                f"leave batched_rules=False (--no-batched-rules) out"
            )
        # `make_source` rejects rules without buckets.
        rules: Any = opened.rules
        if hasattr(rules, "bucket_bytes"):
            taken = rules.bucket_bytes()
            _check_room(opened, options, taken)
    source = key_making.make_source(opened, kind, workers=options.workers)
    return kind, source, taken


def _check_room(opened: Opened, options: GameOptions, taken: int) -> None:
    """Raise GameTooLargeError if hand buckets need more memory than the limit."""
    size = int(memory.parse_limit(options.memory_limit))
    if taken + memory.BASE_BYTES > size:
        raise GameTooLargeError(
            f"{memory.describe_limit(options.memory_limit, size)}, and buckets of "
            f"{opened.game} need about {memory.describe_bytes(taken)} besides Python; "
            f"raise the limit, or use fewer hand_buckets"
        )


def _kept_limits(
    limit: memory.Limit, checkpoint_path: atomic.Path | None
) -> tuple[int, int | None]:
    """Return the memory limit in bytes, and the table's share in a checkpoint.

    A resumed run keeps the limits with which it started: a table of another size might
    be full at another time, and the run would not be bitwise reproducible.

    Args:
      limit: Memory limit that the caller chose.
      checkpoint_path: Checkpoint of the run, which need not exist.

    Returns:
      The limit, and the bytes of the table; None for the latter without a checkpoint.

    Raises:
      ValueError: If the checkpoint needs more memory than this machine has.
    """
    if checkpoint_path is not None and (kept := checkpoint_metadata(checkpoint_path)):
        size, room = kept.get("memory_limit"), kept.get("table_limit")
        same = limit is None or memory.parse_limit(limit) == size
        if same and isinstance(size, int) and isinstance(room, int):
            most = memory.machine_bytes() if limit is None else size
            if not 0 < room < size <= most:
                raise ValueError(
                    f"the checkpoint {os.fspath(checkpoint_path)} was started with a "
                    f"table of {memory.describe_bytes(room)}, more than this machine "
                    f"can hold; resume it on a larger machine, or use another path"
                )
            return size, room
    return int(memory.parse_limit(limit)), None


def _has_batch(algorithm: Any) -> bool:
    """Return whether the caller chose the batch: by name, or with all settings."""
    return (
        not isinstance(algorithm, str)
        or "batch" in parse(algorithm, "algorithm").values
    )


def _largest_batch(source: Simulator, config: MCCFRConfig, free: float) -> int:
    """Return the largest batch that fits into memory with one trajectory's infosets.

    Args:
      source: Simulator of the game.
      config: Settings of the algorithm; its batch is not used.
      free: Bytes for batch and table.
    """
    actions, length = source.max_actions, source.game.max_game_length()
    states = _DEPTHS * source.state_bytes
    each = states + table_solver.batch_bytes(
        dataclasses.replace(config, batch=1), actions, length
    )
    free -= table_solver.trajectory_bytes(config, actions, length)
    largest = free // each
    if config.scheme == "external":
        # External sampling reserves a share for visits of all actions with any batch.
        free -= table_solver.BRANCHES * free
        largest = min(largest, free // states) if states else largest * (free >= 0)
    return max(0, int(largest))


def _with_batch(
    source: Simulator, task: Task, size: int, taken: int
) -> tuple[MCCFRConfig, int]:
    """Return the algorithm with a batch that fits, and the bytes for table and batch.

    If the caller did not choose a batch, it is halved until it needs at most half of
    the memory, because the memory that trajectories may need grows with the longest
    match that the game declares.

    Args:
      source: Simulator of the game.
      task: Algorithm, goal and options of the run.
      size: The memory limit in bytes.
      taken: Bytes of buckets.

    Raises:
      GameTooLargeError: If the batch does not fit; the message names the largest one
        that does.
    """
    config: MCCFRConfig = task.algorithm.simulated_config()
    free = size - memory.BASE_BYTES - taken
    if not _has_batch(task.algorithm.specification):
        # Workers are ignored here, so that the batch depends on the limit only.
        most, batch = max(1, _largest_batch(source, config, free / 2)), config.batch
        while batch > most:
            batch //= 2
        if batch < config.batch:
            announce(
                f"batch={batch}, not {config.batch}: matches may have up to "
                f"{source.game.max_game_length():,} moves, and more would not fit into "
                f"the memory limit"
            )
        config = dataclasses.replace(config, batch=batch)
    elif config.batch < table_solver.SMALL_BATCH:
        logging.warning(
            "%s: in simulated games a batch takes milliseconds, even if it is small; "
            "batch=%d wastes most of that time, use a batch such as 4096",
            config.name,
            config.batch,
        )
    if isinstance(source, Workers):
        free -= source.held_bytes
    largest = _largest_batch(source, config, free)
    if config.batch > largest:
        remedy = f"choose batch={largest} or less" if largest else "use fewer workers"
        limit = memory.describe_limit(task.options.memory_limit, size)
        raise GameTooLargeError(
            f"{limit}, which does not hold a batch of {config.batch} trajectories of "
            f"{one_line(source.game)} with up to {source.game.max_game_length():,} "
            f"moves each; raise the limit, or {remedy}"
        )
    return config, int(free) - _DEPTHS * config.batch * source.state_bytes


def make_boards(represented: Opened, task: Task) -> table_solver.TableSolver:
    """Make a solver that samples boards of a game whose hands are in buckets.

    Args:
      represented: The simulated game.
      task: Algorithm, goal and options.

    Raises:
      GameTooLargeError, ValueError: See `solve`.
    """
    if task.options.hand_buckets is None:
        raise ValueError(
            f"algorithm={task.algorithm.specification!r} samples boards for hands in "
            f"buckets; set hand_buckets (--hand-buckets), such as "
            f"'169-200-200-200' for limit hold'em"
        )
    kind, source, taken = _source(represented, task.options)
    solver = PublicChanceSolver(source, task.algorithm.config, seed=task.seed)
    _check_room(represented, task.options, taken + solver.num_bytes)
    solver.keys = kind
    return solver
