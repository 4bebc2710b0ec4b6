"""First-order methods: NashConv by steps, products and seconds; memory beside the LP's.

Run `python -m benchmarks.first_order --help`. docs/first-order.md has the tables.
"""

import argparse
import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

import spiel_cr
from benchmarks import document, frame
from benchmarks.document import table
from benchmarks.frame import Row
from spiel_cr.cfr import cfr
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.memory import peak_bytes, trim
from spiel_cr.first_order import solvers as first_order
from spiel_cr.first_order.config import FirstOrderConfig
from spiel_cr.gameshrink.merging import merged
from spiel_cr.signals.form import form_of
from spiel_cr.solving.algorithms import parse_whole

GAMES = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liar's dice 1x4": "liars_dice(numdice=1,dice_sides=4)",
    "goofspiel 4 descending": frame.goofspiel(
        4, "points_order=descending,returns_type=win_loss"
    ),
}
RHODE_ISLAND = "python_rhode_island_holdem"
# With the most steps to take.
ALGORITHMS = {
    "pdhg": 400_000,
    "egt": 10_000,
    "iterated-smoothing": 20_000,
    "domwu": 100_000,
    "dilated-mmd": 100_000,
    "pcfr+30": 10_000,
    "cfr+": 10_000,
    "dcfr": 10_000,
}
PARTS = ("curves", "memory", "rhode island")
# Seconds after which NashConv on Rhode Island is shown, and those when it is judged.
_COLUMNS = (15, 30, 60, 120, 300, 600, 900)
_LOOKS = (1, 2, 4, 8, *_COLUMNS)


def _add_options(parser: frame.Parser) -> None:
    parser.games(GAMES)
    parser.several("--algorithms", list(ALGORITHMS), "to measure")
    parser.several("--parts", PARTS, "of the benchmark")
    parser.number("--seconds", 900.0, "of the processor, per method on Rhode Island")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.games if "curves" in options.parts else ():
        for algorithm in options.algorithms:
            row = measure_curve(name, GAMES.get(name, name), algorithm)
            frame.say(f"{name}: {algorithm}: {row['curve'][-1]}")
            yield row
    if "memory" in options.parts:
        for algorithm in ("lp", *options.algorithms):
            yield frame.in_a_process(measure_memory, "liars_dice", algorithm)
    if "rhode island" in options.parts:
        for algorithm in options.algorithms:
            row = frame.in_a_process(measure_large, algorithm, options.seconds)
            frame.say(f"Rhode Island: {algorithm}: {row['curve'][-1]}")
            yield row


def make(form: Any, algorithm: str, dtype: str) -> Solver:
    """A solver of a game in sequence form, full-width or first-order."""
    config = parse_whole(algorithm)
    if isinstance(config, FirstOrderConfig):
        return first_order.make_solver(form, config=config, dtype=dtype)
    assert isinstance(config, spiel_cr.CFRConfig)
    return cfr.make_solver(form, config=config, dtype=dtype)


def products_of(solver: Solver) -> int:
    """Pairs of products with the payoff coupling so far, one in each direction."""
    state = solver.state
    if hasattr(state, "products"):
        return math.ceil(int(state.products) / 2)
    return solver.iterations


def measure_curve(name: str, game: str, algorithm: str) -> Row:
    """NashConv by iterations, seconds and products, at steps that grow by a third.

    Args:
      name: for tables.
      game: OpenSpiel string.
      algorithm: full-width or first-order.
    """
    tree = spiel_cr.compile_game(game)
    solver = make(tree.form, algorithm, "float64")
    curve: list[list[float]] = []
    step, most = 30.0, ALGORITHMS.get(algorithm, 10_000)
    spent = 0.0
    while solver.iterations < most:
        target = min(most, int(step))
        began = time.process_time()
        solver.run(target - solver.iterations)
        spent += time.process_time() - began
        curve.append(
            [solver.iterations, products_of(solver), spent, solver.nash_conv()]
        )
        if curve[-1][-1] < 1e-15:
            break
        step *= 4 / 3
    return {
        "part": "curves",
        "name": name,
        "game": game,
        "algorithm": algorithm,
        "device": jax.default_backend(),
        "curve": curve,
        "nash_conv": curve[-1][-1],
        "compile_seconds": solver.compile_seconds,
        "seed": None,
    }


