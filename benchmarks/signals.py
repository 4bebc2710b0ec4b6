"""Signal games: how long they take, how that grows, and a river beside OpenSpiel.

OpenSpiel's solvers cannot take a river with ranges: they step into the impossible ones
of the 1 624 350 deals that `handReaches` makes, and stop with an error. So the range is
every hand of a deck, and decks grow.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import spiel_cr
from benchmarks.document import PEAK_GB, Column, Panels, count, spaced
from benchmarks.frame import Benchmark, Option, Part, Picture, Row, Table, plan
from benchmarks.games import game_of, string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.games.opening.estimate import estimate_histories


class Goal(NamedTuple):
    """NashConv to stop at, in the game's units, and those whose time is reported."""

    until: float
    marks: tuple[float, ...]


# Exploitability is half of NashConv: 0.1 % of a pot of 200, 0.5 % of one of 80.
GOALS = {
    "rhode_island": Goal(0.002, (1.0, 0.1, 0.02, 0.002)),
    "liars_dice2x5": Goal(1e-3, (0.1, 0.01, 1e-3)),
    "river": Goal(0.04, (4.0, 0.4)),
    "turn": Goal(0.08, (8.0, 0.8)),
}
# Iterations of games that grow.
_GROWN = 400
# Trees with more histories are not compiled beside.
_MOST_COMPILED = 2_000_000
_DTYPES = ("float32", "float64")
OPTIONS = {
    "games": Option(tuple(GOALS), "what to solve", tuple(GOALS)),
    "decks": Option(
        ("3x2", "4x3", "6x3", "9x4", "13x4"),
        "ranks and suits of Rhode Island Hold'em, to see it grow",
    ),
    "dtype": Option("float32", "of what is solved", _DTYPES),
    "seconds": Option(900.0, "of iterating, at most, of each game"),
}


def measure_solve(game: str, dtype: str, seconds: float) -> Row:
    """Solves one game in its signal form by dcfr.

    Args:
      game: one of `GOALS`.
      dtype: of the solver.
      seconds: of iterating, at most.
    """
    goal = GOALS[game]
    began = time.perf_counter()
    result = spiel_cr.solve(
        string_of(game),
        "dcfr",
        spiel_cr.Goal(seconds=seconds, until=goal.until),
        layout=spiel_cr.Layout("signals"),
        dtype=dtype,
    )
    low, high = result.value_bounds()
    reached = {
        str(mark): [p.seconds for p in result.curve if p.nash_conv <= mark][:1]
        for mark in goal.marks
    }
    return {
        **_facts(result),
        "whole_seconds": time.perf_counter() - began,
        "nash_conv": high - low,
        "value_bounds": (low, high),
        "peak_bytes": peak_bytes(),
        "marks": reached,
        "curve": [[p.seconds, p.nash_conv] for p in result.curve],
    }


def measure_growth(deck: str, dtype: str) -> Row:
    """Solves Rhode Island Hold'em with one deck for a fixed number of iterations.

    Args:
      deck: ranks and suits, as "13x4".
      dtype: of the solver.
    """
    ranks, suits = deck.split("x")
    game = f"python_rhode_island_holdem(num_ranks={ranks},num_suits={suits})"
    result = spiel_cr.solve(
        game, "dcfr", _GROWN, layout=spiel_cr.Layout("signals"), dtype=dtype
    )
    row: Row = {
        **_facts(result),
        "infosets": sum(len(decisions) for decisions in result.laid_out()[0].decisions),
        "nash_conv": result.nash_conv(),
        "peak_bytes": peak_bytes(),
    }
    estimate = estimate_histories(game_of(game), rollouts=20)
    if estimate < _MOST_COMPILED:
        began = time.perf_counter()
        tree = spiel_cr.compile_game(game)
        walked = time.perf_counter() - began
        compiled = spiel_cr.solve(
            tree, "dcfr", _GROWN, layout=spiel_cr.Layout("compiled"), dtype=dtype
        )
        row["histories"] = len(tree.histories)
        row["compiled_build_seconds"] = walked
        row["compiled_each"] = compiled.seconds / compiled.iterations
        row["compiled_nash_conv"] = compiled.nash_conv()
    return row


def _facts(result: Any) -> Row:
    names = "iterations seconds build_seconds compile_seconds".split()
    facts = {name: getattr(result, name) for name in names}
    return {**facts, "each": result.seconds / result.iterations}


def _curves(rows: Sequence[Row]) -> Panels:
    return {"NashConv of signal games, dcfr": {r["game"]: r["curve"] for r in rows}}


def _reached(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{mark}: {spaced(at[0]) if at else '–'}" for mark, at in row["marks"].items()
    )


def _milliseconds(name: str) -> Column:
    return lambda row: spaced(1e3 * row[name])


_SOLVED: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "`dcfr`, {dtype}",
    "build, s": "{build_seconds:.1f}",
    "jit, s": "{compile_seconds:.1f}",
    "iterations": count("iterations"),
    "ms each": _milliseconds("each"),
    "NashConv reached after s of iterating": _reached,
    "NashConv": "{nash_conv:.2e}",
    "value, player 0": "{value_bounds[0]:+.5f} … {value_bounds[1]:+.5f}",
    "whole, s": "{whole_seconds:.0f}",
    **PEAK_GB,
}
_GROWTH: dict[str, Column] = {
    "ranks x suits": "{deck}",
    "histories": count("histories"),
    "infosets of both": count("infosets"),
    "build, s": "{build_seconds:.1f}",
    "ms an iteration": _milliseconds("each"),
    "NashConv": "{nash_conv:.2e}",
    **PEAK_GB,
    "compiled: build, s": "{compiled_build_seconds:.1f}",
    "ms an iteration then": _milliseconds("compiled_each"),
    "NashConv then": "{compiled_nash_conv:.2e}",
}
BENCHMARK = Benchmark(
    "signals",
    "Measure signal games: Rhode Island Hold'em, liar's dice, rivers and turns.",
    OPTIONS,
    {
        "solve": Part(
            measure_solve,
            plan(game="games", dtype="dtype", seconds="seconds"),
            (Table("Solved.", _SOLVED),),
            (Picture("signals-convergence.png", "seconds of iterating", _curves),),
        ),
        "size": Part(
            measure_growth,
            plan(deck="decks", dtype="dtype"),
            (
                Table(
                    f"Rhode Island Hold'em by its deck, {_GROWN} iterations of `dcfr`.",
                    _GROWTH,
                ),
            ),
        ),
    },
)
