"""NashConv of resolved strategies, and of players that resolve by sampling.

See docs/resolving.md.
"""

import time
from collections.abc import Sequence

import spiel_cr
from benchmarks.document import Column, count, over, pivot
from benchmarks.frame import Benchmark, Option, Part, Row, Table, plan
from benchmarks.games import string_of
from spiel_cr.judging import python_judge, traversing

GAMES = (
    "kuhn leduc python_leduc_poker goofspiel4_ascending goofspiel5_ascending "
    "ii_goofspiel4 liars_dice4 princess4 princess5 rps5"
)
SIZES = "ii_goofspiel3 ii_goofspiel4 leduc_3_ranks leduc_7_ranks leduc_13_ranks"
OPTIONS = {
    "games": Option(tuple(GAMES.split()), "of part strategies"),
    "algorithms": Option(("cfr+", "pdcfr+"), "of every solve of part strategies"),
    "iterations": Option((100, 500, 2000), "of every solve of part strategies"),
    "sizes": Option(tuple(SIZES.split()), "games of part sampled"),
    "solvers": Option(
        ("evr-mccfr(batch=256)", "os-mccfr(batch=256)", "cfr+"), "of part sampled"
    ),
    "move_ms": Option(
        (5.0, 50.0),
        "of part sampled: milliseconds a move, ten times that before the first",
    ),
}


def measure(game: str, algorithm: str, iterations: int) -> Row:
    """Resolves one game; NashConv by OpenSpiel's exact tool.

    Args:
      game: OpenSpiel string or short name.
      algorithm: solver of every solve.
      iterations: of every solve.
    """
    result = spiel_cr.resolve(string_of(game), algorithm, iterations)
    verdict = python_judge.judge(result.game, result.average_policy())
    return {
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        "solves": result.solves,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
    }


def measure_player(game: str, solver: str, move_ms: float) -> Row:
    """Makes a player in both seats and asks it everywhere.

    Args:
      game: OpenSpiel string or short name.
      solver: of every solve.
      move_ms: milliseconds a move.
    """
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    bot = f"resolving(solver={solver},move_ms={move_ms:g})"
    started = time.perf_counter()
    first = spiel_cr.load_bot(bot, tree, 0, seed=0)
    made = time.perf_counter() - started
    second = spiel_cr.load_bot(bot, tree, 1, seed=1)
    strategies = traversing.traverse(tree, first), traversing.traverse(tree, second)
    evaluation = traversing.evaluate(tree, strategies)
    return {
        "histories": len(tree.histories),
        "seed": [0, 1],
        "seat_seconds": made,
        "nash_conv": evaluation.nash_conv,
        "moves": evaluation.moves,
        "late_moves": evaluation.late_moves,
        "programs_compiled": evaluation.programs_compiled,
    }


def _strategies(lines: Sequence[Row]) -> dict[str, Column]:
    words: dict[str, Column] = {"game": "{game}", "algorithm": "`{algorithm}`"}
    return {**words, **over(lines, ".1e")}


def _players(lines: Sequence[Row]) -> dict[str, Column]:
    return {
        "game": "{game}",
        "solver": "`{solver}`",
        "histories": count("histories"),
        "first seat made, s": "{seat_seconds:.1f}",
        **over(lines, ".1e", "NashConv, {:g} ms"),
    }


BENCHMARK = Benchmark(
    "resolving",
    "NashConv of continually resolved strategies, and of players that sample.",
    "resolving.md",
    OPTIONS,
    {
        "strategies": Part(
            measure,
            plan(game="games", algorithm="algorithms", iterations="iterations"),
            (
                Table(
                    "NashConv by iterations of each solve.",
                    _strategies,
                    2,
                    lambda rows: pivot(
                        rows, ("game", "algorithm"), "iterations", "nash_conv"
                    ),
                ),
            ),
        ),
        "sampled": Part(
            measure_player,
            plan(game="sizes", solver="solvers", move_ms="move_ms"),
            (
                Table(
                    "Players under a clock, asked everywhere.",
                    _players,
                    2,
                    lambda rows: pivot(
                        rows, ("game", "solver"), "move_ms", "nash_conv"
                    ),
                ),
            ),
        ),
    },
)
