"""Solving a game by any algorithm, in the form that suits both: `solve`."""

import time
from typing import Any

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.common.checks import check_dtype, check_seed
from spiel_cr.common.messages import announce
from spiel_cr.games.opening.opened import Openable
from spiel_cr.policies.result import Result
from spiel_cr.solvers import algorithms, automatic
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.representation import GameOptions, represent
from spiel_cr.solvers.run import Checkpoint, Goal, drive
from spiel_cr.solvers.task import Task


def task_of(
    algorithm: Any = "auto",
    goal: int | Goal | None = None,
    *,
    options: GameOptions | None = None,
    checkpoint: atomic.Path | Checkpoint | None = None,
    dtype: np.typing.DTypeLike | None = None,
    seed: int = 0,
) -> Task:
    """Reads and checks what `solve` is asked for, but the game; nothing is compiled.

    Args: as of `solve`.

    Raises:
      ValueError: a bad argument, whatever the game.
      ImportError: optax is missing, and networks are asked for.
    """
    return Task(
        algorithms.find(algorithm),
        Goal.of(goal),
        options or GameOptions(),
        Checkpoint.of(checkpoint),
        None if dtype is None else check_dtype(dtype).name,
        check_seed(seed),
    )


def solve(
    game: Openable,
    algorithm: Any = "auto",
    goal: int | Goal | None = None,
    *,
    options: GameOptions | None = None,
    checkpoint: atomic.Path | Checkpoint | None = None,
    dtype: np.typing.DTypeLike | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Result:
    """Solves a game by any algorithm: tables, samples, networks, or exactly.

    The run is deterministic: the same arguments (without seconds) give the same bits on
    the same machine, interrupted and resumed or not; where games are stepped by several
    workers, if a memory limit is given and the table is not full.

    Args:
      game: OpenSpiel game string, game, or a represented game.
      algorithm: "auto": chosen by the form of the game, its size and the budget, see
        `automatic`; the result says which, and why. Or preset and parameters, such as
        "cfr+", "dcfr(alpha=1.5)" or "evr-mccfr(batch=1024)"; a function: a rule of
        your own, see `regret_matching.CustomRule`; a first-order method, "pdhg";
        one that samples public actions, such as "public-vr+"; one that trains networks,
        such as
        "sd-cfr(hidden=64)", or by self-play, such as "mmd", whose result is of the last
        iterates; or "lp": an equilibrium by linear programming, whose NashConv is at
        most 1e-8 of the range of payoffs, or what rounding leaves of the largest
        payoff; always in float64, whatever `goal` and `dtype` say. All of them are in
        `algorithms.ALGORITHMS`.
      goal: how many iterations, or a `Goal` with seconds, NashConv, curve; by default
        1000 iterations, of networks 100.
      options: the form of the game, buckets and memory; see `GameOptions`.
      checkpoint: the path of a file to continue from where it exists, and to write to,
        or a `Checkpoint`.
      dtype: arithmetic, float64 or float32. float32 takes half the memory and stalls
        earlier. By default float32 for sampled algorithms, whose noise is larger than
        its rounding, and where "auto" takes it for `until` (where it stalls, float64
        goes on); float64 for all others.
      seed: of what is sampled; full-width algorithms sample nothing.
      progress: show progress bars on stderr, of a long walk, too.

    Returns:
      The average and the last strategies, if the game was laid out; else a policy.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: it takes more memory than the limit.
      ValueError: the game is not two-player zero-sum with perfect recall, a bad
        argument, what the algorithm or the form cannot do, a checkpoint of another run
        or one that cannot be written.
      InvalidGameError: the game breaks what it promises; names the history.
      CorruptFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
      SolverFailedError: "lp" found no equilibrium.
      WorkerFailedError: a worker process ended.
      ImportError: optax is missing, and networks are asked for.
    """
    task = task_of(
        algorithm, goal, options=options, checkpoint=checkpoint, dtype=dtype, seed=seed
    )
    with atomic.reserved(task.path, "checkpoint_path"):
        started = time.perf_counter()
        represented, _ = represent(game, task.options, task.need(), progress=progress)
        if task.algorithm.family is algorithms.AUTO:
            announce("choosing an algorithm", progress=progress)
        elif task.algorithm.family.iterates:
            program = f"compiling the program of {task.algorithm.name}"
            announce(program, progress=progress)
        solver = task.solver(represented)
        trial_seconds = solver.seconds
        if solver.reason:
            announce(f"algorithm {solver.name}: {solver.reason}", progress=progress)
        try:
            keeper = None
            if task.checkpoint is not None:
                identity = {"kind": "checkpoint", **solver.identity()}
                every = task.checkpoint.every
                keeper = Keeper(task.checkpoint.path, identity, solver, every)
                if not keeper.resume(task.most):
                    keeper.curve[:] = solver.curve
            building = time.perf_counter() - started - solver.compile_seconds
            solver, curve, stop_reason = drive(
                solver, task.goal, keeper, most=task.most, progress=progress
            )
            fields = solver.outcome()
            if task.algorithm.family is algorithms.AUTO:
                solution = automatic.improve(
                    solver, represented, task, progress=progress
                )
                if solution is not None:
                    fields["average"] = solution.behaviour
        finally:
            solver.close()
        specification = task.algorithm.specification
        chosen = solver.reason or not isinstance(specification, str)
        return Result(
            algorithm=solver.name if chosen else specification,
            iterations=solver.iterations,
            seconds=solver.seconds,
            build_seconds=building - trial_seconds,
            curve=curve,
            stop_reason=stop_reason,
            reason=solver.reason,
            **fields,
        )
