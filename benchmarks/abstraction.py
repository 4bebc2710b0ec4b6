"""Lossy abstraction: exact NashConv of the whole game."""

import argparse
import time
from collections.abc import Sequence

import spiel_cr
from benchmarks import frame
from benchmarks.document import Column, Panels
from benchmarks.games import string_of
from spiel_cr.abstraction import gameshrink
from spiel_cr.abstraction.buckets import abstract, read_budget
from spiel_cr.eval.cli.abstract import whole_nash_conv
from spiel_cr.games.signals.signal_loading import signal_game

GAMESHRINK = "gameshrink"
_METHOD = "potential-aware(distance=earth-movers)"
_EVERY = 50
OPTIONS = {
    "games": frame.Option(("rhode_island",), "of several rounds"),
    "budgets": frame.Option(
        ("13-25-125", "13-50-250", "13-100-750", "13-205-1774"), "buckets by round"
    ),
    "methods": frame.Option(
        ("win-probability", "potential-aware", _METHOD),
        f"of clustering; {GAMESHRINK}: its partition",
    ),
    "until": frame.Option(0.02, "NashConv among buckets at which solving stops"),
    "seconds": frame.Option(900.0, "of solving among buckets, at most, for each"),
}


def measure(
    game: str, budget: str, method: str, until: float, seconds: float
) -> frame.Row:
    """Solves one abstraction by dcfr in float32, and judges it in the whole game.

    Args:
      game: OpenSpiel string or short name.
      budget: as "13-25-125"; GameShrink's partition has the size that it has.
      method: of `spiel_cr.abstraction`, or "gameshrink".
      until: NashConv among buckets, in the game's units.
      seconds: of solving, at most.
    """
    signals = signal_game(string_of(game))
    began = time.process_time()
    if method == GAMESHRINK:
        partition = gameshrink.histogram_partition(signals)
    else:
        partition = abstract(signals, read_budget(budget), method).partition
    clustering = time.process_time() - began
    goal = spiel_cr.Goal(until=until, eval_every=_EVERY, seconds=seconds)
    smaller = gameshrink.coarsen(signals, partition)
    result = spiel_cr.solve(smaller, "dcfr", goal, dtype="float32")
    low, high = result.value_bounds()
    lifted = gameshrink.lift(signals, partition, result.laid_out()[1])
    return {
        "buckets": partition.num_classes(0),
        "clustering_seconds": clustering,
        "iterations": result.iterations,
        "nash_conv_of_buckets": high - low,
        "nash_conv": whole_nash_conv(signals, lifted),
    }


def _check(options: argparse.Namespace) -> None:
    for budget in options.budgets:
        read_budget(budget)


def _curves(rows: Sequence[frame.Row]) -> Panels:
    """NashConv of the whole game over buckets of the last round, by method."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in sorted(rows, key=lambda row: row["buckets"][-1]):
        curve = panels.setdefault(row["game"], {}).setdefault(row["method"], [])
        curve.append((row["buckets"][-1], row["nash_conv"]))
    return panels


_BUCKETS: dict[str, Column] = {
    "game": "{game}",
    "budget": "{budget}",
    "method": "{method}",
    "buckets": lambda row: "-".join(map(str, row["buckets"])),
    "clustering, CPU s": "{clustering_seconds:.1f}",
    "iterations": "{iterations}",
    "NashConv among buckets": "{nash_conv_of_buckets:.4f}",
    "in the whole game": "{nash_conv:.4f}",
}
BENCHMARK = frame.Benchmark(
    "abstraction",
    "Measure lossy abstraction: exact NashConv of the whole game.",
    OPTIONS,
    {
        "buckets": frame.Part(
            measure,
            frame.plan(
                game="games",
                budget="budgets",
                method="methods",
                until="until",
                seconds="seconds",
            ),
            (frame.Table("By budget of buckets and method.", _BUCKETS, 4),),
            (frame.Picture("abstraction.png", "buckets of the last round", _curves),),
            budget=("until", "seconds"),
        ),
    },
    check=_check,
)
