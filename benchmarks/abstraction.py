"""Lossy abstraction, and endgames in two phases: exact NashConv of the whole game.

See docs/abstraction.md.
"""

import argparse
import pathlib
import time
from collections.abc import Iterator, Sequence

import numpy as np

import spiel_cr
from benchmarks.document import Column, Panels, over, pivot
from benchmarks.frame import (
    Benchmark,
    Option,
    Part,
    Picture,
    Row,
    Table,
    plan,
    product,
    say,
)
from benchmarks.games import string_of
from spiel_cr.abstraction import gameshrink
from spiel_cr.abstraction.buckets import abstract, read_budget
from spiel_cr.eval.cli.solving.abstract import whole_nash_conv
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.signals.signal_loading import signal_game
from spiel_cr.policies.result import Result
from spiel_cr.resolving.public_endgames import GADGETS, Endgames

GAMESHRINK = "gameshrink"
_METHOD = "potential-aware(distance=earth-movers)"
_EVERY = 50
OPTIONS = {
    "games": Option(("rhode_island",), "of several rounds"),
    "budgets": Option(
        ("13-25-125", "13-50-250", "13-100-750", "13-205-1774"), "buckets by round"
    ),
    "methods": Option(
        ("win-probability", "potential-aware", _METHOD),
        f"of clustering; {GAMESHRINK}: its partition",
    ),
    "until": Option(0.02, "NashConv among buckets at which solving stops"),
    "seconds": Option(900.0, "of solving among buckets, at most, for each"),
    "gadgets": Option(tuple(GADGETS), "cfrd is safe, unsafe believes", tuple(GADGETS)),
    "looks": Option((10, 25, 50, 100, 200), "iterations of endgames, ascending"),
    "checkpoints": Option("", "a folder; endgames go on from the files there"),
}


def measure(game: str, budget: str, method: str, until: float, seconds: float) -> Row:
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
    result = _among_buckets(gameshrink.coarsen(signals, partition), until, seconds)
    low, high = result.value_bounds()
    lifted = gameshrink.lift(signals, partition, result.laid_out()[1])
    return {
        "buckets": partition.num_classes(0),
        "clustering_seconds": clustering,
        "iterations": result.iterations,
        "nash_conv_of_buckets": high - low,
        "nash_conv": whole_nash_conv(signals, lifted),
    }


def _among_buckets(smaller: SignalGame, until: float, seconds: float) -> Result:
    """Solves a game of buckets by dcfr in float32."""
    goal = spiel_cr.Goal(until=until, eval_every=_EVERY, seconds=seconds)
    return spiel_cr.solve(smaller, "dcfr", goal, dtype="float32")


def measure_endgames(
    game: str,
    budget: str,
    gadget: str,
    looks: Sequence[int],
    goal: Sequence[float],
    checkpoints: str = "",
) -> Row:
    """Solves the first phase, then all endgames by CFR+ in float32, and judges.

    Args:
      game: OpenSpiel string or short name.
      budget: buckets by round, as "13-25-125".
      gadget: of `public_endgames`.
      looks: iterations, ascending, at which NashConv is asked for.
      goal: NashConv among buckets at which the first phase stops, in the game's units,
        and its seconds at most.
      checkpoints: folder of endgames that were begun; empty: none.

    Returns:
      As "curve" iterations and NashConv; 0 is phase one.
    """
    signals = signal_game(string_of(game))
    behaviour, of_buckets = first_phase(signals, budget, goal)
    curve = [[0, whole_nash_conv(signals, behaviour)]]
    checkpoint = None
    if checkpoints:
        name = "".join(c for c in f"{game}-{budget}-{gadget}" if c not in "()/")
        checkpoint = pathlib.Path(checkpoints, f"{name}.npz")
    began = time.process_time()
    endgames = Endgames(
        signals,
        behaviour,
        gadget=gadget,
        algorithm="cfr+",
        dtype="float32",
        planned=looks[-1],
        progress=True,
        checkpoint=checkpoint,
    )
    built, spent = time.process_time() - began, 0.0
    # Of a checkpoint; a run that was stopped may have ended between two layers.
    before = [layer.solver.iterations for layer in endgames.layers]
    for look in looks:
        if look < max(before):
            say(f"{look} iterations: the checkpoint has {max(before)} already")
            continue
        began = time.process_time()
        endgames.run_to(look, progress=True)
        spent += time.process_time() - began
        curve.append([look, whole_nash_conv(signals, endgames.behaviour())])
    return {
        "nash_conv_of_first_phase": of_buckets,
        "endgames": list(endgames.counts),
        "build_cpu_seconds": built,
        "curve": curve,
        # Of this run's own iterations.
        "each": spent / max(looks[-1] - float(np.mean(before)), 1.0),
    }


