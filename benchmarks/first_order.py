"""First-order methods by steps, products and seconds."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

import spiel_cr
from benchmarks.document import PEAK, Column, Panels
from benchmarks.frame import (
    Benchmark,
    Option,
    Part,
    Picture,
    Row,
    Table,
    group_by,
    one_thread,
    plan,
)
from benchmarks.games import string_of
from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common.memory import peak_bytes, trim
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.signal_loading import signal_game
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.first_order import solvers as first_order
from spiel_cr.solvers.first_order.first_order_config import FirstOrderConfig

LARGE = "rhode_island"
# With the most steps to take.
ALGORITHMS = {
    "pdhg": 400_000,
    "egt": 10_000,
    "iterated-smoothing": 20_000,
    "pcfr+30": 10_000,
    "cfr+": 10_000,
    "dcfr": 10_000,
}
# NashConv is taken after this many steps, then after a third more each time.
_FIRST, _GROWTH = 30, 4 / 3
_PRODUCTS = (1_000, 3_000, 10_000, 100_000)
_SECONDS = (15, 30, 60, 120, 300, 600, 900)
OPTIONS = {
    "games": Option(
        ("kuhn", "leduc", "liars_dice4", "goofspiel4_win_loss"),
        "short names, or OpenSpiel strings",
    ),
    "algorithms": Option(tuple(ALGORITHMS), "first-order or full-width"),
    "seconds": Option(900.0, "of the processor, at most, for each"),
}


def make(form: Any, algorithm: str, dtype: str) -> Solver:
    """A solver of a game in sequence form, full-width or first-order."""
    config = find(algorithm).config
    if isinstance(config, FirstOrderConfig):
        return first_order.make_solver(form, config=config, dtype=dtype)
    assert isinstance(config, CFRConfig)
    return cfr.make_solver(form, config=config, dtype=dtype)


def products_of(solver: Solver) -> int:
    """Pairs of products with the payoff coupling so far, one in each direction."""
    state = solver.state
    if hasattr(state, "products"):
        return math.ceil(int(state.products) / 2)
    return solver.iterations


def measure_curve(game: str, algorithm: str, seconds: float) -> Row:
    """NashConv by steps, products and seconds; judging is not counted.

    Args:
      game: OpenSpiel string or short name; Rhode Island Hold'em is solved lossless in
        the form of signals, in float32 and on one thread.
      algorithm: full-width or first-order.
      seconds: of the processor, at most.
    """
    if game == LARGE:
        one_thread()
        form: Any = form_of(merged(signal_game(string_of(game))))
        trim()
    else:
        form = spiel_cr.compile_game(string_of(game)).form
    start = peak_bytes()
    solver = make(form, algorithm, "float32" if game == LARGE else "float64")
    curve: list[list[float]] = []
    step, most, spent = float(_FIRST), ALGORITHMS.get(algorithm, 10_000), 0.0
    while solver.iterations < most and spent < seconds:
        began = time.process_time()
        solver.run(min(most, int(step)) - solver.iterations)
        spent += time.process_time() - began
        point = [solver.iterations, products_of(solver), spent, solver.nash_conv()]
        curve.append(point)
        if point[-1] < 1e-15:
            break
        step *= _GROWTH
    return {
        "curve": curve,
        "last": curve[-1],
        "compile_seconds": solver.compile_seconds,
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
        "state_bytes": sum(
            np.asarray(leaf).nbytes for leaf in jax.tree.leaves(solver.state)
        ),
    }


def _within(column: int, most: float) -> Column:
    """NashConv at the last point that was judged within this much of a column."""

    def said(row: Mapping[str, Any]) -> str:
        values = [point[-1] for point in row["curve"] if point[column] <= most]
        return f"{values[-1]:.3g}" if values else "–"

    return said


def _points(column: int) -> Callable[[Sequence[Row]], Panels]:
    """Curves over a column, a panel for each game."""

    def curves(rows: Sequence[Row]) -> Panels:
        return {
            game: {
                row["algorithm"]: [(p[column], p[-1]) for p in row["curve"]]
                for row in its
            }
            for game, its in group_by(rows, "game").items()
        }

    return curves


def _linear(rows: Sequence[Row]) -> Panels:
    """Where one axis alone is logarithmic, linear convergence is a straight line."""
    lines = {}
    for row in rows:
        if row["algorithm"] in ("pdhg", "iterated-smoothing"):
            most = row["last"][1]
            label = f"{row['algorithm']}, {row['game']}, {most:,}"
            lines[label] = [(point[1] / most, point[-1]) for point in row["curve"]]
    return {"": lines}


_WHO: dict[str, Column] = {"game": "{game}", "algorithm": "`{algorithm}`"}
_LAST: dict[str, Column] = {
    "last": "{last[3]:.2g}",
    "iterations": "{last[0]:,}",
    "pairs of products": "{last[1]:,}",
    "CPU seconds": "{last[2]:.1f}",
}
_CURVES = {
    **_WHO,
    **{f"{most:,}".replace(",", " "): _within(1, most) for most in _PRODUCTS},
    **_LAST,
}
_LARGE = {
    **_WHO,
    **{f"{most} s": _within(2, most) for most in _SECONDS},
    **_LAST,
    "state, MB": lambda row: f"{row['state_bytes'] / 1e6:.0f}",
    **PEAK,
}
BENCHMARK = Benchmark(
    "first_order",
    "Measure first-order methods beside CFR and linear programs.",
    OPTIONS,
    {
        "curves": Part(
            measure_curve,
            plan(game="games", algorithm="algorithms", seconds="seconds"),
            (
                Table(
                    "NashConv at the last point within so many pairs of products with "
                    "the payoffs; a method that ended earlier keeps its last value.",
                    _CURVES,
                    labels=2,
                ),
            ),
            (
                Picture("first-order.png", "pairs of products", _points(1)),
                Picture(
                    "first-order-linear.png", "share of the products", _linear, "linear"
                ),
            ),
        ),
        "large": Part(
            measure_curve,
            plan(game=[LARGE], algorithm="algorithms", seconds="seconds"),
            (
                Table(
                    "Rhode Island Hold'em, lossless, float32: NashConv in chips at the "
                    "last point within so many seconds of the processor.",
                    _LARGE,
                    labels=2,
                ),
            ),
            (
                Picture(
                    "first-order-rhode-island.png",
                    "seconds of the processor",
                    _points(2),
                ),
            ),
        ),
    },
)
