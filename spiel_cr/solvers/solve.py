"""The function `solve`, which solves a game by any algorithm in a suitable form."""

import dataclasses
import math
import time
import warnings
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

# A limit of seconds must be positive.
_LEAST_SECONDS = 1e-3


def task_of(
    algorithm: Any = "auto",
    goal: int | Goal | None = None,
    *,
    options: GameOptions | None = None,
    checkpoint: atomic.Path | Checkpoint | None = None,
    dtype: np.typing.DTypeLike | None = None,
    seed: int = 0,
) -> Task:
    """Read and check the arguments of `solve` except the game; nothing is built.

    The arguments are those of `solve`.

    Raises:
      ValueError: If an argument is invalid for every game.
      ImportError: If networks are trained and optax is not installed.
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
    progress: bool | None = None,
) -> Result:
    """Solve a game by CFR, sampling, networks or linear programming.

    The run is deterministic: with the same arguments and without a limit on seconds,
    the result is bitwise reproducible on the same machine, even if the run was
    interrupted and resumed. If several workers simulate a game, this requires a memory
    limit and a table that is not full.

    Args:
      game: OpenSpiel game string, game, or represented game.
      algorithm: "auto" chooses an algorithm by the form and the size of the game and by
        the goal; `Result.reason` explains the choice. Otherwise a name with parameters,
        such as "cfr+", "dcfr(alpha=1.5)", "evr-mccfr(batch=1024)", "public-vr+",
        "pdhg", "sd-cfr(hidden=64)" or "mmd" (whose result is a mean of its last
        parameters), or a function, which is a custom regret rule
        (`regret_matching.CustomRule`). "lp" computes an equilibrium by linear
        programming, always in float64, whose NashConv is at most 1e-8 of the range of
        payoffs or the rounding error of the largest payoff. `algorithms.ALGORITHMS`
        lists all names.
      goal: Number of iterations, or a `Goal` with seconds, NashConv and a curve. By
        default 1000 iterations, and 100 for networks.
      options: Form of the game, buckets, node locks and memory, see `GameOptions`.
      checkpoint: Path of a file, or a `Checkpoint`. The run resumes from the file if it
        exists, and writes its state to it.
      dtype: Data type of the arithmetic, float64 or float32. float32 needs half the
        memory, and its NashConv stops falling earlier. By default float32 for sampling
        algorithms, whose noise exceeds its rounding errors, and if "auto" chooses it
        for `until` (and continues in float64 if necessary); otherwise float64.
      seed: Seed for all random choices; full-width algorithms have none.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Returns:
      The result. It has the average and the last strategy if the game's infosets are
      enumerated, otherwise the average policy.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      GameTooLargeError: If the game needs more memory than the limit.
      ValueError: If the game is not two-player zero-sum with perfect recall, an
        argument is invalid, the algorithm does not support the form or an option, or
        the checkpoint belongs to another run or cannot be written.
      InvalidGameError: If the game contradicts its declared type; the message names the
        history.
      CorruptFileError: If the checkpoint was modified since it was written.
      FileInUseError: If another run uses the checkpoint.
      SolverFailedError: If "lp" did not find an equilibrium.
      WorkerFailedError: If a worker process ended.
      ImportError: If networks are trained and optax is not installed.

    Example:
      >>> import spiel_cr
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", 1000)
      >>> result.nash_conv() < 0.001
      True
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
            program = f"compiling {task.algorithm.name}"
            announce(program, progress=progress)
        deadline = math.inf
        timed = task
        if task.goal.wall_clock is not None:
            deadline = started + task.goal.wall_clock
            left = max(deadline - time.perf_counter(), _LEAST_SECONDS)
            seconds = min(left, task.goal.seconds or math.inf)
            # "auto" plans its trials by seconds.
            goal = dataclasses.replace(task.goal, seconds=seconds)
            timed = dataclasses.replace(task, goal=goal)
        solver = timed.solver(represented)
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
                *(solver, task.goal, keeper),
                most=task.most,
                progress=progress,
                deadline=deadline,
            )
            if solver.schedule_share < 1 and stop_reason != "nash_conv":
                warnings.warn(
                    f"{solver.name} stopped ({stop_reason}) after "
                    f"{solver.schedule_share:.1%} of its schedule, so its learning "
                    f"rate is still high; use a longer run, or a smaller schedule",
                    stacklevel=3,
                )
            solution = None
            if task.algorithm.family is algorithms.AUTO:
                solution = automatic.improve(
                    solver, represented, timed, progress=progress
                )
            # This may delete the state of the solver.
            fields = solver.outcome()
            if solution is not None:
                fields |= {"average": solution.behaviour, "evaluated": None}
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
            schedule_share=solver.schedule_share,
            reason=solver.reason,
            **fields,
        )
