"""Games of millions of histories: compiling by each path, solving, and memory.

Run `python -m benchmarks.large --help`. docs/large.md has the tables.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import jax

import spiel_cr
from benchmarks import frame
from benchmarks.document import MEMORY, Column, spaced, table
from benchmarks.frame import Row
from spiel_cr.common.memory import peak_bytes
from spiel_cr.compilation import vectorised

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "II-goofspiel, 6 cards": "python_ii_goofspiel(num_cards=6)",
    "princess and monster, horizon 7": "python_princess_and_monster(horizon=7)",
    "latent tic-tac-toe (keep)": "python_latent_tic_tac_toe(conflict=keep)",
    "liars_dice 1×6": "liars_dice",
    "goofspiel, 6 cards (bundled)": frame.goofspiel(
        6, "points_order=ascending,returns_type=win_loss"
    ),
}
# Paths of compiling, in this order: the cache is filled before it is read.
PATHS = {
    "walk": "walk over states",
    "vectorised": "vectorised",
    "cache, written": "compiled, written to the cache",
    "cache, read": "read from the cache",
}
# Of what a solve took, as `SolveResult` names it.
_MEASURED = (
    *("build_seconds", "compile_seconds", "seconds"),
    *("iterations", "iterations_per_second"),
)
DTYPES = ("float32", "float64")


def _add_options(parser: frame.Parser) -> None:
    parser.games(GAMES)
    parser.several("--ways", PATHS, "of compiling; walking Python games takes minutes")
    parser.several("--dtypes", DTYPES, "of solving")
    parser.add_argument("--algorithm", default="cfr+", help="default %(default)s")
    parser.number("--seconds", 60.0, "of iterating before NashConv is taken")
    parser.number("--repeats", 3, "of compiling other than by walks; the median counts")


def _check(options: argparse.Namespace) -> None:
    if "cache, read" in options.ways and "cache, written" not in options.ways:
        raise ValueError("'cache, read' needs 'cache, written' before it")
    options.ways.sort(key=list(PATHS).index)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    """Each row in a new process, so that its peak of memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name in options.games:
            game = GAMES.get(name, name)
            own = vectorised.of_game(spiel_cr.load_game(game)) is not None
            for way in options.ways:
                if way != "vectorised" or own:
                    repeats = 1 if way == "walk" else options.repeats
                    row = frame.in_a_process(
                        measure_compile, name, game, way, folder, repeats
                    )
                    frame.say(f"{name}: compile, {way}: {row['seconds']:.3g} s")
                    yield row
            for dtype in options.dtypes:
                plan = options.algorithm, dtype, options.seconds
                row = frame.in_a_process(measure_solve, name, game, *plan)
                frame.say(f"{name}: solve, {dtype}: NashConv {row['nash_conv']:.3g}")
                yield row


def measure_compile(name: str, game: str, way: str, folder: str, repeats: int) -> Row:
    """Compiles a game by one path.

    Args:
      name: for tables.
      game: OpenSpiel string.
      way: one of `PATHS`.
      folder: of the cache.
      repeats: the median counts. Each writing goes to a folder of its own; what is
        read was written last.
    """
    loaded = spiel_cr.load_game(game)
    start = peak_bytes()
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
        peak = peak or peak_bytes()
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
    start = peak_bytes()
    result = spiel_cr.solve(
        game, algorithm, seconds=seconds, dtype=dtype, form="compiled"
    )
    assert isinstance(result, spiel_cr.SolveResult)
    peak = peak_bytes()
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
        **{name: getattr(result, name) for name in _MEASURED},
        "nash_conv": nash_conv,
        "nash_conv_seconds": time.perf_counter() - began,
        "peak_bytes": peak,
        "start_bytes": start,
        # Full-width solvers sample nothing.
        "seed": None,
    }


def markdown(rows: Sequence[Row]) -> str:
    """A table of compiling and one of solving."""
    parts = frame.group_by(rows, "part")
    solved = parts.get("solve", [])
    text = [f"{frame.sentence(rows[0], (row['device'] for row in solved))}\n"]
    if "compile" in parts:
        columns: dict[str, Column] = {
            "game": "{name}",
            "path": lambda row: PATHS[row["way"]],
            "histories": "{histories:,}",
            "seconds": "{seconds:.2f}",
            "histories/s": "{histories_per_second:,.0f}",
            "bytes/history": lambda row: f"{row['tree_bytes'] / row['histories']:.0f}",
        }
        text.append(table(parts["compile"], {**columns, **MEMORY}, labels=2))
    if solved:
        columns = {
            "game": "{name}",
            "solver": "{algorithm}, {dtype}",
            "jit, s": "{compile_seconds:.1f}",
            "iterations/s": lambda row: spaced(row["iterations_per_second"]),
            "iterations": "{iterations:,}",
            "in, s": "{seconds:.1f}",
            "NashConv": "{nash_conv:.2e}",
            "computed in, s": "{nash_conv_seconds:.2f}",
        }
        text.append(table(solved, {**columns, **MEMORY}, labels=2))
    return "\n".join(text)


BENCHMARK = frame.Benchmark(
    "large",
    "Measure compiling, solving and memory on games of millions of histories.",
    _add_options,
    _measure,
    markdown,
    check=_check,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
