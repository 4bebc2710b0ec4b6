"""Lossy abstraction: exact NashConv of the whole game, by budget of buckets and method.

Run `python -m benchmarks.signals.abstraction --help`. docs/abstraction.md says what is
measured.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import frame
from benchmarks.document import Column, table
from benchmarks.frame import Row
from spiel_cr import gameshrink
from spiel_cr.abstraction.buckets import abstract, read_budget
from spiel_cr.eval.cli.solving.abstract import lifted_nash_conv
from spiel_cr.policies.result import Result
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.loading import signal_game

GAME = "python_rhode_island_holdem"
BUDGETS = "13-25-125", "13-50-250", "13-100-750", "13-205-1774"
METHODS = (
    "win-probability",
    "potential-aware",
    "potential-aware(distance=l2)",
    "potential-aware(distance=earth-movers)",
    "win-probability(opponents=classes)",
    "potential-aware(opponents=classes)",
)
GAMESHRINK = "gameshrink"
_EVERY = 50


def _add_options(parser: frame.Parser) -> None:
    parser.strings("--games", [GAME], "whose signals are put into buckets")
    parser.strings("--budgets", BUDGETS, "buckets by round")
    parser.strings("--methods", METHODS, f"of clustering; {GAMESHRINK}: its partition")
    parser.number("--until", 0.02, "NashConv among buckets at which solving stops")
    parser.number("--seconds", 900.0, "of solving, at most, for each")
    parser.add_argument("--plot", metavar="PATH", help="draw the curves")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        for budget in options.budgets:
            for method in options.methods:
                frame.say(f"{game}, {budget}, {method}")
                yield frame.in_a_process(
                    solve_buckets, game, budget, method, options.until, options.seconds
                )


def solve_buckets(
    game: str, budget: str, method: str, until: float, seconds: float
) -> Row:
    """Solves one abstraction by dcfr in float32, and judges it in the whole game.

    Args:
      game: OpenSpiel string.
      budget: as "13-25-125"; GameShrink's partition has the size that it has.
      method: of `spiel_cr.abstraction`, or "gameshrink".
      until: NashConv among buckets, in the game's units.
      seconds: of solving, at most.
    """
    signals = signal_game(game)
    began = time.process_time()
    if method == GAMESHRINK:
        partition = gameshrink.histogram_partition(signals)
    else:
        partition = abstract(signals, read_budget(budget), method).partition
    clustering = time.process_time() - began
    smaller = gameshrink.coarsen(signals, partition)
    result = solve_among_buckets(smaller, until, seconds)
    low, high = result.value_bounds()
    return {
        "game": game,
        "budget": budget,
        "method": method,
        "buckets": partition.num_classes(0),
        "clustering_seconds": clustering,
        "iterations": result.iterations,
        "seconds": result.seconds,
        "nash_conv_of_buckets": high - low,
        "nash_conv": lifted_nash_conv(signals, partition, result.average),
    }


def solve_among_buckets(smaller: SignalGame, until: float, seconds: float) -> Result:
    """Solves a game of buckets by dcfr in float32, for all benchmarks alike.

    Args:
      smaller: the game.
      until: NashConv in it, in the game's units.
      seconds: at most.
    """
    return spiel_cr.solve(
        smaller,
        "dcfr",
        dtype="float32",
        until=until,
        eval_every=_EVERY,
        seconds=seconds,
    )


def check_budgets(options: argparse.Namespace) -> None:
    """Refuses budgets that cannot be read, before the work."""
    for budget in options.budgets:
        read_budget(budget)


def markdown(rows: Sequence[Row]) -> str:
    """A line per budget and method."""
    columns: dict[str, Column] = {
        "game": "{game}",
        "budget": "{budget}",
        "method": "{method}",
        "buckets": lambda row: "-".join(map(str, row["buckets"])),
        "clustering, CPU s": "{clustering_seconds:.1f}",
        "iterations": "{iterations}",
        "NashConv among buckets": "{nash_conv_of_buckets:.4f}",
        "in the whole game": "{nash_conv:.4f}",
    }
    return f"{frame.sentence(rows[0], ['cpu'])}\n\n{table(rows, columns, labels=4)}"


def plot(rows: Sequence[Row], path: str) -> None:
    """Draws NashConv of the whole game over buckets of the last round, by method.

    Args:
      rows: of one game.
      path: of a picture (png, svg or pdf).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5))
    axes = figure.add_subplot()
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = sorted(
            (row["buckets"][-1], row["nash_conv"])
            for row in rows
            if row["method"] == method
        )
        axes.plot(*zip(*mine, strict=True), marker="o", label=method)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="buckets of the last round",
        ylabel="NashConv of the whole game",
    )
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


def _finish(rows: Sequence[Row], options: argparse.Namespace) -> None:
    if rows and options.plot:
        plot(rows, options.plot)


BENCHMARK = frame.Benchmark(
    name="signals.abstraction",
    description=(__doc__ or "").splitlines()[0],
    add_options=_add_options,
    measure=_measure,
    markdown=markdown,
    tables="abstraction",
    page="abstraction.md",
    check=check_budgets,
    finish=_finish,
    group=lambda row: (row["game"], row["budget"], row["method"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