def first_phase(
    signals: SignalGame, budget: str, goal: Sequence[float]
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """A strategy of the whole game, for each player float [S], to begin with.

    Args:
      signals: the whole game.
      budget, goal: see `measure_endgames`.

    Returns:
      Behaviours; NashConv in the game of buckets that was solved, in the game's units.
    """
    partition = abstract(signals, read_budget(budget), _METHOD).partition
    result = _among_buckets(gameshrink.coarsen(signals, partition), goal[0], goal[1])
    low, high = result.value_bounds()
    return gameshrink.lift(signals, partition, result.laid_out()[1]), high - low


def _check(options: argparse.Namespace) -> None:
    for budget in options.budgets:
        read_budget(budget)
    if sorted(set(options.looks)) != list(options.looks):
        raise ValueError(
            f"--looks {' '.join(map(str, options.looks))} must rise; give such as "
            f"10 50 100"
        )


def _plan_endgames(options: argparse.Namespace) -> Iterator[Row]:
    yield from product(
        game=options.games,
        budget=options.budgets,
        gadget=options.gadgets,
        looks=[options.looks],
        goal=[(options.until, options.seconds)],
        checkpoints=[options.checkpoints],
    )


def _curves(rows: Sequence[Row]) -> Panels:
    """NashConv of the whole game over buckets of the last round, by method."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in sorted(rows, key=lambda row: row["buckets"][-1]):
        curve = panels.setdefault(row["game"], {}).setdefault(row["method"], [])
        curve.append((row["buckets"][-1], row["nash_conv"]))
    return panels


def _looks(rows: Sequence[Row]) -> list[Row]:
    points = [
        {**row, "iterations": iterations, "nash_conv": nash_conv}
        for row in rows
        for iterations, nash_conv in row["curve"]
    ]
    by = ("game", "budget", "gadget")
    return pivot(points, by, "iterations", "nash_conv")


def _endgames(lines: Sequence[Row]) -> dict[str, Column]:
    return {
        "game": "{game}",
        "phase one": "abstraction, {budget}",
        "endgames": "{gadget}",
        "how many": lambda row: " + ".join(f"{n:,}" for n in row["endgames"]),
        "building, CPU s": "{build_cpu_seconds:.0f}",
        "iteration, CPU s": "{each:.2f}",
        **over(lines, ".4f", "{} iterations"),
    }


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
BENCHMARK = Benchmark(
    "abstraction",
    "Lossy abstraction, and endgames in two phases: exact NashConv of the whole game.",
    "abstraction.md",
    OPTIONS,
    {
        "buckets": Part(
            measure,
            plan(
                game="games",
                budget="budgets",
                method="methods",
                until="until",
                seconds="seconds",
            ),
            (Table("By budget of buckets and method.", _BUCKETS, 4),),
            (Picture("abstraction.png", "buckets of the last round", _curves),),
            budget=("until", "seconds"),
        ),
        "endgames": Part(
            measure_endgames,
            _plan_endgames,
            (
                Table(
                    "Endgames by iterations of CFR+; 0: one phase.",
                    _endgames,
                    3,
                    _looks,
                ),
            ),
            budget=("looks", "goal", "checkpoints"),
        ),
    },
    check=_check,
)
