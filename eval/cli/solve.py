"""The command `solve`; the options and the report that it shares with `resolve`."""

import argparse
import dataclasses
import sys
import time
from typing import Any

import pyspiel

import spiel_cr
from spiel_cr.common import atomic, memory
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.first_order.config import PRESETS as FIRST_ORDER
from spiel_cr.policies.result import Result
from spiel_cr.signals.finding import FORMS, naming_signals
from spiel_cr.signals.result import SignalResult
from spiel_cr.solving import deep_game, footprint, forms, whole_game
from spiel_cr.solving.algorithms import parse_whole
from spiel_cr.uncompiled.workers import MOST_WORKERS

from ..common.plurals import counted
from ..judging import python_judge
from ..reporting import plots
from .command import Commands, add_command, given, option, path_value, writing
from .solving import deep as solve_deep
from .solving import uncompiled as solve_uncompiled

COMPILE = ("auto", "always", "never")


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "solve a game by CFR, sampled CFR, networks, or linear programming"
    parser = add_command(commands, "solve", _solve, text, resumes=True)
    option(parser, "--game")
    add_solver_options(parser)
    text = "stop after this many seconds of iterating"
    option(parser, "--seconds", text, type=float)
    text = "stop at this NashConv"
    option(parser, "--until", text, type=float, metavar="NASH_CONV")
    text = "compute NashConv every N iterations; the points are in the JSON"
    option(parser, "--eval-every", text, type=int, metavar="N")
    option(parser, "--plot", "draw these points (png, svg or pdf)")
    option(
        parser,
        "--compile",
        "never: sample without laying out the game's tree, on a table that grows (for "
        "algorithms that sample); auto: so where the tree does not fit into "
        "--memory-limit, and where --checkpoint was begun so; always: refuse such "
        "games",
        "auto",
        choices=COMPILE,
    )
    text = "processes that step OpenSpiel's states, where the game is not compiled"
    option(parser, "--workers", text, 1, metavar="N")
    option(
        parser,
        "--no-vectorised",
        "step OpenSpiel's states though the game has rules on arrays",
        action="store_true",
    )
    text = "continue from this file if it exists, and write the state to it"
    option(parser, "--checkpoint", text, metavar="PATH", type=path_value)
    text = "time between two writes"
    option(parser, "--checkpoint-every", text, 60.0, metavar="SECONDS")
    option(
        parser,
        "--imperfect-recall",
        "let players forget what the game's bucket_key leaves out: such infosets share "
        "regrets; NashConv stays that of the whole game",
        action="store_true",
    )


