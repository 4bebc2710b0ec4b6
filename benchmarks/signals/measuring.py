"""Signal games: how long they take, how that grows, and what the form itself gains.

Run `python -m benchmarks.signals --help`. See docs/signals.md for what is measured.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
from benchmarks import document
from benchmarks.document import Column, spaced, table
from benchmarks.frame import Benchmark, Parser, Row, in_a_process, say, sentence
from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.cfr.solver import Solver
from spiel_cr.common import memory
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.eval.reporting import plots
from spiel_cr.policies.result import CurvePoint
from spiel_cr.signals import form as signal_forms
from spiel_cr.signals.detecting.detection import locate


class Plan(NamedTuple):
    """How a game is solved.

    Attributes:
      game: OpenSpiel string.
      algorithm: of `spiel_cr.solve`.
      until: NashConv to stop at, in the game's units.
      marks: NashConv whose time is reported, descending.
    """

    game: str
    algorithm: str
    until: float
    marks: tuple[float, ...]


_HOLDEM = (
    "numPlayers=2,numRounds=4,firstPlayer=2 1 1 1,numSuits=4,numRanks=13,"
    "numHoleCards=2,numBoardCards=0 3 1 1"
)
# A pot of 200 chips, 1 700 behind: bets of half the pot, of the pot, and all in make
# 44 decisions.
RIVER = (
    f"universal_poker(betting=nolimit,{_HOLDEM},blind=100 50,stack=1800 1800,"
    f"bettingAbstraction=fchpa,potSize=200,boardCards=5c9dJs2h3c)"
)
TURN = (
    f"universal_poker(betting=limit,{_HOLDEM},blind=10 5,raiseSize=10 10 20 20,"
    f"maxRaises=3 4 4 4,bettingAbstraction=fcpa,potSize=80,boardCards=5c9dJs2h)"
)
# Exploitability is half of NashConv: 0.1 % of a pot of 200, 0.5 % of one of 80.
PLANS = {
    "rhode island": Plan(
        "python_rhode_island_holdem", "dcfr", 0.002, (1.0, 0.1, 0.02, 0.002)
    ),
    "liar's dice 2x5": Plan(
        "liars_dice(numdice=2,dice_sides=5)", "dcfr", 1e-3, (0.1, 0.01, 1e-3)
    ),
    "river": Plan(RIVER, "dcfr", 0.04, (4.0, 0.4)),
    "turn": Plan(TURN, "dcfr", 0.08, (8.0, 0.8)),
}
# Decks of Rhode Island Hold'em, by ranks and suits.
_DECKS = ((3, 2), (4, 3), (6, 3), (9, 4), (13, 4))
_COMPILED = (
    "kuhn_poker",
    "leduc_poker",
    "python_leduc_poker(stack0=13,stack1=13,max_raises=2,num_ranks=3)",
    "liars_dice(numdice=1,dice_sides=4)",
    "liars_dice(numdice=1,dice_sides=6)",
)
_PARTS = ("solve", "size", "speed")
# Iterations after which iterates are compared, and of those that grow.
_COMPARED, _GROWN = 20, 400
_WINDOWS, _WINDOW_SECONDS = 5, 1.0
# Trees with more histories are not compiled beside.
_MOST_COMPILED = 2_000_000


def _add_options(parser: Parser) -> None:
    parser.several("--parts", _PARTS, "what to measure")
    parser.several("--games", PLANS, "what to solve")
    parser.strings(
        "--decks",
        [f"{ranks}x{suits}" for ranks, suits in _DECKS],
        "ranks and suits of Rhode Island Hold'em, to see it grow",
    )
    parser.strings("--compiled", _COMPILED, "games to solve in both forms")
    parser.choice("--dtype", ("float32", "float64"), "float32", "of what is solved")
    parser.number("--seconds", 900.0, "of iterating, at most, of each game")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    if "solve" in options.parts:
        for name in options.games:
            say(name)
            found = in_a_process(_solve, name, options.dtype, options.seconds)
            yield {"part": "solve", "name": name, **found}
    if "size" in options.parts:
        for deck in options.decks:
            say(f"Rhode Island Hold'em, {deck}")
            found = in_a_process(_grow, deck, options.dtype)
            yield {"part": "size", "name": deck, **found}
    if "speed" in options.parts:
        for game in options.compiled:
            say(game)
            yield {"part": "speed", "name": game, **in_a_process(_speed, game)}


def _solve(name: str, dtype: str, seconds: float) -> Row:
    """Solves one game in its signal form."""
    plan = PLANS[name]
    began, cpu = time.perf_counter(), time.process_time()
    result = spiel_cr.solve(
        plan.game,
        plan.algorithm,
        form="signals",
        dtype=dtype,
        until=plan.until,
        seconds=seconds,
    )
    spent = time.perf_counter() - began
    low, high = result.value_bounds()
    return {
        "game": plan.game,
        "algorithm": plan.algorithm,
        "dtype": dtype,
        "iterations": result.iterations,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "build_seconds": result.build_seconds,
        "whole_seconds": spent,
        "cpu_seconds": time.process_time() - cpu,
        "nash_conv": high - low,
        "value_bounds": (low, high),
        "peak_bytes": memory.peak_bytes(),
        "marks": {
            str(mark): next(
                (point.seconds for point in result.curve if point.nash_conv <= mark),
                None,
            )
            for mark in plan.marks
        },
        "curve": [point._asdict() for point in result.curve],
    }


def _grow(deck: str, dtype: str) -> Row:
    """Solves Rhode Island Hold'em with one deck for a fixed number of iterations."""
    ranks, suits = deck.split("x")
    game = f"python_rhode_island_holdem(num_ranks={ranks},num_suits={suits})"
    began = time.perf_counter()
    result = spiel_cr.solve(game, "dcfr", _GROWN, form="signals", dtype=dtype)
    row: Row = {
        "game": game,
        "dtype": dtype,
        "iterations": result.iterations,
        "infosets": sum(len(own) for own in result.form.decisions),
        "build_seconds": result.build_seconds,
        "compile_seconds": result.compile_seconds,
        "per_iteration": result.seconds / result.iterations,
        "nash_conv": result.nash_conv(),
        "peak_bytes": memory.peak_bytes(),
        "whole_seconds": time.perf_counter() - began,
    }
    estimate = memory.estimate_histories(spiel_cr.load_game(game), rollouts=20)
    if estimate < _MOST_COMPILED:
        began = time.perf_counter()
        tree = compile_game(game)
        walked = time.perf_counter() - began
        compiled = spiel_cr.solve(tree, "dcfr", _GROWN, form="compiled", dtype=dtype)
        row["histories"] = len(tree.histories)
        row["compiled_build_seconds"] = walked
        row["compiled_per_iteration"] = compiled.seconds / compiled.iterations
        row["compiled_nash_conv"] = compiled.nash_conv()
    return row


