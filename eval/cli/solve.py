"""The command `solve`; the options and the report that it shares with `resolve`."""

import dataclasses
import sys
import time
from typing import Any

import spiel_cr
from spiel_cr.common import atomic, figures, memory
from spiel_cr.common.checks import check_number
from spiel_cr.common.messages import announce, one_line
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import Result
from spiel_cr.solvers import algorithms, automatic, footprint, representation
from spiel_cr.solvers.locks import Locks, read_locks
from spiel_cr.solvers.solve import task_of
from spiel_cr.solvers.task import Family

from ..common.plurals import counted
from .command import Arguments, Commands, Parser, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "solve a game by CFR, sampled CFR, networks, or linear programming"
    parser = add_command(commands, "solve", _solve, text, resumes=True)
    parser.option("--game")
    add_solver_options(parser)
    add_form_option(parser, simulator=True)
    add_run_options(parser)
    parser.option(
        "--hand-buckets",
        "let players know no more of their cards than the bucket that they are in, at "
        "most so many in each round, as in 169-200-200-200: of limit hold'em, for "
        "algorithms that sample without compiling (pcs, es-mccfr(averaging=sampled))",
        metavar="N-N-N-N",
    )
    text = "processes that step OpenSpiel's states, where the game is not compiled"
    parser.option("--workers", text, 1)
    parser.option(
        "--no-batched-rules",
        "step OpenSpiel's states though the game has batched rules",
        action="store_true",
    )
    parser.option(
        "--imperfect-recall",
        "let players forget what the game's bucket_key leaves out: such infosets share "
        "regrets; NashConv stays that of the whole game",
        action="store_true",
    )


def add_run_options(parser: Parser, plot: str = "") -> None:
    """Adds when a solve ends, and what is kept of it on the way.

    Args:
      parser: of the command.
      plot: help of --plot, where there is more to say.
    """
    parser.option("--seconds", "stop after this many seconds of iterating", type=float)
    text = "stop at this NashConv (if strategies are locked: NashConv with locks)"
    parser.option("--until", text, type=float, metavar="NASH_CONV")
    text = "compute NashConv every N iterations; the points are in the JSON"
    parser.option("--eval-every", text, type=int)
    parser.option("--plot", plot or "draw the curve of these points (png, svg or pdf)")
    text = "continue from this file if it exists, and write the state to it"
    parser.option("--checkpoint", text)
    text = "time between two writes"
    parser.option("--checkpoint-every", text, 60.0, metavar="SECONDS")


def _names(family: Family) -> str:
    return ", ".join(family.presets)


def add_solver_options(parser: Parser, algorithm: str = "auto") -> None:
    """Adds the options of `solve`, `resolve` and `spot`.

    Args:
      parser: of the command.
      algorithm: the default.
    """
    parser.option(
        "--algorithm",
        f"auto: chosen by the form of the game, its size, the budget and a trial, and "
        f"said with its reason (in solves of subgames "
        f"{' or '.join(automatic.OF_SUBGAMES.values())}); "
        f"or one of {_names(algorithms.CFR)}, with parameters if you like: "
        f"'dcfr(alpha=1.5,beta=0,gamma=2)'; solve also takes "
        f"{_names(algorithms.MCCFR)}, which sample, as in "
        f"'evr-mccfr(epsilon=0.6,baseline=average,decay=0.5,batch=1024)', "
        f"{_names(algorithms.BOARDS)}, which samples boards (see --hand-buckets), "
        f"{_names(algorithms.PUBLIC)}, which sample public actions and cards of games "
        f"that declare signals, "
        f"{_names(algorithms.FIRST_ORDER)}, a first-order method on the whole game, "
        f"{_names(algorithms.DEEP)}, {_names(algorithms.SELF_PLAY)}, which train "
        f"networks, as in 'sd-cfr(hidden=64,traversals=1000)', and lp, linear "
        f"programming, exact up to rounding",
        algorithm,
    )
    parser.option(
        "--iterations",
        "iterations of every solve; of an algorithm that samples, each is a batch for "
        "each player (default 1000; solve with --seconds or --until goes on until "
        "then)",
    )
    parser.option(
        "--dtype",
        "arithmetic; float32 stalls earlier (default float64; float32 for algorithms "
        "that sample, and where auto takes it for --until)",
        choices=("float64", "float32"),
    )
    parser.option(
        "--lock",
        "keep these strategies as they are, and solve the rest against them: JSON of "
        "infosets and probabilities, or a file with that, or a policy (.npz)",
        metavar="JSON|FILE",
    )
    text = "whose strategy is taken from the policy of --lock"
    parser.option("--lock-player", text, type=int, choices=(0, 1))
    parser.option("--memory-limit")
    parser.option("--cache")
    parser.option("--save", "write the policy to this .npz file")
    parser.option(
        "--evaluator",
        "who computes exact NashConv at the end: OpenSpiel's Python tool, or our own "
        "best response, for games where that tool would take minutes to days; auto: "
        "OpenSpiel up to half a million histories",
        "auto",
        choices=openspiel_evaluator.EVALUATORS,
    )
    parser.option("--seed", "seed of whatever is sampled; CFR itself samples nothing")