def add_solver_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `solve` and `resolve`."""
    option(
        parser,
        "--algorithm",
        f"one of {', '.join(spiel_cr.PRESETS)}, with parameters if you like: "
        f"'dcfr(alpha=1.5,beta=0,gamma=2)'; solve also takes "
        f"{', '.join(spiel_cr.SAMPLED_PRESETS)}, which sample, as in "
        f"'evr-mccfr(epsilon=0.6,baseline=average,decay=0.5,batch=1024)', "
        f"{', '.join(FIRST_ORDER)}, first-order methods on the whole game, "
        f"{', '.join(deep_game.ALGORITHMS)}, which train networks, as in "
        f"'sd-cfr(hidden=64,traversals=1000)', and lp, linear programming, exact up to "
        f"rounding",
        "cfr+",
    )
    option(
        parser,
        "--iterations",
        "iterations of every solve; of an algorithm that samples, each is a batch for "
        "each player (default 1000; solve with --seconds or --until goes on until "
        "then)",
    )
    option(
        parser,
        "--dtype",
        "arithmetic; float32 stalls earlier (default float64, float32 for algorithms "
        "that sample)",
        choices=("float64", "float32"),
    )
    option(
        parser,
        "--form",
        "compiled: history by history; signals: by public nodes and what cards tell, "
        "for games whose actions are public; auto: signals where the game declares "
        "them and has more than a million histories, or too many for --memory-limit, "
        "or lists deals of probability zero",
        "auto",
        choices=FORMS,
    )
    option(parser, "--memory-limit")
    option(parser, "--cache")
    option(
        parser,
        "--save",
        "write the policy to this .npz file",
        metavar="PATH",
        type=path_value,
    )
    option(
        parser,
        "--judge",
        "who computes exact NashConv at the end: OpenSpiel's Python tool, or our own "
        "best response, for games where that tool would take minutes to days; auto: "
        "OpenSpiel up to half a million histories",
        "auto",
        choices=python_judge.JUDGES,
    )
    option(parser, "--seed", "seed of whatever is sampled; CFR itself samples nothing")


def _solve(arguments: argparse.Namespace) -> dict[str, object]:
    check_whole(arguments.workers, "workers", 1, MOST_WORKERS)
    if arguments.compile == "always" and arguments.workers > 1:
        raise ValueError(
            f"--workers {arguments.workers} are for games that are not compiled; leave "
            f"them out, or give --compile never"
        )
    if arguments.form != "auto" and arguments.compile == "never":
        raise ValueError(
            f"--form {arguments.form} solves the whole game, and --compile never "
            f"samples it without; leave one of them out"
        )
    if arguments.form == "signals" and arguments.compile == "always":
        raise ValueError(
            "--form signals does not compile the game; leave --compile always out"
        )
    if deep_game.is_deep(arguments.algorithm):
        return solve_deep.solve(arguments, report_result)
    kept = solve_uncompiled.is_sampled(arguments.checkpoint)
    _check_checkpoint(arguments, kept)
    if arguments.compile == "never" or kept:
        return solve_uncompiled.solve(arguments)
    try:
        return _solve_whole(arguments)
    except GameTooLargeError as error:
        if arguments.compile == "always":
            raise
        why_not = solve_uncompiled.why_not(arguments)
        if kept is False:
            why_not = f"the checkpoint {arguments.checkpoint} is of the compiled game"
        if why_not is not None:
            raise GameTooLargeError(
                f"{error}; here it cannot be sampled without compiling: {why_not}"
            ) from error
        why = str(error).partition(";")[0]
        print(f"sampled without compiling: {why}", file=sys.stderr)
    return solve_uncompiled.solve(arguments)


def _check_checkpoint(arguments: argparse.Namespace, kept: bool | None) -> None:
    """Refuses a checkpoint that cannot be gone on with in the way that is asked for.

    Args:
      arguments: of the command.
      kept: whether the checkpoint is of sampling without compiling; None: there is
        none.

    Raises:
      ValueError: the game is to be compiled, and was not; or the other way round.
    """
    began = f"the checkpoint {arguments.checkpoint} was begun"
    for flag in ("--compile always", "--form compiled", "--form signals"):
        name, value = flag.removeprefix("--").split()
        if kept and getattr(arguments, name) == value:
            raise ValueError(
                f"{began} without compiling the game; leave {flag} out, or give "
                f"another path"
            )
    if kept is False and arguments.compile == "never":
        raise ValueError(
            f"{began} on the compiled game; leave --compile never out, or give another "
            f"path"
        )
    if kept:
        why_not = solve_uncompiled.why_not(arguments)
        if why_not is not None:
            raise ValueError(
                f"{began} without compiling the game, and so it goes on: {why_not}"
            )


def _solve_whole(arguments: argparse.Namespace) -> dict[str, object]:
    """Solves the game in the form that it is best solved in, and judges the result."""
    if arguments.plot:
        if not (arguments.eval_every or arguments.until):
            raise ValueError("--plot needs points to draw; add --eval-every N")
        plots.check(arguments.plot)
    how: dict[str, Any] = {
        **given(arguments, "algorithm", "iterations", "seconds", "until", "eval_every"),
        **given(arguments, "seed", "dtype", "imperfect_recall", "checkpoint_every"),
        "checkpoint_path": arguments.checkpoint,
    }
    # Both before the game is walked for the judge; `solve` checks and reserves, too.
    whole_game.check_arguments(**how)
    with atomic.reserved(arguments.checkpoint, "checkpoint_path"):
        pass
    how["vectorised"] = not arguments.no_vectorised
    started = time.perf_counter()
    always = arguments.form == "auto" and arguments.compile == "always"
    chosen = choose_form(
        arguments.game,
        "compiled" if always else arguments.form,
        "lp" if arguments.algorithm == "lp" else parse_whole(arguments.algorithm),
        judge=arguments.judge,
        imperfect_recall=arguments.imperfect_recall,
        vectorised=not arguments.no_vectorised,
        memory_limit=arguments.memory_limit,
        checkpoint_path=arguments.checkpoint,
    )
    how["form"] = chosen.form
    game: forms.AnyGame = chosen.game
    if chosen.form == "compiled":
        game = game_to_judge(arguments.game, arguments, vectorised=how["vectorised"])
    walking = time.perf_counter() - started
    result = spiel_cr.solve(
        game, progress=True, **how, **given(arguments, "cache", "memory_limit")
    )
    result = dataclasses.replace(result, build_seconds=result.build_seconds + walking)
    report = report_result(arguments.game, result, arguments)
    report |= {"form": chosen.form, "compiled": chosen.form == "compiled"}
    if result.curve:
        report["curve"] = [point._asdict() for point in result.curve]
    if arguments.plot:
        title = f"{arguments.game}, {result.algorithm}"
        with writing(arguments):
            curves = {result.algorithm: result.curve}
            plots.plot_curves(curves, arguments.plot, title=title)
            print(f"  plot        {arguments.plot}")
    return report


def choose_form(
    game: str, form: str, algorithm: forms.Algorithm, *, judge: str, **how: Any
) -> forms.Choice:
    """Chooses a form, and says so where there was a choice.

    Args:
      game: as the user wrote it.
      form: as of `forms.choose`, and so are all others.
      judge: who judges what comes out.

    Raises:
      ValueError: OpenSpiel is to judge what it cannot; and as `forms.choose`.
    """
    chosen = forms.choose(game, form, algorithm, **how)
    if chosen.why:
        print(f"--form {chosen.form}: {chosen.why}", file=sys.stderr)
    if chosen.form == "signals" and judge == "openspiel":
        assert isinstance(chosen.game, pyspiel.Game)
        python_judge.check_signals(chosen.game)
    return chosen


def game_to_judge(
    game: str,
    arguments: argparse.Namespace,
    *,
    observations: bool = False,
    vectorised: bool = True,
) -> Game:
    """The game; compiled where OpenSpiel is to judge it and may take too much memory.

    Args:
      game: as the user wrote it.
      arguments: those of `add_solver_options`.
      observations: as for `spiel_cr.compile_game`, and so is the other.

    Raises:
      GameTooLargeError: OpenSpiel's judge takes more than the limit.
    """
    if arguments.judge != "openspiel":
        return game
    with naming_signals(game):
        tree = as_compiled(
            game,
            observations=observations,
            vectorised=vectorised,
            progress=True,
            **given(arguments, "memory_limit", "cache"),
        )
    algorithm = arguments.algorithm
    config = algorithm if algorithm == "lp" else parse_whole(algorithm)
    solving = footprint.peak_bytes(tree, config, arguments.dtype)
    python_judge.check_memory(tree, arguments.memory_limit, before=solving)
    return tree


def report_result(
    game: str, result: Result, arguments: argparse.Namespace
) -> dict[str, object]:
    """Saves and judges a result, prints it for people, returns it for programs.

    Args:
      game: as the user wrote it.
      result: of `solve` or `resolve`.
      arguments: those of `add_solver_options`.

    Raises:
      ValueError, pyspiel.SpielError: it cannot be judged; what was saved is kept, and
        stderr says where.
    """
    saved = False
    if arguments.save:
        with writing(arguments):
            result.save(arguments.save)
            saved = True
    verdict = None
    announce("judging")
    started = time.perf_counter()
    try:
        verdict = python_judge.judge_result(
            result, arguments.judge, memory_limit=arguments.memory_limit
        )
    finally:
        if verdict is None and saved:  # an interrupt, too
            print(f"the policy was saved in {arguments.save}", file=sys.stderr)
    judging = time.perf_counter() - started
    peak = memory.peak_bytes()
    report: dict[str, object] = {
        "game": game,
        "algorithm": result.algorithm,
        "iterations": result.iterations,
        "trajectories": result.trajectories,
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        "judge": verdict.by,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "build_seconds": result.build_seconds,
        "judge_seconds": judging,
        "iterations_per_second": result.iterations_per_second,
        "peak_memory_bytes": peak,
    }
    print(
        f"{game}, {result.algorithm}, {counted(result.iterations, 'iteration')}", end=""
    )
    if result.trajectories:
        print(f", {counted(result.trajectories, 'trajectory', 'trajectories')}", end="")
    print(f" in each of {result.solves} solves" if result.solves > 1 else "")
    tool = "OpenSpiel, exact" if verdict.by == "openspiel" else "spiel_cr, exact"
    if verdict.by == "spiel_cr" and isinstance(result, SignalResult):
        tool += ", by a best response on the signal form"
    print(f"  NashConv    {verdict.nash_conv:.3e}  ({tool})")
    print(f"  game value  {verdict.game_value:+.6f}  (player 0, under this policy)")
    if verdict.bounds is not None:
        report["value_bounds"] = verdict.bounds
        low, high = verdict.bounds
        print(f"              in [{low:+.6f}, {high:+.6f}] for the game itself")
    print(
        f"  solving     {result.seconds:.2f} s, "
        f"{_rate(result.iterations_per_second)} iterations/s; "
        f"jit {result.compile_seconds:.1f} s, building {result.build_seconds:.1f} s, "
        f"judging {judging:.1f} s; peak memory {peak / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {arguments.save}")
    return report


def _rate(each_second: float) -> str:
    return f"{each_second:,.0f}" if each_second >= 10 else f"{each_second:.2g}"
