"""NashConv of resolved strategies, and of players that resolve by sampling."""

import spiel_cr
from benchmarks.document import WHO, over, pivot
from benchmarks.frame import Benchmark, Option, Part, Row, Table, plan
from benchmarks.games import string_of
from spiel_cr.judging import python_judge

GAMES = (
    "kuhn leduc python_leduc_poker goofspiel4_ascending goofspiel5_ascending "
    "ii_goofspiel4 liars_dice4 princess4 princess5 rps5"
)
OPTIONS = {
    "games": Option(tuple(GAMES.split()), "of part strategies"),
    "algorithms": Option(("cfr+", "pdcfr+"), "of every solve of part strategies"),
    "iterations": Option((100, 500, 2000), "of every solve of part strategies"),
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


BENCHMARK = Benchmark(
    "resolving",
    "NashConv of continually resolved strategies, and of players that sample.",
    OPTIONS,
    {
        "strategies": Part(
            measure,
            plan(game="games", algorithm="algorithms", iterations="iterations"),
            (
                Table(
                    "NashConv by iterations of each solve.",
                    lambda lines: {**WHO, **over(lines, ".1e")},
                    2,
                    lambda rows: pivot(rows, tuple(WHO), "iterations", "nash_conv"),
                ),
            ),
        ),
    },
)
