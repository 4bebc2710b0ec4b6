"""Makers of solvers for games that are represented in arrays, one for each family."""

import dataclasses
from typing import Any

import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.public_tree import public_tree_footprint
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import forced
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers import footprint, lp
from spiel_cr.solvers.cfr import board_arrays, board_values, bucket_labels, cfr
from spiel_cr.solvers.cfr import board_solver as boards
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.first_order import solvers as methods
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.locks import solved_form
from spiel_cr.solvers.mccfr import mccfr
from spiel_cr.solvers.mccfr.public import public_solver as public
from spiel_cr.solvers.task import Task


def full_width(represented: HasSequenceForm, task: Task) -> IterativeSolver:
    """Make a full-width CFR solver; see `Maker`."""
    solved = _solved_form(represented, task)
    return full_width_solver(
        solved, task.algorithm.config, dtype=task.kind, buckets=_labels(solved, task)
    )


def full_width_in_public(represented: PublicTreeGame, task: Task) -> IterativeSolver:
    """Make a full-width CFR solver for a public tree; see `Maker`."""
    config = task.algorithm.config
    suits = boards.supports(config) and board_arrays.suits(represented)
    if not suits or task.options.buckets is not None:
        return full_width(represented, task)
    need = public_tree_footprint.board_bytes(represented, task.kind)
    solved = _solved_form(represented, task, need)
    solver = boards.make_solver(
        represented, solved.sequence_form, config=config, dtype=task.kind
    )
    if solver is None:
        return full_width(represented, task)
    evaluator = board_values.BoardValues(solver.engine)
    form = dataclasses.replace(solved.sequence_form, evaluator=evaluator)
    solver.solved = solved._replace(sequence_form=form)
    return solver


def full_width_solver(
    solved: SolvedForm, config: Any, *, dtype: np.dtype, buckets: bucket_labels.Labels
) -> Solver:
    """Make a CFR solver; without buckets, it skips infosets with a single action.

    Args:
      solved: The represented game.
      config: The algorithm.
      dtype: Arithmetic, float64 or float32.
      buckets: Bucket of each infoset for each player, int32 [I], or None.
    """
    form = solved.sequence_form
    if all(labels is None for labels in buckets):
        form = forced.without(form)
    solver = cfr.make_solver(form, config=config, dtype=dtype, buckets=buckets)
    solver.solved = solved
    return solver


def first_order(represented: HasSequenceForm, task: Task) -> IterativeSolver:
    """Make a solver by a first-order method; see `Maker`."""
    solved = _solved_form(represented, task)
    config, form = task.algorithm.config, forced.without(solved.sequence_form)
    solver = methods.make_solver(form, config=config, dtype=task.kind)
    solver.solved = solved
    return solver


def sampled(represented: GameTree, task: Task) -> IterativeSolver:
    """Make a solver that samples histories of a game tree; see `Maker`."""
    solved, config = _solved_form(represented, task), task.algorithm.config
    solver = mccfr.make_solver(
        represented,
        config=config,
        dtype=task.kind,
        seed=task.seed,
        buckets=_labels(solved, task),
    )
    return _sampling(solver, solved, task, config.batch)


def sampled_in_public(represented: PublicTreeGame, task: Task) -> IterativeSolver:
    """Make a solver that samples actions of a public tree; see `Maker`."""
    solved = _solved_form(represented, task)
    solver = public.make_solver(
        represented,
        solved.sequence_form,
        task.algorithm.config,
        dtype=task.kind,
        seed=task.seed,
        memory_limit=task.options.memory_limit,
    )
    return _sampling(solver, solved, task, 1)


def _sampling(solver: Solver, solved: SolvedForm, task: Task, batch: int) -> Solver:
    """Set the seed, and the number of trajectories per player, of a sampling solver."""
    solver.solved, solver.seed = solved, task.seed
    solver.trajectories_per_iteration = 2 * batch
    return solver


def linear(represented: HasSequenceForm, task: Task) -> lp.LinearSolver:
    """Make a solver by linear programming; see `Maker`."""
    return lp.LinearSolver(_solved_form(represented, task))


def _labels(solved: SolvedForm, task: Task) -> bucket_labels.Labels:
    """Number the buckets of the options; raise ValueError if they are invalid."""
    buckets, forget = task.options.buckets, task.options.imperfect_recall
    # `Task.need` rejects forms without buckets, and mappings for public trees.
    form: Any = solved.game_form
    return bucket_labels.labels_of(form, buckets, imperfect_recall=forget)


def _solved_form(
    represented: HasSequenceForm, task: Task, need: float | None = None
) -> SolvedForm:
    """Return a represented game with its locks, after a check of the memory.

    Args:
      represented: The represented game.
      task: Algorithm and options.
      need: Memory that solving takes; see `footprint.check`.

    Raises:
      GameTooLargeError: If solving it needs more memory than the limit. For a
        public-tree game this is checked before its sequence form is built, unless a
        linear program is to be solved, whose memory depends on the payoffs.
    """
    options, config = task.options, task.algorithm.config
    footprint.check(represented, config, task.kind, options.memory_limit, need=need)
    memory.trim()
    solved = solved_form(represented, options.locks, task.kind)
    memory.trim()
    return solved