def measure_memory(game: str, algorithm: str) -> Row:
    """The peak of a process that solves a game, and what it was before the solve.

    Args:
      game: OpenSpiel string.
      algorithm: full-width, first-order, or "lp".
    """
    tree = spiel_cr.compile_game(game)
    start = peak_bytes()
    result = spiel_cr.solve(tree, algorithm, 100)
    return {
        "part": "memory",
        "name": game,
        "game": game,
        "algorithm": algorithm,
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
        "seconds": result.seconds,
        "seed": None,
    }


def measure_large(algorithm: str, seconds: float) -> Row:
    """Rhode Island Hold'em, lossless, in the form of signals, float32.

    Args:
      algorithm: full-width or first-order.
      seconds: of the processor, of iterating.
    """
    frame.one_thread()
    form = form_of(merged(spiel_cr.signal_game(RHODE_ISLAND)))
    trim()
    start = peak_bytes()
    solver = make(form, algorithm, "float32")
    made = peak_bytes()
    curve: list[list[float]] = []
    spent, mark = 0.0, time.process_time()
    due = [look for look in _LOOKS if look <= seconds]

    def point() -> list[float]:
        return [solver.iterations, products_of(solver), spent, solver.nash_conv()]

    def look(_: int) -> bool:
        nonlocal spent, mark
        spent += time.process_time() - mark
        if due and spent >= due[0]:
            while due and spent >= due[0]:
                del due[0]
            curve.append(point())
        mark = time.process_time()  # judging is not counted
        return spent >= seconds

    solver.run(1_000_000, after_chunk=look)
    if not curve or curve[-1][0] < solver.iterations:
        curve.append(point())
    return {
        "part": "rhode island",
        "name": "Rhode Island Hold'em",
        "game": RHODE_ISLAND,
        "algorithm": algorithm,
        "device": jax.default_backend(),
        "curve": curve,
        "process_seconds": spent,
        "clock_seconds": solver.seconds,
        "nash_conv": curve[-1][-1],
        "compile_seconds": solver.compile_seconds,
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
        "made_bytes": made,
        "state_bytes": sum(
            np.asarray(leaf).nbytes for leaf in jax.tree.leaves(solver.state)
        ),
        "seed": None,
    }


def _at(row: Mapping[str, Any], *, products: int) -> str:
    """NashConv at the last point that was judged within this many pairs of products."""
    found = [point[-1] for point in row["curve"] if point[1] <= products]
    return f"{found[-1]:.1e}" if found else "–"


def _after(row: Mapping[str, Any], seconds: float) -> float | None:
    """NashConv at the point that was due after these seconds, if there is one."""
    found = [p for p in row["curve"] if seconds <= p[2] < 1.2 * seconds]
    return found[0][-1] if found else None


def _said_after(row: Mapping[str, Any], *, seconds: float) -> str:
    found = _after(row, seconds)
    return "–" if found is None else f"{found:.3g}"


