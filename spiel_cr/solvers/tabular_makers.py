"""Solvers of games that are represented in arrays, one function for each family."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import forced
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers import footprint, lp
from spiel_cr.solvers.cfr import bucket_labels, cfr
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.first_order import solvers as methods
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.locks import lock
from spiel_cr.solvers.mccfr import mccfr
from spiel_cr.solvers.mccfr.public import public_solver as public
from spiel_cr.solvers.representation import RepresentedGame
from spiel_cr.solvers.task import Task


def full_width(represented: RepresentedGame, task: Task) -> IterativeSolver:
    """Make a full-width CFR solver; see `Maker`."""
    solved = _solved_form(represented, task)
    return full_width_solver(
        solved, task.algorithm.config, dtype=task.kind, buckets=_labels(solved, task)
    )


def full_width_solver(
    solved: SolvedForm, config: Any, *, dtype: np.dtype, buckets: bucket_labels.Labels
) -> Solver:
    """Make a CFR solver; without buckets, it skips infosets with a single action.

    Args:
      solved: The represented game.
      config: The algorithm.
      dtype: Arithmetic, float64 or float32.
      buckets: For each player the bucket of each infoset, or None.
    """
    form = solved.sequence_form
    if all(labels is None for labels in buckets):
        form = forced.without(form)
    solver = cfr.make_solver(form, config=config, dtype=dtype, buckets=buckets)
    solver.solved = solved
    return solver


def first_order(represented: RepresentedGame, task: Task) -> IterativeSolver:
    """Make a solver by a first-order method; see `Maker`."""
    solved = _solved_form(represented, task)
    config, form = task.algorithm.config, forced.without(solved.sequence_form)
    solver = methods.make_solver(form, config=config, dtype=task.kind)
    solver.solved = solved
    return solver


def sampled(represented: RepresentedGame, task: Task) -> IterativeSolver:
    """Make a solver that samples histories of a game tree; see `Maker`."""
    solved = _solved_form(represented, task)
    assert isinstance(solved.game_form, GameTree)
    config = task.algorithm.config
    solver = mccfr.make_solver(
        solved.game_form,
        config=config,
        dtype=task.kind,
        seed=task.seed,
        buckets=_labels(solved, task),
    )
    return _sampling(solver, solved, task, config.batch)


def sampled_in_public(represented: RepresentedGame, task: Task) -> IterativeSolver:
    """Make a solver that samples actions of a public tree; see `Maker`."""
    solved = _solved_form(represented, task)
    assert isinstance(solved.game_form, PublicTreeGame)
    solver = public.make_solver(
        solved.game_form,
        solved.sequence_form,
        task.algorithm.config,
        dtype=task.kind,
        seed=task.seed,
        memory_limit=task.options.memory_limit,
    )
    return _sampling(solver, solved, task, 1)


def _sampling(solver: Solver, solved: SolvedForm, task: Task, batch: int) -> Solver:
    """Set what a sampling solver reports; `batch` trajectories for each player."""
    solver.solved, solver.seed = solved, task.seed
    solver.trajectories_per_iteration = 2 * batch
    return solver


def linear(represented: RepresentedGame, task: Task) -> lp.LinearSolver:
    """Make a solver by linear programming; see `Maker`."""
    solved = _solved_form(represented, task)
    if not isinstance(solved.game_form, GameTree):
        need = memory.BASE_BYTES + footprint.linear_bytes(solved.sequence_form)
        remedy = "take cfr+, or choose smaller game parameters"
        limit = task.options.memory_limit
        memory.check_need(
            f"{task.algorithm.name} on {solved.game_form.game}", need, limit, remedy
        )
    return lp.LinearSolver(solved)


def _labels(solved: SolvedForm, task: Task) -> bucket_labels.Labels:
    """Number the buckets of the options; raise ValueError if they are invalid."""
    buckets, forget = task.options.buckets, task.options.imperfect_recall
    if isinstance(solved.game_form, GameTree):
        return bucket_labels.labels_of(
            solved.game_form, buckets, imperfect_recall=forget
        )
    if not isinstance(solved.game_form, PublicTreeGame):
        return None, None  # `Task.need` rejects them
    labels = []
    for player, buckets_of_player in enumerate(bucket_labels.of_both(buckets)):
        if buckets_of_player is not None:
            # `Task.need` rejects mappings.
            assert not isinstance(buckets_of_player, Mapping)
            infosets = len(solved.sequence_form.decisions[player])
            buckets_of_player = bucket_labels.labels_by_number(
                buckets_of_player, infosets, player
            )
            _check_actions(solved.game_form, buckets_of_player, player)
        labels.append(buckets_of_player)
    return labels[0], labels[1]


def _check_actions(signals: PublicTreeGame, labels: np.ndarray, player: int) -> None:
    """Raise ValueError if a bucket contains infosets with different actions."""
    decisions = signals.public_decisions[player]
    finder = signals.finder
    kinds: dict[tuple[int, ...], int] = {}
    kind = [
        kinds.setdefault(tuple(finder.actions(node)), len(kinds))
        for node in decisions.node.tolist()
    ]
    kind_of = np.repeat(np.array(kind, np.int32), decisions.num_private_states)
    odd = kind_of != kind_of[bucket_labels.first_members(labels)[labels]]
    if odd.any():
        infoset = int(np.argmax(odd))
        usual = int(bucket_labels.first_members(labels)[labels[infoset]])
        raise ValueError(
            f"{signals.game}: infosets {usual} and {infoset} of player {player} are in "
            f"one bucket and have different legal actions; put them into buckets of "
            f"their own"
        )


def _solved_form(represented: RepresentedGame, task: Task) -> SolvedForm:
    """Return a represented game with its locks, after a check of the memory.

    Args:
      represented: The represented game.
      task: Algorithm and options.

    Raises:
      GameTooLargeError: If solving it needs more memory than the limit. For a
        public-tree game this is checked before its sequence form is built.
    """
    assert not isinstance(represented, Opened)
    # The memory of a linear program is known from a game tree, but in other forms only
    # after the sequence form is built (see `linear`).
    if isinstance(represented, GameTree) or task.algorithm.family.iterates:
        limit = task.options.memory_limit
        footprint.check(represented, task.algorithm.config, task.kind, limit)
    locks = task.options.locks
    if isinstance(represented, GameTree):
        return SolvedForm(
            represented, lock(represented.sequence_form, represented, locks)
        )
    memory.trim()
    form = lock(represented.sequence_form, represented, locks)
    solved = SolvedForm(represented, form, task.kind)
    memory.trim()
    return solved