def add_form_option(parser: Parser, *, simulator: bool = False) -> None:
    """Add --form.

    Args:
      parser: Parser of the command.
      simulator: Whether the command can sample a game without building its tree.
    """
    text = (
        "tree: every history in arrays; public-tree: public actions and private "
        "states, for games that declare them; phantom: sequences of successful moves, "
        "for phantom games that declare them; auto: public-tree or phantom if the game "
        "declares it and has more than a million histories, too many for "
        "--memory-limit, or deals of probability zero; otherwise tree"
    )
    choices: tuple[str, ...] = representation.BUILT
    if simulator:
        choices = representation.FORMS
        text += (
            ", or simulator if the tree does not fit into --memory-limit; simulator: "
            "no tree, for algorithms that sample; the strategy is a growing table"
        )
    parser.option("--form", text, "auto", choices=choices)


def _solve(arguments: Arguments) -> dict[str, object]:
    return solve_game(arguments)[0]


def solve_game(arguments: Arguments) -> tuple[dict[str, object], Result]:
    """Lays the game out, solves it, and judges what comes out where that is known.

    Args:
      arguments: those of `add`.

    Returns:
      The report for programs, and the result.
    """
    if arguments.plot:
        if not (arguments.eval_every or arguments.until):
            raise ValueError("--plot needs points to draw; add --eval-every N")
        figures.check(arguments.plot)
    how: dict[str, Any] = {
        "goal": spiel_cr.Goal(
            **arguments.given("iterations", "seconds", "until", "eval_every")
        ),
        "options": _layout(arguments),
        "checkpoint": _checkpoint(arguments),
        **arguments.given("algorithm", "seed", "dtype"),
    }
    task = task_of(**how)
    with atomic.reserved(arguments.checkpoint, "checkpoint_path"):
        pass  # before the game is walked; `solve` reserves it, too
    started = time.perf_counter()
    need = task.need()
    game, reason = representation.represent(
        arguments.game, task.options, need, progress=True
    )
    say_form(game, reason, arguments)
    walking = time.perf_counter() - started
    result = spiel_cr.solve(game, progress=True, **how)
    result = dataclasses.replace(result, build_seconds=result.build_seconds + walking)
    if reason.form == representation.SIMULATOR:
        return _report_stepped(arguments, result), result
    report = report_result(arguments.game, result, arguments)
    report["form"] = reason.form
    if result.curve:
        report["curve"] = [point.as_json() for point in result.curve]
    if arguments.plot:
        title = f"{arguments.game}, {result.algorithm}"
        with arguments.writing():
            spiel_cr.plot(result, arguments.plot, title=title)
            print(f"  plot        {one_line(arguments.plot)}")
    return report, result


def _layout(arguments: Arguments) -> spiel_cr.GameOptions:
    """Read the options of the game's form."""
    form = arguments.form
    if form == representation.SIMULATOR and arguments.evaluator != "auto":
        raise ValueError(
            f"--evaluator {arguments.evaluator} needs a game tree; leave it out, or "
            f"leave --form simulator out"
        )
    return spiel_cr.GameOptions(
        form,
        locks=given_locks(arguments),
        batched_rules=not arguments.no_batched_rules,
        imperfect_recall=arguments.imperfect_recall,
        **arguments.given("workers", "memory_limit", "cache", "hand_buckets"),
    )