def markdown(rows: Sequence[Row]) -> str:
    """Tables of curves, of memory, and of Rhode Island Hold'em."""
    parts = frame.group_by(rows, "part")
    text = [f"{frame.sentence(rows[0], ['cpu'])}\n"]
    if "curves" in parts:
        text.append(
            "NashConv at the last point that was judged within the given number of "
            "pairs of products with the payoffs. A method that ended earlier has its "
            "last value in all later columns.\n"
        )
        columns: dict[str, document.Column] = {
            "game": "{name}",
            "algorithm": "`{algorithm}`",
        }
        for count in (1_000, 3_000, 10_000, 100_000):
            columns[f"{count:,}".replace(",", " ")] = functools.partial(
                _at, products=count
            )
        columns["last"] = lambda row: f"{row['curve'][-1][-1]:.1e}"
        columns["iterations"] = lambda row: f"{row['curve'][-1][0]:,}"
        columns["CPU seconds"] = lambda row: f"{row['curve'][-1][2]:.1f}"
        text.append(table(parts["curves"], columns, labels=2))
    if "memory" in parts:
        text.append("Memory of a process, `liars_dice`.\n")
        columns = {"algorithm": "`{algorithm}`", **document.MEMORY}
        text.append(table(parts["memory"], columns))
    if "rhode island" in parts:
        found = parts["rhode island"]
        text.append(
            "Rhode Island Hold'em, 7 969 classes of signals, float32: NashConv in chips"
            " after the given seconds of the processor, without those of judging.\n"
        )
        columns = {"algorithm": "`{algorithm}`"}
        for count in _COLUMNS:
            if any(_after(row, count) is not None for row in found):
                columns[f"{count} s"] = functools.partial(_said_after, seconds=count)
        columns |= {
            "iterations": lambda row: f"{row['curve'][-1][0]:,}",
            "pairs of products": lambda row: f"{row['curve'][-1][1]:,}",
            "on the clock, s": lambda row: f"{row['clock_seconds']:.0f}",
            "load": lambda row: f"{row['load']:.0f}",
            "state, MB": lambda row: f"{row['state_bytes'] / 1e6:.0f}",
            "peak, MB": lambda row: f"{row['peak_bytes'] / 1e6:.0f}",
            "before the solver, MB": lambda row: f"{row['start_bytes'] / 1e6:.0f}",
        }
        text.append(table(found, columns))
    return "\n".join(text)


def _draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """One picture per game: NashConv by products, or by seconds; straight lines."""
    if not options.markdown:
        return
    parts = frame.group_by(rows, "part")
    if small := parts.get("curves"):
        games = frame.group_by(small, "name")
        drawn = {
            game: {row["algorithm"]: _points(row, 1) for row in mine}
            for game, mine in games.items()
        }
        _picture(drawn, "pairs of products", "first-order.png", options)
        # Linear convergence is a straight line where only one axis is logarithmic.
        lines = {}
        for row in small:
            if row["algorithm"] in ("pdhg", "iterated-smoothing"):
                points = _points(row, 1)
                last = points[-1][0]
                label = f"{row['algorithm']}, {row['name']}, {last:,}"
                lines[label] = [(x / last, y) for x, y in points]
        words = "share of the pairs of products"
        _picture({"": lines}, words, "first-order-linear.png", options, xscale="linear")
    if large := parts.get("rhode island"):
        lines = {row["algorithm"]: _points(row, 2) for row in large}
        _picture(
            {large[0]["name"]: lines},
            *("seconds of the processor", "first-order-rhode-island.png", options),
        )


def _points(row: Row, column: int) -> list[tuple[float, float]]:
    """A column of a curve, and NashConv; what rounding leaves is not drawn."""
    return [(p[column], p[-1]) for p in row["curve"] if p[-1] > 1e-15]


def _picture(
    drawn: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    words: str,
    name: str,
    options: argparse.Namespace,
    *,
    xscale: str = "log",
) -> None:
    """Lines by their labels, one axis per title, side by side."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(drawn), figsize=(1 + 5 * len(drawn), 4), squeeze=False
    )
    for axis, (title, lines) in zip(axes[0], drawn.items(), strict=True):
        for label, points in lines.items():
            axis.plot(*zip(*points, strict=True), label=label)
        axis.set(title=title, xlabel=words, xscale=xscale, yscale="log")
    axes[0][0].set_ylabel("NashConv")
    axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    path = document.image_path(options, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


BENCHMARK = frame.Benchmark(
    "first_order",
    "Measure first-order methods beside CFR and linear programs.",
    _add_options,
    _measure,
    markdown,
    tables="first-order",
    page="first-order.md",
    finish=_draw,
    group=lambda row: (row["part"], row["name"], row["algorithm"]),
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
