"""Signal games: how long they take; endgames of Libratus by several algorithms.

OpenSpiel's solvers cannot take a river with ranges: they step into the impossible ones
of the 1 624 350 deals that `handReaches` makes, and stop with an error. So the range is
every hand.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import spiel_cr
from benchmarks.automatic import hs_dcfr
from benchmarks.document import PEAK_GB, WHO, Column, Panels, count, spaced
from benchmarks.frame import Benchmark, Option, Part, Picture, Row, Table, plan
from benchmarks.games import ENDGAMES, endgame, string_of
from spiel_cr.common.memory import peak_bytes


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
_FACTS = ("iterations", "seconds", "build_seconds", "compile_seconds")
_DTYPES = ("float32", "float64")
OPTIONS = {
    "games": Option(tuple(GOALS), "what to solve", tuple(GOALS)),
    "dtype": Option("float32", "of what is solved", _DTYPES),
    "seconds": Option(900.0, "of iterating, at most, of each game"),
    "endgames": Option(tuple(ENDGAMES), "of part endgames", tuple(ENDGAMES)),
    "folder": Option("endgames", "of OpenSpiel's sources, with files subgame1.txt ..."),
    "algorithms": Option(
        ("dcfr", "pdcfr+", "cfr+", "sapcfr+", "dcfr+", "hs-dcfr"), "of part endgames"
    ),
    "iterations": Option(1000, "of part endgames, and of its schedules"),
}
# Exploitability that is looked for, as shares of the pot.
_SHARES = (0.01, 0.001)


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
        **{name: getattr(result, name) for name in _FACTS},
        "each": result.seconds / result.iterations,
        "whole_seconds": time.perf_counter() - began,
        "nash_conv": high - low,
        "value_bounds": (low, high),
        "peak_bytes": peak_bytes(),
        "marks": reached,
        "curve": [[p.seconds, p.nash_conv] for p in result.curve],
    }


def measure_endgame(
    game: str, algorithm: str, iterations: int, dtype: str, folder: str
) -> Row:
    """When an algorithm reaches an exploitability of 1 % and of 0.1 % of the pot.

    Args:
      game: one of `ENDGAMES`.
      algorithm: of `solve`, or "hs-dcfr" with gamma 2, whose schedule is over all
        iterations.
      iterations: at most.
      dtype: of the solver.
      folder: see `games.endgame`.
    """
    pot = ENDGAMES[game][0]
    result = spiel_cr.solve(
        endgame(game, folder),
        hs_dcfr(iterations, 2) if algorithm == "hs-dcfr" else algorithm,
        spiel_cr.Goal(iterations, until=2 * min(_SHARES) * pot, eval_every=5),
        layout=spiel_cr.Layout("signals"),
        dtype=dtype,
    )
    # Exploitability is half of NashConv.
    curve = [(p.iterations, p.seconds, p.nash_conv / 2 / pot) for p in result.curve]
    reached = {
        f"at {share:.1%}": next((p[:2] for p in curve if p[2] <= share), None)
        for share in _SHARES
    }
    low, high = result.value_bounds()
    last = {"iterations": result.iterations, "percent": 50 * (high - low) / pot}
    return {**reached, **last, "value_bounds": (low, high), "peak_bytes": peak_bytes()}


def _at(share: float) -> Column:
    """Iterations and seconds; a dash where they were not enough."""
    return lambda row: "{} ({:.3g} s)".format(*row[f"at {share:.1%}"])


def _curves(rows: Sequence[Row]) -> Panels:
    return {"NashConv of signal games, dcfr": {r["game"]: r["curve"] for r in rows}}


def _reached(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{mark}: {spaced(at[0]) if at else '–'}" for mark, at in row["marks"].items()
    )


_SOLVED: dict[str, Column] = {
    "game": "{game}",
    "algorithm": "`dcfr`, {dtype}",
    "build, s": "{build_seconds:.1f}",
    "jit, s": "{compile_seconds:.1f}",
    "iterations": count("iterations"),
    "ms each": lambda row: spaced(1e3 * row["each"]),
    "NashConv reached after s of iterating": _reached,
    "NashConv": "{nash_conv:.2e}",
    "value, player 0": "{value_bounds[0]:+.5f} … {value_bounds[1]:+.5f}",
    "whole, s": "{whole_seconds:.0f}",
    **PEAK_GB,
}
_ENDGAMES: dict[str, Column] = {
    **WHO,
    **{
        f"iterations (seconds) to {share:.1%} of the pot": _at(share)
        for share in _SHARES
    },
    "iterations": count("iterations"),
    "% of the pot then": "{percent:.3f}",
    "value, player 0": "{value_bounds[0]:+.3f} … {value_bounds[1]:+.3f}",
    **PEAK_GB,
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
        "endgames": Part(
            measure_endgame,
            plan(
                game="endgames",
                algorithm="algorithms",
                iterations="iterations",
                dtype="dtype",
                folder="folder",
            ),
            (Table("Endgames of Libratus.", _ENDGAMES, 2),),
            budget=("folder",),
        ),
    },
)
