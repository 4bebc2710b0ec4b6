"""The default algorithm beside each of those that it chooses among, and schedules.

See docs/measurements/automatic.md.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import spiel_cr
from benchmarks.document import Column
from benchmarks.frame import Benchmark, Option, Part, Row, Table, product
from benchmarks.games import string_of
from spiel_cr.solvers.solve import lay_out, task_of

# The first twelve made the choice. The next seven were taken afterwards; after a look
# at them that of signals was changed, and a third candidate was added. So the last six
# were taken then.
GAMES = (
    "kuhn leduc ii_goofspiel4 ii_goofspiel5 goofspiel4 goofspiel5 liars_dice4 "
    "liars_dice6 princess5 latent_ttt river "
    "python_rhode_island_holdem(num_ranks=3,num_suits=2) "
    "battleship leduc_13_ranks liars_dice5 princess7 python_scotland_yard "
    "python_poker_spot python_rhode_island_holdem(num_ranks=4,num_suits=2) "
    "leduc_7_ranks leduc_9_chips princess4 liars_dice(numdice=2,dice_sides=3) "
    "turn_based_simultaneous_game(game=oshi_zumo(coins=4,size=1,horizon=6)) "
    "dark_hex(num_rows=2,num_cols=3)"
).split()
NAMES = ("cfr+", "dcfr", "hs-dcfr", "dcfr+", "pcfr+", "pcfr+30", "pdcfr+", "sapcfr+")
# What is less than this, in payoffs' range, is rounding.
_FLOOR = 1e-12


# Settings that are not shipped, such as schedules as published, over all of a run; with
# one of averages, too, gamma is about 27 at its end.
TRIALS = (
    "hs-dcfr(alpha=4,ramp=all,gamma=2)",
    "hs-dcfr(alpha=4,ramp=all,gamma=27)",
    "sapcfr+(prediction=0.3333)",
    "pdcfr+(prediction=0.3333)",
    "pcfr+(gamma=27)",
)


def measure(game: str, goal: Mapping[str, float]) -> Row:
    """Solves a game by the default and by all others, with one budget.

    Args:
      game: OpenSpiel string or short name.
      goal: fields of a `Goal`.
    """
    budget = spiel_cr.Goal(**goal)  # type: ignore[arg-type]
    laid = lay_out(string_of(game), task_of("cfr+"))
    algorithms: dict[str, Any] = {name: name for name in ("auto", *NAMES)}
    if budget.iterations is not None:
        last = str(budget.iterations)
        algorithms |= {name: name.replace("all", last) for name in TRIALS}
    results = {
        name: spiel_cr.solve(laid, how, budget) for name, how in algorithms.items()
    }
    auto = results["auto"]
    found = {name: result.nash_conv() for name, result in results.items()}
    span = auto.game.max_utility() - auto.game.min_utility()
    return {
        "form": laid.form,
        "chosen": auto.algorithm,
        "reason": auto.reason,
        "found": found,
        "floor": _FLOOR * span,
    }


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    goals = [{"iterations": n} for n in options.iterations if n]
    goals += [{"seconds": s} for s in options.seconds if s]
    yield from product(game=options.games, goal=goals)


def _ratio(row: Row, name: str) -> float:
    """NashConv over that of the best algorithm that is shipped; both above rounding."""
    shipped = [v for k, v in row["found"].items() if k not in TRIALS]
    low: float = max(min(shipped), row["floor"])
    return max(float(row["found"][name]), row["floor"]) / low


def _lines(rows: Sequence[Row]) -> list[Row]:
    lines = []
    for row in rows:
        what, value = next(iter(row["goal"].items()))
        ratios = {name: _ratio(row, name) for name in row["found"]}
        lines.append({**row, "budget": f"{value:g} {what}", "ratios": ratios})
    return lines


def _summary(rows: Sequence[Row]) -> list[Row]:
    """Of each algorithm: how often it is near the best one."""
    runs: dict[str, list[float]] = {}
    for line in _lines(rows):
        for name, ratio in line["ratios"].items():
            runs.setdefault(name, []).append(ratio)
    return [
        {
            "name": name,
            "near": sum(ratio <= 2 for ratio in its) / len(its),
            "far": sum(ratio > 10 for ratio in its),
            "most": max(its),
            "runs": len(its),
        }
        for name, its in runs.items()
    ]


_RUNS: dict[str, Column] = {
    "game": "{game}",
    "budget": "{budget}",
    "form": "{form}",
    "chosen": "{chosen}",
    "NashConv of auto": "{found[auto]:.2e}",
    **{name: f"{{ratios[{name}]:.3g}}" for name in ("auto", *NAMES, *TRIALS)},
}
_SUMMARY: dict[str, Column] = {
    "algorithm": "{name}",
    "runs": "{runs}",
    "at most twice the best": "{near:.0%}",
    "above 10 times": "{far}",
    "at most": "{most:.3g}",
}
BENCHMARK = Benchmark(
    "automatic",
    "The default algorithm beside each of those that it chooses among.",
    {
        "games": Option(tuple(GAMES), "short names, or OpenSpiel strings"),
        "iterations": Option((1000,), "budgets of iterations; 0: none", least=0),
        "seconds": Option((1.0, 10.0, 60.0), "budgets of seconds; 0: none", least=0),
    },
    {
        "auto": Part(
            measure,
            _plan,
            (
                Table("All budgets together.", _SUMMARY, lines=_summary),
                Table(
                    "NashConv in units of the best algorithm that is shipped.",
                    _RUNS,
                    4,
                    _lines,
                ),
            ),
            budget=(),
        )
    },
)
