"""Games of millions of histories: compiling by each path, solving, and memory.

Run `python -m benchmarks.large --help`. docs/large.md has the tables.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import conditions, document, process
from spiel_cr.common import memory
from spiel_cr.compilation import vectorised

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "II-goofspiel, 6 cards": "python_ii_goofspiel(num_cards=6)",
    "princess and monster, horizon 7": "python_princess_and_monster(horizon=7)",
    "latent tic-tac-toe (keep)": "python_latent_tic_tac_toe(conflict=keep)",
    "liars_dice 1×6": "liars_dice",
    "goofspiel, 6 cards (bundled)": (
        "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards=6,"
        "players=2,points_order=descending,returns_type=win_loss))"
    ),
}
# Paths of compiling, in this order: the cache is filled before it is read.
WAYS = {
    "walk": "walk over states",
    "vectorised": "expansion",
    "cache, written": "compiled, written to the cache",
    "cache, read": "read from the cache",
}
DTYPES = ("float32", "float64")

MARKS = document.Marks("<!-- large tables: begin -->", "<!-- large tables: end -->")

Row = dict[str, Any]
# Calls a function of this module with arguments, in whatever process.
Run = Callable[..., Row]


def main(arguments: Sequence[str] | None = None, *, run: Run | None = None) -> int:
    """Measures, writes facts as JSON lines, prints tables.

    Args:
      arguments: of the command line.
      run: how to call a measurement; by default in a new process each, so that its
        peak of memory is its own.
    """
    options = _parse(arguments)
    run = run or process.in_a_process
    facts = conditions.facts()
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with out.open("w") as file, tempfile.TemporaryDirectory() as folder:

        def take(row: Row) -> None:
            rows.append({**facts, **row})
            print(json.dumps(rows[-1]), file=file, flush=True)
            told = "nash_conv" if row["part"] == "solve" else "seconds"
            what = row.get("way", row.get("dtype"))
            words = f"{row['name']}: {row['part']}, {what}: {told} {row[told]:.3g}"
            print(words, file=sys.stderr, flush=True)

        for name in options.games:
            game = GAMES.get(name, name)
            for way in options.ways:
                if way != "vectorised" or _has_expansion(game):
                    repeats = 1 if way == "walk" else options.repeats
                    take(run(measure_compile, name, game, way, folder, repeats))
            for dtype in options.dtypes:
                plan = options.algorithm, dtype, options.seconds
                take(run(measure_solve, name, game, *plan))
    text = markdown(rows)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, MARKS)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large",
        description="Measure compiling, solving and memory on games of millions of "
        "histories.",
        epilog="What is measured, and how, is written in docs/large.md.",
    )
    parser.add_argument(
        "--games",
        nargs="+",
        default=list(GAMES),
        metavar="GAME",
        help=f"OpenSpiel strings, or of {'; '.join(GAMES)} (default: these)",
    )
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=list(WAYS),
        default=list(WAYS),
        help="paths of compiling (default: all; walking Python games takes minutes)",
    )
    parser.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES), help="of solving"
    )
    parser.add_argument("--algorithm", default="cfr+", help="default %(default)s")
    parser.add_argument(
        "--seconds",
        type=_positive,
        default=60.0,
        help="of iterating before NashConv is taken (default %(default)s)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="of compiling other than by walks; the median counts (default 3)",
    )
    parser.add_argument(
        "--out",
        default="out/benchmarks/large.jsonl",
        help="JSON lines replace this file (default %(default)s)",
    )
    document.add_option(parser, MARKS)
    options = parser.parse_args(arguments)
    if "cache, read" in options.ways and "cache, written" not in options.ways:
        parser.error("'cache, read' needs 'cache, written' before it")
    options.ways.sort(key=list(WAYS).index)
    return options


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return value


def _has_expansion(game: str) -> bool:
    return vectorised.of_game(spiel_cr.load_game(game)) is not None


def measure_compile(name: str, game: str, way: str, folder: str, repeats: int) -> Row:
    """Compiles a game by one path.

    Args:
      name: for tables.
      game: OpenSpiel string.
      way: one of `WAYS`.
      folder: of the cache.
      repeats: the median counts. Each writing goes to a folder of its own; what is
        read was written last.
    """
    loaded = spiel_cr.load_game(game)
    start = memory.peak_bytes()
    spent, peak = [], 0
    for number in range(repeats):
        cache = None
        if way == "cache, written":
            last = number == repeats - 1
            cache = folder if last else tempfile.mkdtemp(dir=folder)
        elif way == "cache, read":
            cache = folder
        began = time.perf_counter()
        tree = spiel_cr.compile_game(loaded, vectorised=way != "walk", cache=cache)
        spent.append(time.perf_counter() - began)
        # Later rounds find the tree of the round before in memory.
        peak = peak or memory.peak_bytes()
    return {
        "part": "compile",
        "name": name,
        "game": game,
        "way": way,
        "histories": len(tree.histories),
        "infosets": [len(own) for own in tree.infosets],
        "seconds": statistics.median(spent),
        "all_seconds": spent,
        "histories_per_second": len(tree.histories) / statistics.median(spent),
        "tree_bytes": tree.nbytes,
        "peak_bytes": peak,
        "start_bytes": start,
        "seed": None,
    }


def measure_solve(
    name: str, game: str, algorithm: str, dtype: str, seconds: float
) -> Row:
    """Solves a game for some seconds; NashConv by our exact best response.

    Args:
      name: for tables.
      game: OpenSpiel string.
      algorithm: a full-width one.
      dtype: of the solver; NashConv is computed in float64.
      seconds: of iterating; compiling and judging are not counted.
    """
    start = memory.peak_bytes()
    result = spiel_cr.solve(game, algorithm, seconds=seconds, dtype=dtype)
    peak = memory.peak_bytes()
    result.nash_conv()  # compiles a program
    began = time.perf_counter()
    nash_conv = result.nash_conv()
    return {
        "part": "solve",
        "name": name,
        "game": game,
        "algorithm": algorithm,
        "dtype": dtype,
        "device": jax.default_backend(),
        "histories": len(result.tree.histories),
        "build_seconds": result.build_seconds,
        "compile_seconds": result.compile_seconds,
        "iterations": result.iterations,
        "seconds": result.seconds,
        "iterations_per_second": result.iterations_per_second,
        "nash_conv": nash_conv,
        "nash_conv_seconds": time.perf_counter() - began,
        "peak_bytes": peak,
        "start_bytes": start,
        # Full-width solvers sample nothing.
        "seed": None,
    }


def markdown(rows: Sequence[Row]) -> str:
    """A table of compiling and one of solving."""
    compiled = [row for row in rows if row["part"] == "compile"]
    solved = [row for row in rows if row["part"] == "solve"]
    parts = [conditions.sentence(rows[0], (row["device"] for row in solved))]
    if compiled:
        head = ["game", "path", "histories", "seconds", "histories/s"]
        head += ["bytes/history", "peak memory, MB", "at start, MB"]
        body = [
            [
                *(row["name"], WAYS[row["way"]], f"{row['histories']:,}"),
                f"{row['seconds']:.2f}",
                f"{row['histories_per_second']:,.0f}",
                f"{row['tree_bytes'] / row['histories']:.0f}",
                *_megabytes(row),
            ]
            for row in compiled
        ]
        parts.append(document.grid(head, body, labels=2))
    if solved:
        head = ["game", "solver", "jit, s", "iterations/s", "iterations", "in, s"]
        head += ["NashConv", "computed in, s", "peak memory, MB", "at start, MB"]
        body = [
            [
                *(row["name"], f"{row['algorithm']}, {row['dtype']}"),
                f"{row['compile_seconds']:.1f}",
                _rate(row["iterations_per_second"]),
                *(f"{row['iterations']:,}", f"{row['seconds']:.1f}"),
                *(f"{row['nash_conv']:.2e}", f"{row['nash_conv_seconds']:.2f}"),
                *_megabytes(row),
            ]
            for row in solved
        ]
        parts.append(document.grid(head, body, labels=2))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _megabytes(row: Row) -> list[str]:
    return [f"{row[key] / 1e6:,.0f}" for key in ("peak_bytes", "start_bytes")]


if __name__ == "__main__":
    sys.exit(main())