def given_locks(arguments: Arguments) -> Locks | None:
    """What --lock says, if it is given."""
    if not arguments.lock:
        return None
    return read_locks(arguments.lock, arguments.lock_player)


def _checkpoint(arguments: Arguments) -> spiel_cr.Checkpoint | None:
    check_number(arguments.checkpoint_every, "checkpoint_every", "(0, inf)")
    if arguments.checkpoint is None:
        return None
    return spiel_cr.Checkpoint(arguments.checkpoint, arguments.checkpoint_every)


def say_form(
    game: representation.RepresentedGame,
    reason: representation.Reason,
    arguments: Arguments,
) -> None:
    """Says which form a game has where there was a choice, and who cannot judge it.

    Args:
      game: The represented game.
      reason: Why it has this form.
      arguments: those of `add_solver_options`.

    Raises:
      GameTooLargeError: OpenSpiel's evaluation takes more than the limit.
      ValueError: OpenSpiel cannot evaluate this game.
    """
    if reason.text:
        print(f"--form {reason.form}: {one_line(reason.text)}", file=sys.stderr)
    if arguments.evaluator != "openspiel":
        return
    if reason.form == representation.SIMULATOR:
        raise ValueError(
            "--evaluator openspiel needs the compiled game, and it is too large; "
            "leave it out"
        )
    if isinstance(game, GameTree):
        config = algorithms.find(arguments.algorithm).config
        config = None if config == "auto" else config
        solving = footprint.peak_bytes(game, config, arguments.dtype)
        limit = arguments.memory_limit
        openspiel_evaluator.check_memory(game, limit, before=solving)
    else:
        openspiel_evaluator.check_public_tree(game.game)


# Of every result, as `--json` names it.
_FACTS = (
    "algorithm",
    "reason",
    "stop_reason",
    "iterations",
    "trajectories",
    "seconds",
    "build_seconds",
)


def _facts(game: str, result: Result) -> dict[str, object]:
    """What there is to say of a result of any form, for programs."""
    return {
        "game": game,
        **{name: getattr(result, name) for name in _FACTS},
        "peak_memory_bytes": memory.peak_bytes(),
    }


def _head(game: str, result: Result) -> str:
    """The same for people."""
    head = one_line(f"{game}, {result.algorithm}")
    head += f", {counted(result.iterations, 'iteration')}"
    if result.trajectories:
        head += f", {counted(result.trajectories, 'trajectory', 'trajectories')}"
    return head


def _saved(arguments: Arguments, result: Result) -> bool:
    """Whether the policy was asked for, and could be written."""
    if not arguments.save:
        return False
    with arguments.writing():
        result.save(arguments.save)
        arguments.saved = True
        return True
    return False


def _report_stepped(arguments: Arguments, result: Result) -> dict[str, object]:
    """Saves the result of a game that was not laid out, and says what there is to say.

    Nobody knows its NashConv.
    """
    saved = _saved(arguments, result)
    print(f"{_head(arguments.game, result)}, not compiled")
    report = {
        **_facts(arguments.game, result),
        "form": representation.SIMULATOR,
        "trajectories_per_second": result.trajectories_per_second,
    }
    what, speed = "sampling", f"{result.trajectories_per_second:,.0f} trajectories/s"
    if result.table is not None:
        table = result.table
        share = table.known / table.met if table.met else None  # JSON has no NaN
        full = "; full, so some were left out" if table.full else ""
        if table.batch is not None:
            print(f"  batch       {table.batch:,} trajectories for each player")
        print(f"  infosets    {table.infosets:,}, by {table.keys}")
        if share is not None:
            print(
                f"  known       {share:.1%} of decisions met had a row before\n"
                f"  table       {table.bytes / 1e6:,.0f} of {table.limit / 1e6:,.0f} MB"
                f"{full}"
            )
        report |= {
            "workers": arguments.workers,
            "infosets": table.infosets,
            "keys": table.keys,
            "batch": table.batch,
            "table_bytes": table.bytes,
            "table_limit": table.limit,
            "full": table.full,
            "known_share": share,
        }
    if result.nodes is not None:
        rate = result.nodes / result.seconds if result.seconds else 0.0
        what, speed = (
            "training",
            f"{result.nodes:,} nodes, {rate:,.0f} nodes/s with all fits",
        )
        report["nodes"] = result.nodes
    print(
        f"  {what}    {result.seconds:.2f} s, {speed}; building "
        f"{result.build_seconds:.1f} s; peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {one_line(arguments.save)}")
    return report


