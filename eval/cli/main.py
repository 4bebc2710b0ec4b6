"""The command line `spiel-cr`: look at a game, solve it, resolve it.

People read the lines; with --json the last line of stdout is one JSON object for
programs. Progress goes to stderr.
"""

import argparse
import json
import sys
from collections.abc import Sequence

import pyspiel
from absl import app, logging
from absl.flags import argparse_flags

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.common import memory, storage
from spiel_cr.compilation.compiler import as_compiled

from ..comparison.measure import Run, measure_run
from ..contestants import registry
from ..judging import python_judge
from ..reporting import plots
from . import best_response, evaluate, matches
from . import compare as cli_compare
from .command import add_command

_DEMO_GAME = "python_ii_goofspiel(num_cards=4)"

_EPILOG = """examples:
  spiel-cr info --game leduc_poker
  spiel-cr solve --game leduc_poker --algorithm cfr+ --iterations 1000
  spiel-cr resolve --game 'liars_dice(numdice=1,dice_sides=4)' --iterations 500 --json

Games are OpenSpiel strings. Besides OpenSpiel's own there are python_ii_goofspiel,
python_princess_and_monster, python_latent_tic_tac_toe, python_leduc_poker,
python_rock_paper_scissors and python_scotland_yard."""


def main() -> None:
    """Entry point of the command `spiel-cr`."""
    app.run(_run, flags_parser=_parse)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; argparse exits by itself on --help and on mistakes."""
    parser = argparse_flags.ArgumentParser(
        prog="spiel-cr",
        description="Solve, resolve and judge two-player zero-sum OpenSpiel games.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    info = add_command(commands, "info", _info, "print a game's size")
    info.add_argument("--game", required=True, help="OpenSpiel game string")
    info.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="refuse games that need more than this, such as 3GB",
    )
    _add_cache_argument(info)
    solve = add_command(
        commands,
        "solve",
        _solve,
        "solve a whole game by CFR, by sampled CFR, or exactly",
    )
    solve.add_argument("--game", required=True, help="OpenSpiel game string")
    _add_solver_arguments(solve, algorithm="cfr+")
    _add_stopping_arguments(solve)
    solve.add_argument(
        "--imperfect-recall",
        action="store_true",
        help="let players forget what the game's bucket_key leaves out: such infosets "
        "share regrets; NashConv stays that of the whole game",
    )
    resolve = add_command(
        commands,
        "resolve",
        _resolve,
        "resolve a whole game continually, in both roles; without --game, resolve "
        "4-card II-goofspiel and compare with what OpenSpiel bundles",
    )
    resolve.add_argument("--game", help=f"OpenSpiel game string (default {_DEMO_GAME})")
    _add_solver_arguments(resolve, algorithm="cfr+")
    resolve.add_argument(
        "--baselines",
        action=argparse.BooleanOptionalAction,
        help="also run bundled CFR+ for as many iterations, outcome-sampling MCCFR for "
        "the same seconds, and uniform (default: only without --game)",
    )
    evaluate.add_commands(commands)
    best_response.add_commands(commands)
    matches.add_commands(commands)
    cli_compare.add_commands(commands)
    return parser.parse_args(argv[1:])


def _add_solver_arguments(parser: argparse.ArgumentParser, *, algorithm: str) -> None:
    parser.add_argument(
        "--algorithm",
        default=algorithm,
        help=f"one of {', '.join(spiel_cr.PRESETS)}, with parameters if you like: "
        f"'dcfr(alpha=1.5,beta=0,gamma=2)'; solve also takes "
        f"{', '.join(spiel_cr.SAMPLED_PRESETS)}, which sample, as in "
        f"'vr-mccfr(epsilon=0.6,baseline=average,decay=0.5,batch=1024)', and lp, the "
        f"exact solution by linear programming (default %(default)s)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        help="iterations of every solve; of an algorithm that samples, each is a batch "
        "for each player (default 1000; solve with --seconds or --until goes on until "
        "then)",
    )
    parser.add_argument(
        "--dtype",
        choices=("float64", "float32"),
        help="arithmetic; float32 stalls earlier (default float64, or float32 for "
        "algorithms that sample)",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="refuse games that need more than this, such as 3GB",
    )
    _add_cache_argument(parser)
    parser.add_argument(
        "--save", metavar="PATH", help="write the policy to this .npz file"
    )
    parser.add_argument(
        "--judge",
        choices=python_judge.JUDGES,
        default="auto",
        help="who computes exact NashConv at the end: OpenSpiel's Python tool, or our "
        "own best response, for games where that tool would take minutes to days "
        "(default auto: OpenSpiel up to half a million histories)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of whatever is sampled; CFR itself samples nothing "
        "(default %(default)s)",
    )


def _add_cache_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep compiled games in this folder for the next time",
    )


def _add_stopping_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, help="stop after so many seconds of iterating"
    )
    parser.add_argument(
        "--until", type=float, metavar="NASH_CONV", help="stop at this NashConv"
    )
    parser.add_argument(
        "--eval-every",
        type=int,
        metavar="N",
        help="compute NashConv every N iterations; the points are in the JSON",
    )
    parser.add_argument(
        "--plot", metavar="PATH", help="draw these points (png, svg or pdf)"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="continue from this file if it exists, and write the state to it",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="time between two writes (default %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> None:
    # app.run turns on JAX's chatter about accelerators that are not there.
    logging.set_verbosity(logging.WARNING)
    try:
        # What cannot be written must be said before the work, not after it.
        if getattr(arguments, "save", None):
            storage.check_writable(arguments.save)
        report = arguments.run(arguments)
    except (ValueError, pyspiel.SpielError) as error:
        print(f"spiel-cr: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("spiel-cr: interrupted", file=sys.stderr)
        sys.exit(130)
    except (OSError, RuntimeError, ImportError) as error:
        print(f"spiel-cr: error: {error}", file=sys.stderr)
        sys.exit(2)
    # For work that was done to the end, and in vain.
    code = report.pop("exit_code", 0)
    if arguments.json:
        print(json.dumps(report))
    if code:
        sys.exit(code)


def _info(arguments: argparse.Namespace) -> dict[str, object]:
    game = spiel_cr.load_game(arguments.game)
    need = memory.estimate_bytes(game)
    text = f"estimated memory to solve it: {need / 1e9:.2g} GB (often low)"
    print(text, file=sys.stderr)
    tree = as_compiled(game, memory_limit=arguments.memory_limit, cache=arguments.cache)
    sizes: dict[str, object] = {
        "histories": len(tree.histories),
        "terminals": tree.num_terminals,
        "infosets": [len(infosets) for infosets in tree.infosets],
        "sequences": [i.decisions.num_sequences for i in tree.infosets],
        "max_depth": tree.max_depth,
    }
    print(tree.game)
    for name, size in sizes.items():
        both = size if isinstance(size, list) else [size]
        print(f"  {name:<10} " + " / ".join(f"{n:,}" for n in both))
    each = tree.nbytes / len(tree.histories)
    print(f"  memory     {tree.nbytes / 1e6:,.1f} MB, {each:.0f} bytes a history")
    return {**sizes, "bytes": tree.nbytes}


def _solve(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.plot and not (arguments.eval_every or arguments.until):
        raise ValueError("--plot needs points to draw; add --eval-every N")
    if arguments.plot:
        plots.check(arguments.plot)
    result = spiel_cr.solve(
        arguments.game,
        arguments.algorithm,
        arguments.iterations,
        seconds=arguments.seconds,
        until=arguments.until,
        eval_every=arguments.eval_every,
        seed=arguments.seed,
        dtype=arguments.dtype,
        imperfect_recall=arguments.imperfect_recall,
        memory_limit=arguments.memory_limit,
        cache=arguments.cache,
        checkpoint_path=arguments.checkpoint,
        checkpoint_every=arguments.checkpoint_every,
        progress=True,
    )
    report = _report(arguments.game, result, arguments)
    if result.curve:
        report["curve"] = [point._asdict() for point in result.curve]
    if arguments.plot:
        title = f"{arguments.game}, {result.algorithm}"
        plots.plot_curves({result.algorithm: result.curve}, arguments.plot, title=title)
        print(f"  plot        {arguments.plot}")
    return report


def _resolve(arguments: argparse.Namespace) -> dict[str, object]:
    game = arguments.game or _DEMO_GAME
    compare = arguments.baselines
    if compare is None:
        compare = arguments.game is None
    result = spiel_cr.resolve(
        game,
        1000 if arguments.iterations is None else arguments.iterations,
        arguments.algorithm,
        dtype=arguments.dtype or "float64",
        memory_limit=arguments.memory_limit,
        cache=arguments.cache,
        progress=True,
    )
    report = _report(game, result, arguments)
    if compare:
        report["baselines"] = _compare(game, result, report, arguments.seed)
    return report


def _report(
    game: str, result: spiel_cr.SolveResult, arguments: argparse.Namespace
) -> dict[str, object]:
    """Saves and judges a result, prints it for people, returns it for programs."""
    save = arguments.save
    if save:
        result.save(save)
    verdict = python_judge.judge_result(result, arguments.judge)
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
        "iterations_per_second": result.iterations_per_second,
        "peak_memory_bytes": memory.peak_bytes(),
    }
    if verdict.bounds is not None:
        report["value_bounds"] = verdict.bounds
    print(f"{game}, {result.algorithm}, {result.iterations} iterations", end="")
    if result.trajectories:
        print(f", {result.trajectories:,} trajectories", end="")
    print(f" in each of {result.solves} solves" if result.solves > 1 else "")
    tool = "OpenSpiel" if verdict.by == "openspiel" else "spiel_cr"
    print(f"  NashConv    {verdict.nash_conv:.3e}  ({tool}, exact)")
    print(f"  game value  {verdict.game_value:+.6f}  (player 0, under this policy)")
    if verdict.bounds is not None:
        low, high = verdict.bounds
        print(f"              in [{low:+.6f}, {high:+.6f}] for the game itself")
    print(
        f"  solving     {result.seconds:.2f} s, "
        f"{result.iterations_per_second:,.0f} iterations/s; "
        f"jit {result.compile_seconds:.1f} s, building {result.build_seconds:.1f} s; "
        f"peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
    if save:
        print(f"  policy      {save}")
    return report


def _compare(
    game: str, result: spiel_cr.SolveResult, report: dict[str, object], seed: int
) -> list[dict[str, object]]:
    """Runs what OpenSpiel bundles on the same game; prints a table.

    Sampling gets all the time that resolving took, compiling included.
    """
    total = result.seconds + result.compile_seconds + result.build_seconds
    rows: list[dict[str, object]] = []
    for run in (
        Run(game, "openspiel-cfr+", 0, None, result.iterations),
        Run(game, "openspiel-os-mccfr", seed, total, None),
        Run(game, "uniform", 0, None, 1),
    ):
        record = measure_run(run)
        title = registry.find(run.algorithm).title
        if record["nash_conv"] is None:
            raise ValueError(f"{title}: {record['error'] or record['missing']}")
        rows.append(
            {
                "name": title,
                "iterations": record["iterations"] or 0,
                "seconds": record["seconds"],
                "nash_conv": record["nash_conv"],
            }
        )
    name = f"spiel_cr resolve ({result.algorithm})"
    ours = {
        "name": name,
        "iterations": result.iterations,
        "seconds": total,
        "nash_conv": report["nash_conv"],
    }
    print(f"\n{'':<40}{'NashConv':>10}{'iterations':>12}{'seconds':>9}")
    for row in (ours, *rows):
        print(
            f"{row['name']:<40}{row['nash_conv']:>10.2e}"
            f"{row['iterations']:>12,}{row['seconds']:>9.2f}"
        )
    return rows
