"""Full-width solvers against their peers."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.document import Column, count, rates, ratio, spaced
from benchmarks.frame import Benchmark, Option, Part, Row, Table
from benchmarks.race import Plan, failures, lines, race

GAMES = ("kuhn", "leduc", "goofspiel4", "goofspiel5", "liars_dice4", "liars_dice6")
# The yardstick stands beside the one that is held to it.
SOLVERS = tuple(
    "cfr+ c cfr+/float32 cfr lcfr dcfr pcfr+ pdcfr+ lp openspiel-cpp openspiel-python "
    "openspiel-jax liteefg".split()
)
OPTIONS = {
    "games": Option(GAMES, "short names, or OpenSpiel strings"),
    "solvers": Option(SOLVERS, "or any algorithm of `compare`; /float32 behind it"),
    "seconds": Option(10.0, "solving budget before NashConv is taken"),
    "repeats": Option(3, "interleaved windows for iterations/s"),
    "window": Option(
        None, "seconds of one (default: a fifth of --seconds)", kind=float
    ),
}


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    window = options.window or options.seconds / 5
    plan = Plan(options.seconds, options.repeats, window)
    for game in options.games:
        yield {"game": game, "solvers": options.solvers, "plan": plan}


def _compared(rows: Sequence[Row]) -> list[Row]:
    """Lines with the yardstick and the fastest bundled solver of their game."""
    found = []
    for line in lines(rows):
        its = [other for other in lines(rows) if other["game"] == line["game"]]
        found.append(
            {**line, "c": _fastest(its, "c"), "bundled": _fastest(its, "openspiel")}
        )
    return found


def _summary(rows: Sequence[Row]) -> list[Row]:
    """Of each game the line of cfr+, and the best NashConv of each side."""
    found = []
    for row in rows:
        its = _compared([row])
        sides = {
            side: [
                line
                for line in its
                if line["iterative"] and (line["family"] == "spiel_cr") == ours
            ]
            for side, ours in (("mine", True), ("others", False))
        }
        line = next((x for x in sides["mine"] if x["solver"] == "cfr+"), {})
        best = {side: _best(them) for side, them in sides.items()}
        slowest = max((x.get("compile_seconds", 0.0) for x in sides["mine"]), default=0)
        found.append({**line, **best, "game": row["game"], "slowest": slowest})
    return found


def _fastest(rows: Sequence[Row], family: str) -> Row:
    """The line of a family with most iterations/s; empty if there is none."""
    able = [row for row in rows if row["family"] == family and "rate" in row]
    return max(able, key=lambda row: row["rate"], default={})


def _best(rows: Sequence[Row]) -> Row:
    """The line with the least NashConv; empty if there is none."""
    able = [row for row in rows if "nash_conv" in row]
    return min(able, key=lambda row: row["nash_conv"], default={})


def _to(base: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: ratio(row["rate"], row[base].get("rate"))


def _notes(row: Mapping[str, Any]) -> str:
    """Why there are no figures; whether the yardstick measures the same thing."""
    if "agrees" not in row:
        return row.get("missing", "")
    verdict = "agrees with cfr+" if row["agrees"] else "DOES NOT agree with cfr+"
    noise = ", with noise on the payoffs, which breaks ties" if row["generic"] else ""
    return f"{verdict}: after 50 iterations {row['disagreement']:.0e} apart{noise}"


_SUMMARY: dict[str, Column] = {
    "game": "{game}",
    "spiel_cr cfr+, iterations/s": count("rate"),
    "÷ C": _to("c"),
    "÷ best bundled": lambda row: f"{_to('bundled')(row)} ({row['bundled']['solver']})",
    "best spiel_cr NashConv": "{mine[nash_conv]:.2e} ({mine[solver]})",
    "best other NashConv": "{others[nash_conv]:.2e} ({others[solver]})",
    "build_tree, s": "{compile_game_seconds:.2f}",
    "slowest jit, s": "{slowest:.2f}",
}
_ALL: dict[str, Column] = {
    "solver": "{title}",
    "arithmetic": "{dtype}",
    "build, s": "{build_seconds:.2f}",
    "compile, s": "{compile_seconds:.2f}",
    "iterations/s (least to most)": rates,
    "÷ C": _to("c"),
    "÷ best bundled": _to("bundled"),
    "iterations solved": lambda row: (
        spaced(row["iterations"]) if row["iterative"] else "–"
    ),
    "in, s": "{seconds:.2f}",
    "NashConv": "{nash_conv:.2e}",
    "peak memory (at start), MiB": "{peak_mib:.0f} ({start_mib:.0f})",
    "notes": _notes,
}
BENCHMARK = Benchmark(
    "cfr",
    "Measure spiel_cr's full-width solvers beside their peers.",
    OPTIONS,
    {
        "race": Part(
            race,
            _plan,
            (
                Table("NashConv after equal seconds.", _SUMMARY, lines=_summary),
                Table("All solvers.", _ALL, 2, _compared, "game"),
            ),
            budget=("solvers", "plan"),
        )
    },
    failures=failures,
)
