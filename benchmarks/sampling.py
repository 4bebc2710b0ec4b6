"""Sampled solvers against their peers."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.document import Column, Panels, count, rates, ratio, spaced
from benchmarks.frame import Benchmark, Option, Part, Picture, Row, Table
from benchmarks.race import Plan, failures, lines, race
from spiel_cr.solvers.algorithms import CFR, MCCFR, find
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig

OUTCOME, EXTERNAL = "openspiel-os-mccfr", "openspiel-es-mccfr"
_OPENSPIEL = (OUTCOME, EXTERNAL, "openspiel-os-mccfr-python")
SOLVERS = (
    *_OPENSPIEL,
    "os-mccfr",
    # Only batches set this one apart from OpenSpiel's outcome sampling.
    "os-mccfr(averaging=sampled)",
    "os-mccfr(batch=1)",
    "es-mccfr",
    "vr-mccfr",
    "vr-mccfr+",
    "evr-mccfr",
    "evr-mccfr(batch=1)",
    # Full width, for scale.
    "cfr+",
)
# Points of a curve; each has twice the seconds of the one before.
_POINTS = 8
OPTIONS = {
    "games": Option(
        ("leduc", "goofspiel5", "liars_dice6", "battleship"),
        "short names, or OpenSpiel strings",
    ),
    "solvers": Option(SOLVERS, "any of spiel_cr or OpenSpiel that `compare` knows"),
    "seconds": Option(10.0, "budget of a solve"),
    "seeds": Option(5, "solves of each solver that samples"),
    "repeats": Option(3, "windows in which trajectories are counted"),
    "window": Option(
        None, "seconds of one (default: a twentieth of --seconds)", kind=float
    ),
}


def _plan(options: argparse.Namespace, *, solves: bool) -> Iterator[Row]:
    window = options.window or options.seconds / 20
    plan = Plan(0.0, options.repeats, window)
    solvers = [name for name in options.solvers if solves or trajectories(name)]
    if solves:
        plan = Plan(options.seconds, 0, window, options.seeds, _POINTS)
    for game in options.games:
        yield {"game": game, "solvers": solvers, "plan": plan}


def _check(options: argparse.Namespace) -> None:
    for name in options.solvers:
        trajectories(name)


def trajectories(name: str) -> int:
    """Of one iteration, for both players together; 0 if it is full width."""
    if name.startswith("openspiel"):
        return 2
    config = find(name, families=(CFR, MCCFR)).config
    return 2 * config.batch if isinstance(config, MCCFRConfig) else 0


def _lines(rows: Sequence[Row], value: str) -> list[Row]:
    """Lines with ratios of a value to those of OpenSpiel's C++ solvers on the game."""
    found = []
    for line in (line for line in lines(rows) if "missing" not in line):
        each = trajectories(line["solver"])
        line["trajectories"] = each * line.get("iterations", 0)
        for name in ("rate", "least", "most"):
            line[name] = each * line.get(name, 0.0)
        if line.get("busy"):
            line["per_core"] = line["rate"] / line["busy"]
        found.append(line)
    base = {(line["game"], line["solver"]): line.get(value) for line in found}
    for line in found:
        for peer in (OUTCOME, EXTERNAL):
            line[peer] = ratio(line[value], base.get((line["game"], peer)))
    return found


def _curves(rows: Sequence[Row]) -> Panels:
    """NashConv over seconds, the first seed of each solver, a panel for each game."""
    return {
        race["game"]: {
            run["title"]: [(s, value) for _, s, value in run["solves"][0]["curve"]]
            for run in race["runs"]
            if run.get("solves")
        }
        for race in rows
    }


def _compile(row: Mapping[str, Any]) -> str:
    return f"{row['compile_seconds']:.1f}" if row["family"] == "spiel_cr" else "none"


_RATES: dict[str, Column] = {
    "solver": "{title}",
    "compile, s": _compile,
    "trajectories/s (least to most)": rates,
    "÷ C++ outcome": f"{{{OUTCOME}}}",
    "cores busy": "{busy:.1f}",
    "per core": count("per_core"),
}
_QUALITY: dict[str, Column] = {
    "solver": "{title}",
    "compile, s": _compile,
    "trajectories": lambda row: (
        spaced(row["trajectories"]) if row["trajectories"] else "full width"
    ),
    "NashConv (least to most)": "{nash_conv:.2e}{spread}",
    "÷ C++ outcome": f"{{{OUTCOME}}}",
    "÷ C++ external": f"{{{EXTERNAL}}}",
}
BENCHMARK = Benchmark(
    "sampling",
    "Measure spiel_cr's sampled solvers beside OpenSpiel's.",
    OPTIONS,
    {
        "rates": Part(
            race,
            lambda options: _plan(options, solves=False),
            (
                Table(
                    "Trajectories per second, in interleaved windows.",
                    _RATES,
                    lines=lambda rows: _lines(rows, "rate"),
                    per="game",
                ),
            ),
            budget=("solvers", "plan"),
        ),
        "quality": Part(
            race,
            lambda options: _plan(options, solves=True),
            (
                Table(
                    "NashConv after equal seconds, medians of seeds; ratios are of "
                    "medians, below 1 is better than OpenSpiel's.",
                    _QUALITY,
                    lines=lambda rows: _lines(rows, "nash_conv"),
                    per="game",
                ),
            ),
            (Picture("sampling-curves.png", "seconds of iterating", _curves),),
            budget=("solvers", "plan"),
        ),
    },
    check=_check,
    failures=failures,
)
