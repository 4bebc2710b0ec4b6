"""Solving a whole game: `solve`, by the CFR family or exactly by linear programming."""

import dataclasses
import time
from typing import Any, NamedTuple

import numpy as np
from absl import logging
from tqdm import tqdm

from spiel_cr.cfr.abstraction import Buckets
from spiel_cr.cfr.config import CFRConfig, MCCFRConfig
from spiel_cr.cfr.solver import MOST_ITERATIONS, Solver
from spiel_cr.common import atomic
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import (
    check_choice,
    check_dtype,
    check_iterations,
    check_number,
    check_seed,
)
from spiel_cr.common.memory import Limit
from spiel_cr.first_order.config import FirstOrderConfig, is_first_order
from spiel_cr.policies.result import CurvePoint, Result, SolveResult
from spiel_cr.signals.finding import FORMS
from spiel_cr.signals.game import SignalGame
from spiel_cr.solving import deep_game, forms
from spiel_cr.solving.algorithms import parse_whole
from spiel_cr.solving.checkpoint import Keeper, keep_solver
from spiel_cr.solving.forms import AnyGame, Whole

_NO_LIMIT = MOST_ITERATIONS

# With `until` and no `eval_every`, NashConv is computed each time that the iterations
# have grown by this factor.
_EVALUATION_GROWTH = 1.2


def check_arguments(
    algorithm: str | CFRConfig | MCCFRConfig | FirstOrderConfig = "cfr+",
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    until: float | None = None,
    eval_every: int | None = None,
    seed: int = 0,
    dtype: np.typing.DTypeLike | None = None,
    buckets: Buckets | None = None,
    imperfect_recall: bool = False,
    form: str = "auto",
    checkpoint_path: atomic.Path | None = None,
    checkpoint_every: float = 60.0,
) -> None:
    """Refuses arguments of `solve` that no game makes right; nothing is compiled.

    Args: as of `solve`.

    Raises:
      ValueError: a bad argument.
    """
    check_seed(seed)
    goal = _Goal.of(iterations, seconds, until, eval_every)
    goal.check()
    check_number(checkpoint_every, "checkpoint_every", "(0, inf)")
    check_dtype(np.float64 if dtype is None else dtype)
    check_choice(form, "form", FORMS)
    if algorithm == "lp":
        _refuse_with_lp(goal, checkpoint_path, imperfect_recall or buckets is not None)
    else:
        parse_whole(algorithm)
    if is_first_order(algorithm) and (imperfect_recall or buckets is not None):
        raise ValueError(
            f"algorithm={algorithm!r} has no regrets that infosets could share; choose "
            f"another one such as 'cfr+', or leave out buckets and imperfect_recall"
        )


