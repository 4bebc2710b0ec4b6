"""Makes the solver of a task on a game in its form."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.signals import public_nodes
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.stepping import key_making, recall_checks
from spiel_cr.games.stepping.simulator import Simulator
from spiel_cr.games.stepping.workers import Workers
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.result import HeldByTree
from spiel_cr.policies.signal_result import HeldBySignals
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import MCCFR, PUBLIC, SELF_PLAY, Task
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.abstraction import (
    Labels,
    first_members,
    labels_by_number,
    labels_of,
    of_both,
)
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.deep import needs
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.first_order import solvers as first_order
from spiel_cr.solvers.laying_out import STEPPED, Laid
from spiel_cr.solvers.mccfr import mccfr
from spiel_cr.solvers.mccfr.public import public_solver as public
from spiel_cr.solvers.mccfr.table.table_solver import BRANCHES, UncompiledSolver
from spiel_cr.solvers.run import Run
from spiel_cr.solvers.runs import NetworkRun, TableRun, TabularRun

# Of so many depths the states of a batch are held.
_DEPTHS = 2


def make_run(laid: Laid, task: Task) -> Run:
    """Makes the solver of a task.

    Args:
      laid: the game in its form.
      task: what is asked for, of an algorithm that iterates.

    Raises:
      GameTooLargeError: it takes more memory than the limit.
      ValueError: what is asked for does not fit the game.
    """
    family = task.algorithm.family
    if laid.form == STEPPED:
        assert isinstance(laid.game, Opened)
        if family is MCCFR:
            return _by_table(laid.game, task)
        return _by_networks(laid.game, task)
    if family.dtypes == ("float32",):
        assert isinstance(laid.game, CompiledGame)
        seal = fingerprint(laid.game)
        return NetworkRun(networks(task, laid.game), laid.game, seal)
    return _tabular_run(hold(laid, task), task)


def hold(laid: Laid, task: Task) -> HeldByTree | HeldBySignals:
    """A laid-out game as results hold it, after a check of the memory.

    Args:
      laid: the game in its form.
      task: what is asked for.

    Raises:
      GameTooLargeError: solving it takes more than the limit; of a signal game this is
        told before its form is laid out.
    """
    config, limit = task.algorithm.config, task.layout.memory_limit
    kind = np.dtype(task.dtype or task.algorithm.family.dtypes[0])
    linear = isinstance(config, str)
    assert not isinstance(laid.game, Opened)
    if isinstance(laid.game, CompiledGame) or not linear:
        footprint.check(laid.game, config, kind, limit)
    if isinstance(laid.game, CompiledGame):
        return HeldByTree(laid.game)
    memory.trim()
    held = HeldBySignals(laid.game, form_of(laid.game), kind)
    memory.trim()
    if linear:
        need = memory.BASE_BYTES + footprint.linear_bytes(held.form)
        remedy = "take cfr+, or choose smaller game parameters"
        memory.check_need(f"{config} on {held.game}", need, limit, remedy)
    return held


def _tabular_run(held: HeldByTree | HeldBySignals, task: Task) -> TabularRun:
    """Of a compiled or a signal game."""
    config, family = task.algorithm.config, task.algorithm.family
    options: dict[str, Any] = {"config": config}
    if task.dtype is not None:
        options["dtype"] = task.dtype
    if family.buckets:
        options["buckets"] = _labels(held, task)
    seed: int | None = task.seed
    batch = 0
    if family is PUBLIC:
        batch = 1
        assert isinstance(held, HeldBySignals)
        solver = public.make_solver(
            held.signals,
            config,
            dtype=held.dtype,
            seed=task.seed,
            memory_limit=task.layout.memory_limit,
        )
    elif family is MCCFR:
        assert isinstance(held, HeldByTree)
        batch = config.batch
        solver = mccfr.make_solver(held.tree, seed=task.seed, **options)
    else:
        seed = None
        make: Any = cfr.make_solver
        if not isinstance(config, CFRConfig):
            make = first_order.make_solver
        solver = make(held.form, **options)
    return TabularRun(solver, held, batch=batch, seed=seed)


def _labels(held: HeldByTree | HeldBySignals, task: Task) -> Labels:
    """Numbers the buckets that a user gave; raises ValueError."""
    buckets, forget = task.layout.buckets, task.layout.imperfect_recall
    if isinstance(held, HeldByTree):
        return labels_of(held.tree, buckets, imperfect_recall=forget)
    labels = []
    for player, given in enumerate(of_both(buckets)):
        if given is not None:
            assert not isinstance(given, Mapping)  # `Task.need` refuses them
            infosets = len(held.form.decisions[player])
            given = labels_by_number(given, infosets, player)
            _check_actions(held.signals, given, player)
        labels.append(given)
    return labels[0], labels[1]


def _check_actions(signals: SignalGame, labels: np.ndarray, player: int) -> None:
    """Raises ValueError where a bucket holds infosets with different actions."""
    decisions = public_nodes.public_decisions(signals, player)
    finder = public_nodes.Finder(signals)
    kinds: dict[tuple[int, ...], int] = {}
    kind = [
        kinds.setdefault(tuple(finder.actions(node)), len(kinds))
        for node in decisions.node.tolist()
    ]
    kind_of = np.repeat(np.array(kind, np.int32), decisions.num_signals)
    odd = kind_of != kind_of[first_members(labels)[labels]]
    if odd.any():
        infoset = int(np.argmax(odd))
        usual = int(first_members(labels)[labels[infoset]])
        raise ValueError(
            f"{signals.game}: infosets {usual} and {infoset} of player {player} are in "
            f"one bucket and have different legal actions; put them into buckets of "
            f"their own"
        )


def networks(
    task: Task, game: CompiledGame | Simulator, **knowledge: Any
) -> DeepSolver | SelfPlay:
    """The solver that trains networks.

    Args:
      task: of an algorithm that does.
      game: compiled; or a source of histories.
      **knowledge: of the source's positions, as of `DeepSolver`.

    Raises:
      ValueError, ImportError: as `DeepSolver`.
    """
    make = SelfPlay if task.algorithm.family is SELF_PLAY else DeepSolver
    return make(game, task.algorithm.config, seed=task.seed, **knowledge)


def _by_networks(opened: Opened, task: Task) -> NetworkRun:
    """Networks of a game that is not compiled."""
    config = task.algorithm.config
    use_rules = task.layout.vectorised
    way = stepped(opened.game, config.features, use_rules=use_rules)
    try:
        iterations = task.most if task.most < 2**31 - 1 else None
        limit = task.layout.memory_limit
        needs.check(config, opened.game, way.knowledge, iterations, limit)
        solver = networks(task, way.source, knowledge=way.knowledge)
        return NetworkRun(solver, None, key_making.fingerprint(way.source))
    except BaseException:
        way.source.close()
        raise


def _by_table(opened: Opened, task: Task) -> TableRun:
    """A table of a game that is not compiled."""
    layout, config = task.layout, task.algorithm.config_in(STEPPED)
    kind = key_making.kind_for(opened.game, use_rules=layout.vectorised)
    source = key_making.make_source(opened.game, kind, workers=layout.workers)
    try:
        recall_checks.check_source(source, exact=config.averaging == "exact")
        size, room = _table_room(source, config, layout.memory_limit, task.path)
        solver = UncompiledSolver(
            source,
            config,
            seed=task.seed,
            max_bytes=room,
            # Not of the room, which depends on workers, and on this process.
            branch_bytes=BRANCHES * max(0, size - memory.BASE_BYTES),
        )
        return TableRun(solver, kind, size, room)
    except BaseException:
        source.close()
        raise


def _table_room(
    source: Simulator,
    config: MCCFRConfig,
    limit: memory.Limit,
    checkpoint_path: atomic.Path | None,
) -> tuple[int, int]:
    """The limit in bytes, and what it leaves for the table and a batch.

    A resumed run has what it began with: a table of another size might be full
    elsewhere, and the bits would be others.

    Raises:
      GameTooLargeError: nothing is left.
      ValueError: the checkpoint asks for more than this machine has.
    """
    if checkpoint_path is not None and os.path.exists(checkpoint_path):
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
    taken = memory.BASE_BYTES
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
