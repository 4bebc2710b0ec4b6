"""Games of millions of histories: compiling, solving, memory."""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator

import spiel_cr
from benchmarks.document import MEMORY, Column, count
from benchmarks.frame import Benchmark, Option, Part, Row, Table, in_a_process, plan
from benchmarks.games import game_of, string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.games.opening import vectorised

GAMES = ("ii_goofspiel6", "princess7", "latent_ttt", "liars_dice6")
# Paths of compiling.
PATHS = {
    "walk": "walk over states",
    "vectorised": "vectorised",
    "written": "compiled, written to the cache",
    "read": "read from the cache",
}
# Of what a solve took, as results name it.
_MEASURED = "compile_seconds seconds iterations iterations_per_second".split()
OPTIONS = {
    "games": Option((*GAMES, "goofspiel6_ascending"), "short names, or strings"),
    "ways": Option(
        tuple(PATHS), "of compiling; walking Python games takes minutes", tuple(PATHS)
    ),
    "dtypes": Option(("float32", "float64"), "of solving", ("float32", "float64")),
    "algorithm": Option("cfr+", "of solving"),
    "seconds": Option(60.0, "of iterating before NashConv is taken"),
    "repeats": Option(3, "of compiling other than by walks; the median counts"),
}


def measure_compile(game: str, way: str, repeats: int) -> Row:
    """Compiles a game by one path.

    Args:
      game: OpenSpiel string or short name.
      way: one of `PATHS`.
      repeats: the median counts; each writing goes to a folder of its own.
    """
    loaded = game_of(game)
    with tempfile.TemporaryDirectory() as folder:
        if way == "read":
            in_a_process(fill_cache, game=game, folder=folder)
        start, spent, peak = peak_bytes(), [], 0
        for _ in range(repeats):
            cache = {"read": folder, "written": tempfile.mkdtemp(dir=folder)}.get(way)
            began = time.perf_counter()
            tree = spiel_cr.compile_game(loaded, vectorised=way != "walk", cache=cache)
            spent.append(time.perf_counter() - began)
            # Later rounds find the tree of the round before in memory.
            peak = peak or peak_bytes()
    seconds = statistics.median(spent)
    return {
        "histories": len(tree.histories),
        "seconds": seconds,
        "all_seconds": spent,
        "histories_per_second": len(tree.histories) / seconds,
        "bytes_per_history": tree.nbytes / len(tree.histories),
        "peak_bytes": peak,
        "start_bytes": start,
    }


def fill_cache(game: str, folder: str) -> Row:
    """Compiles a game into a cache, in a process whose memory nobody measures."""
    spiel_cr.compile_game(string_of(game), cache=folder)
    return {}


def measure_solve(game: str, algorithm: str, dtype: str, seconds: float) -> Row:
    """Solves a game for some seconds; NashConv by our exact best response.

    Args:
      game: OpenSpiel string or short name.
      algorithm: a full-width one.
      dtype: of the solver; NashConv is computed in float64.
      seconds: of iterating; compiling and judging are not counted.
    """
    start = peak_bytes()
    result = spiel_cr.solve(
        string_of(game),
        algorithm,
        spiel_cr.Goal(seconds=seconds),
        layout=spiel_cr.Layout("compiled"),
        dtype=dtype,
    )
    peak = peak_bytes()
    result.nash_conv()  # compiles a program
    began = time.perf_counter()
    nash_conv = result.nash_conv()
    return {
        **{name: getattr(result, name) for name in _MEASURED},
        "nash_conv": nash_conv,
        "nash_conv_seconds": time.perf_counter() - began,
        "peak_bytes": peak,
        "start_bytes": start,
    }


def _plan_compile(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        rules = vectorised.of_game(game_of(game))
        for way in options.ways:
            if way != "vectorised" or rules is not None:
                repeats = 1 if way == "walk" else options.repeats
                yield {"game": game, "way": way, "repeats": repeats}


_COMPILED: dict[str, Column] = {
    "game": "{game}",
    "path": lambda row: PATHS[row["way"]],
    "histories": count("histories"),
    "seconds": "{seconds:.2f}",
    "histories/s": "{histories_per_second:,.0f}",
    "bytes/history": "{bytes_per_history:.0f}",
    **MEMORY,
}
_SOLVED: dict[str, Column] = {
    "game": "{game}",
    "solver": "{algorithm}, {dtype}",
    "jit, s": "{compile_seconds:.1f}",
    "iterations/s": count("iterations_per_second"),
    "iterations": "{iterations:,}",
    "in, s": "{seconds:.1f}",
    "NashConv": "{nash_conv:.2e}",
    "computed in, s": "{nash_conv_seconds:.2f}",
    **MEMORY,
}
BENCHMARK = Benchmark(
    "large",
    "Measure compiling, solving and memory on games of millions of histories.",
    OPTIONS,
    {
        "compile": Part(
            measure_compile,
            _plan_compile,
            (Table("Compiling, by each path.", _COMPILED, 2),),
            budget=("repeats",),
        ),
        "solve": Part(
            measure_solve,
            plan(
                game="games", algorithm="algorithm", dtype="dtypes", seconds="seconds"
            ),
            (Table("Solving, and NashConv.", _SOLVED, 2),),
        ),
    },
)