class _Goal(NamedTuple):
    """When to stop and when to evaluate; see `solve`."""

    iterations: int
    seconds: float | None
    until: float | None
    eval_every: int | None

    @classmethod
    def of(
        cls,
        iterations: int | None,
        seconds: float | None,
        until: float | None,
        eval_every: int | None,
    ) -> "_Goal":
        """With the default number of iterations where none is given."""
        if iterations is None:
            iterations = 1000 if seconds is None and until is None else _NO_LIMIT
        return cls(iterations, seconds, until, eval_every)

    def check(self) -> None:
        """Raises ValueError where a value makes no sense."""
        check_iterations(self.iterations)
        for name in ("seconds", "until"):
            value = getattr(self, name)
            if value is not None:
                check_number(value, name, "(0, inf)")
        if self.eval_every is not None:
            check_iterations(self.eval_every, name="eval_every")

    def next_evaluation(self, done: int) -> int:
        """The number of iterations at which to evaluate next."""
        # Depends on the count alone, so a resumed run stops where any other does.
        count = self.iterations
        if self.eval_every is not None:
            count = (done // self.eval_every + 1) * self.eval_every
        elif self.until is not None:
            count = 10
            while count <= done:
                count = max(count + 10, int(count * _EVALUATION_GROWTH))
        return min(self.iterations, count)

    def out_of_time(self, solver: Solver) -> bool:
        return self.seconds is not None and solver.seconds >= self.seconds


def solve(
    game: AnyGame,
    algorithm: str
    | CFRConfig
    | MCCFRConfig
    | FirstOrderConfig
    | deep_game.AnyConfig = "cfr+",
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    until: float | None = None,
    eval_every: int | None = None,
    seed: int = 0,
    dtype: np.typing.DTypeLike | None = None,
    buckets: Buckets | None = None,
    imperfect_recall: bool = False,
    form: str = "auto",
    vectorised: bool = True,
    memory_limit: Limit = None,
    cache: atomic.Path | None = None,
    checkpoint_path: atomic.Path | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> Result:
    """Solves a game with a member of the CFR family, sampled or not, or exactly.

    The run is deterministic: the same arguments (without `seconds`) give the same bits
    on the same machine, interrupted and resumed or not.

    Args:
      game: OpenSpiel game string, game, compiled game, or signal game.
      algorithm: preset and parameters, such as "cfr+", "dcfr(alpha=1.5)" or
        "evr-mccfr(batch=1024)", see `parse_any`; a first-order method such as "egt" or
        "pdhg(check=100)", see `parse_first_order`; one that trains networks, such as
        "sd-cfr(hidden=64)", see `solve_deep`, which takes over; or "lp": an
        equilibrium by linear programming, whose NashConv is at most 1e-8 of the range
        of payoffs, or what rounding leaves of the largest payoff; always in float64,
        whatever `iterations` and `dtype` say.
      iterations: how many at most; in one iteration both players are updated once, a
        sampled algorithm draws a batch of trajectories for each. By default 1000, or
        no limit where `seconds` or `until` says when to stop.
      seconds: stop after this time of iterating (what a checkpoint took included).
      until: stop when NashConv of the average strategy, in the game's units, is at
        most this.
      eval_every: compute NashConv after every N iterations, for `result.curve`.
      seed: of what is sampled; full-width algorithms sample nothing.
      dtype: arithmetic, float64 or float32. float32 takes half the memory and stalls
        earlier. By default float32 for sampled algorithms, whose noise is larger than
        its rounding, and float64 for all others.
      buckets: for each player which infosets are to share one row of regrets and play
        alike: None, numbers [I] by logical infoset, or a mapping from
        information-state strings to anything hashable (strings that are left out stay
        alone). Not for "lp". In the form of signals, infosets are numbered after
        signals that may be played alike were merged, as in the result's
        `form.decisions`; a `SignalGame` is solved as it is, so its own are numbered.
        The result is a strategy of the whole game, where its NashConv is taken, too.
      imperfect_recall: let players forget what the game's `bucket_key` leaves out;
        instead of `buckets`.
      form: "compiled": history by history; "signals": by public nodes and signals, for
        games that declare these or in which they are found; "auto": as signals where
        the game declares them and has more than a million histories or too many for
        the memory limit, else compiled. What is asked for must be possible in that
        form, too: sampling, `imperfect_recall` and buckets by string need "compiled".
      vectorised: as for `compile_game`.
      memory_limit: refuse what would take more: bytes, or a size like "3GB"; "none" or
        `math.inf`: no limit; None: 70 % of what the process may have, at least 1 GB
        (see `memory.default_limit`).
      cache: a folder in which compiled games are kept for the next time.
      checkpoint_path: a file to continue from where it exists, and to write to.
      checkpoint_every: seconds between writes; the last state is written too, also
        when the run is interrupted from the keyboard. If a write fails, a warning
        names the file and the run goes on; that of the last one is an
        `UnsavedWarning`.
      progress: show progress bars on stderr, of a long walk, too.

    Returns:
      The average and the last strategies: a `SolveResult` of a compiled game, a
      `SignalResult` of a signal game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum with perfect recall or too large,
        a bad argument, buckets of infosets with different legal actions, a checkpoint
        of another run or one that cannot be written.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
      SolverFailedError: "lp" found no equilibrium.
    """
    if deep_game.is_deep(algorithm):
        assert not isinstance(algorithm, forms.Settings)
        _refuse_with_deep(
            game,
            algorithm,
            {
                "dtype": dtype,
                "buckets": buckets,
                "imperfect_recall": imperfect_recall or None,
                "form": None if form in ("auto", "compiled") else form,
            },
        )
        assert not isinstance(game, SignalGame)
        trained = deep_game.solve_deep(
            game,
            algorithm,
            iterations,
            seconds=seconds,
            until=until,
            eval_every=eval_every,
            seed=seed,
            compile="always",
            vectorised=vectorised,
            memory_limit=memory_limit,
            cache=cache,
            checkpoint_path=checkpoint_path,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
        assert isinstance(trained, SolveResult)
        return trained
    assert not isinstance(algorithm, deep_game.AnyConfig)
    check_arguments(
        algorithm,
        iterations,
        seconds=seconds,
        until=until,
        eval_every=eval_every,
        seed=seed,
        dtype=dtype,
        buckets=buckets,
        imperfect_recall=imperfect_recall,
        form=form,
        checkpoint_path=checkpoint_path,
        checkpoint_every=checkpoint_every,
    )
    seed = check_seed(seed)
    goal = _Goal.of(iterations, seconds, until, eval_every)
    config = "lp" if algorithm == "lp" else parse_whole(algorithm)
    with atomic.reserved(checkpoint_path, "checkpoint_path"):
        started = time.perf_counter()
        chosen = forms.choose(
            game,
            form,
            config,
            buckets=buckets,
            imperfect_recall=imperfect_recall,
            vectorised=vectorised,
            memory_limit=memory_limit,
            checkpoint_path=checkpoint_path,
        )
        whole = forms.build(
            chosen,
            config,
            dtype=dtype,
            vectorised=vectorised,
            memory_limit=memory_limit,
            cache=cache,
            progress=progress,
        )
        build_seconds = time.perf_counter() - started
        asked = config
        if isinstance(asked, MCCFRConfig) and (buckets is not None or imperfect_recall):
            asked = dataclasses.replace(asked, updates="all")  # no others share regrets
        whole.check_memory(asked, dtype, memory_limit)
        if isinstance(config, str):
            return _solve_exactly(whole, build_seconds)
        options: dict[str, Any] = {"buckets": whole.labels(buckets, imperfect_recall)}
        if dtype is not None:
            options["dtype"] = dtype
        announce(f"compiling the program of {config.name}", progress=progress)
        solver = whole.make_solver(config, seed, **options)
        batch, drawn = 0, None
        if isinstance(config, MCCFRConfig):
            batch, drawn = config.batch, seed
        keeper = None
        if checkpoint_path is not None:
            keeper = keep_solver(
                checkpoint_path, whole.source, solver, checkpoint_every, seed=drawn
            )
            keeper.resume(goal.iterations)
        with tqdm(
            total=None if goal.iterations == _NO_LIMIT else goal.iterations,
            initial=solver.iterations,
            desc=config.name,
            disable=not progress,
        ) as bar:
            curve = _run(solver, goal, keeper, bar)
        return whole.result(
            solver.dtype,
            algorithm=config.name,
            iterations=solver.iterations,
            average=(solver.average_behaviour(0), solver.average_behaviour(1)),
            current=(solver.current_behaviour(0), solver.current_behaviour(1)),
            seconds=solver.seconds,
            compile_seconds=solver.compile_seconds,
            build_seconds=build_seconds,
            trajectories=2 * batch * solver.iterations,
            curve=curve,
        )


def _run(
    solver: Solver, goal: _Goal, keeper: Keeper | None, bar: tqdm
) -> tuple[CurvePoint, ...]:
    """Iterates to the goal; checkpoints on the way and at the end, however it comes."""
    curve = [] if keeper is None else keeper.curve

    def after_chunk(count: int) -> bool:
        bar.update(count)
        if keeper is not None:
            keeper.tick()
        return goal.out_of_time(solver)

    def evaluate() -> bool:
        """Adds a point to the curve where one is asked for; whether it is the goal."""
        if goal.until is None and goal.eval_every is None:
            return False
        if not curve or curve[-1].iterations < solver.iterations:
            found = solver.nash_conv()
            curve.append(CurvePoint(solver.iterations, solver.seconds, found))
        found = curve[-1].nash_conv
        bar.set_postfix(nash_conv=f"{found:.2e}")
        return goal.until is not None and found <= goal.until

    try:
        stopped = goal.out_of_time(solver)
        # A resumed run may stand where an uninterrupted one evaluated, and stopped.
        done = solver.iterations
        if done and goal.next_evaluation(done - 1) == done:
            stopped = evaluate() or stopped
        while solver.iterations < goal.iterations and not stopped:
            more = goal.next_evaluation(solver.iterations) - solver.iterations
            stopped = solver.run(more, after_chunk=after_chunk)
            stopped = evaluate() or stopped
        if solver.iterations == _NO_LIMIT and not stopped:
            logging.warning(
                "%s stops at %d iterations, the most that are counted; draw more per "
                "iteration with a larger batch",
                solver.config.name,
                _NO_LIMIT,
            )
    finally:
        if keeper is not None:
            keeper.write_last()
    return tuple(curve)


def _refuse_with_lp(
    goal: _Goal, checkpoint_path: atomic.Path | None, buckets: bool
) -> None:
    """A linear program is not iterated, and has no regrets."""
    if any(value is not None for value in (*goal[1:], checkpoint_path)):
        raise ValueError(
            "algorithm='lp' is exact and does not iterate: leave out seconds, until, "
            "eval_every and checkpoints"
        )
    if buckets:
        raise ValueError(
            "algorithm='lp' has no regrets that infosets could share; choose another "
            "one such as 'cfr+', or leave out buckets and imperfect_recall"
        )


def _refuse_with_deep(
    game: AnyGame, algorithm: str | deep_game.AnyConfig, given: dict[str, object]
) -> None:
    """Networks have float32, no buckets, and a compiled game here.

    Args:
      game: that is to be solved.
      algorithm: that trains networks.
      given: options that it does not take; None: left out.

    Raises:
      ValueError: one of them is given, or a signal game.
    """
    if isinstance(game, SignalGame):
        raise ValueError(
            f"algorithm={algorithm!r} samples histories, and signal games have none; "
            f"give the game itself, {game.game}"
        )
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r}: algorithm={algorithm!r} trains networks, which "
                f"have no such option; leave it out"
            )


def _solve_exactly(whole: Whole, build_seconds: float) -> Result:
    started = time.perf_counter()
    solution = whole.equilibrium()
    return whole.result(
        np.dtype(np.float64),
        algorithm="lp",
        iterations=solution.iterations,
        average=solution.behaviour,
        current=None,
        seconds=time.perf_counter() - started,
        compile_seconds=0.0,
        build_seconds=build_seconds,
    )