def report_result(game: str, result: Result, arguments: Arguments) -> dict[str, object]:
    """Save and evaluate a result, print it, and return it as a dict.

    Args:
      game: as the user wrote it.
      result: of `solve` or `resolve`.
      arguments: those of `add_solver_options`.

    Raises:
      ValueError, pyspiel.SpielError: it cannot be evaluated; what was saved is kept,
        and stderr says where.
    """
    saved, evaluation = _saved(arguments, result), None
    announce("evaluating")
    started = time.perf_counter()
    try:
        evaluation = openspiel_evaluator.evaluate_result(
            result, arguments.evaluator, memory_limit=arguments.memory_limit
        )
    finally:
        if evaluation is None and saved:  # an interrupt, too
            print(
                f"the policy was saved in {one_line(arguments.save)}", file=sys.stderr
            )
    seconds = time.perf_counter() - started
    report = {
        **_facts(game, result),
        "nash_conv": evaluation.nash_conv,
        "game_value": evaluation.game_value,
        "evaluator": evaluation.evaluator,
        "compile_seconds": result.compile_seconds,
        "evaluation_seconds": seconds,
        "iterations_per_second": result.iterations_per_second,
    }
    each = f" in each of {result.solves} solves" if result.solves > 1 else ""
    print(f"{_head(game, result)}{each}")
    by_openspiel = evaluation.evaluator == "openspiel"
    tool = "OpenSpiel, exact" if by_openspiel else "spiel_cr, exact"
    if not by_openspiel and result.game_form is not None and result.tree is None:
        tool += f", by a best response on the {result.game_form.kind} form"
    assert evaluation.game_value is not None
    low, high = utility_bounds(result.game) or (0.0, 0.0)
    rounding = sys.float_info.epsilon * (high - low)
    print(f"  NashConv    {_above(rounding, evaluation.nash_conv):.3e}  ({tool})")
    print(f"  game value  {evaluation.game_value:+.6f}  (player 0, under this policy)")
    if evaluation.bounds is not None:
        report["value_bounds"] = evaluation.bounds
        low, high = evaluation.bounds
        print(f"              in [{low:+.6f}, {high:+.6f}] for the game itself")
    if result.has_locks:
        report |= _report_locks(result, rounding)
    rate = ""
    if result.algorithm != "lp":
        rate = f", {_rate(result.iterations_per_second)} iterations/s"
    print(
        f"  solving     {result.seconds:.2f} s{rate}; "
        f"jit {result.compile_seconds:.1f} s, building {result.build_seconds:.1f} s, "
        f"evaluation {seconds:.1f} s; peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {one_line(arguments.save)}")
    return report


def _report_locks(result: Result, rounding: float) -> dict[str, object]:
    """Print and return what is known of a result with locks besides its NashConv.

    Args:
      result: A result with locks.
      rounding: NashConv, in the game's units, below which zero is printed.
    """
    locked, regrets = result.locked_infosets(), result.regrets()
    nash_conv, bounds = result.nash_conv_with_locks(), result.value_bounds_with_locks()
    print(
        f"  with locks  NashConv {_above(rounding, nash_conv):.3e}, game value in "
        f"[{bounds[0]:+.6f}, {bounds[1]:+.6f}]  (spiel_cr, exact)"
    )
    for player, (count, regret) in enumerate(zip(locked, regrets, strict=True)):
        print(
            f"  player {player}    {counted(count, 'infoset')} locked; would gain "
            f"{_above(rounding, regret):.6g} by a best response without locks"
        )
    return {
        "locked": locked,
        "regrets": regrets,
        "nash_conv_with_locks": nash_conv,
        "value_bounds_with_locks": bounds,
    }


def _above(rounding: float, value: float) -> float:
    """Return a value, or zero if it is below the rounding error."""
    return 0.0 if value < rounding else value


def _rate(each_second: float) -> str:
    return f"{each_second:,.0f}" if each_second >= 10 else f"{each_second:.2g}"