def _speed(game: str) -> Row:
    """Iterations per second in both forms, in turn; how far the iterates are apart."""
    tree = compile_game(game)
    found = locate(tree)
    form = signal_forms.form_of(found.game)
    both = {
        "compiled": _solver(tree.form),
        "signals": _solver(form),
    }
    for solver in both.values():
        solver.run(_COMPARED)
    difference = max(
        float(
            np.abs(
                both["compiled"].average(p)
                - both["signals"].average(p)[found.sequences[p]]
            ).max()
        )
        for p in range(2)
    )
    rates: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(_WINDOWS):
        for name, solver in both.items():
            iterations, seconds = solver.iterations, solver.seconds
            solver.run_until(time.perf_counter() + _WINDOW_SECONDS)
            done = solver.iterations - iterations
            rates[name].append(done / (solver.seconds - seconds))
    medians = {name: statistics.median(measured) for name, measured in rates.items()}
    return {
        "difference": difference,
        "compiled_per_second": medians["compiled"],
        "signals_per_second": medians["signals"],
        "ratio": medians["signals"] / medians["compiled"],
        "entries": len(tree.form.payoffs.values),
    }


def _solver(form: Any) -> Solver:
    return cfr.make_solver(form, config=parse_algorithm("cfr+"))


_SOLVED: dict[str, Column] = {
    "game": "{name}",
    "algorithm": "`{algorithm}`, {dtype}",
    "build, s": "{build_seconds:.1f}",
    "jit, s": "{compile_seconds:.1f}",
    "iterations": lambda row: spaced(row["iterations"]),
    "ms each": lambda row: spaced(1e3 * row["seconds"] / row["iterations"]),
    "NashConv reached after s of iterating": lambda row: ", ".join(
        f"{mark}: {'–' if at is None else spaced(at)}"
        for mark, at in row["marks"].items()
    ),
    "NashConv": "{nash_conv:.2e}",
    "value, player 0": lambda row: (
        f"{row['value_bounds'][0]:+.5f} … {row['value_bounds'][1]:+.5f}"
    ),
    "whole, s": "{whole_seconds:.0f}",
    "peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
}
_SIZES: dict[str, Column] = {
    "ranks x suits": "{name}",
    "histories": lambda row: spaced(row["histories"]),
    "infosets of both": lambda row: spaced(row["infosets"]),
    "build, s": "{build_seconds:.1f}",
    "ms an iteration": lambda row: spaced(1e3 * row["per_iteration"]),
    "NashConv": "{nash_conv:.2e}",
    "peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
    "compiled: build, s": "{compiled_build_seconds:.1f}",
    "ms an iteration then": lambda row: spaced(1e3 * row["compiled_per_iteration"]),
    "NashConv then": "{compiled_nash_conv:.2e}",
}
_SPEEDS: dict[str, Column] = {
    "game": "`{name}`",
    "payoffs": lambda row: spaced(row["entries"]),
    "iterations/s compiled": lambda row: spaced(row["compiled_per_second"]),
    "by signals": lambda row: spaced(row["signals_per_second"]),
    "ratio": "{ratio:.2f}",
    "iterates apart by": "{difference:.0e}",
}
_TITLES = {
    "solve": ("Solved.", _SOLVED),
    "size": (
        f"Rhode Island Hold'em by its deck, {_GROWN} iterations of `dcfr`.",
        _SIZES,
    ),
    "speed": ("CFR+ in both forms, float64, in turn; medians.", _SPEEDS),
}


def _markdown(rows: Sequence[Row]) -> str:
    text = [f"{sentence(rows[0], ['cpu'])}\n"]
    for part, (title, columns) in _TITLES.items():
        mine = [row for row in rows if row["part"] == part]
        if mine:
            text.append(f"{title}\n\n{table(mine, columns)}")
    return "\n".join(text)


def _draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """The curves of what was solved."""
    curves = {
        row["name"]: [CurvePoint(**point) for point in row["curve"]]
        for row in rows
        if row["part"] == "solve"
    }
    if options.markdown and curves:
        path = document.image_path(options, "signals-convergence.png")
        plots.plot_curves(curves, path, title="NashConv of signal games, dcfr")


BENCHMARK = Benchmark(
    "signals",
    "Measure signal games: Rhode Island Hold'em, liar's dice, rivers and turns.",
    _add_options,
    _measure,
    _markdown,
    finish=_draw,
    group=lambda row: (row["part"], row["name"]),
)
