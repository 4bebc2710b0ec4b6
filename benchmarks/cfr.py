"""Full-width solvers against their peers: facts as JSON lines, then a table.

Run `python -m benchmarks.cfr --help`. See docs/benchmarks.md for what is measured.
"""

import argparse
import contextlib
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import cfr_tables, peers
from benchmarks.frame import Benchmark, Parser, Row, goofspiel, say
from benchmarks.solver_run import Ask, OpenRun, RunError, in_a_process

# Short names of the default games; any OpenSpiel string will do in their place.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "goofspiel4": goofspiel(4),
    "goofspiel5": goofspiel(5),
    "liars_dice4": "liars_dice(numdice=1,dice_sides=4)",
    "liars_dice": "liars_dice",
}


class Plan(NamedTuple):
    """How much is measured, the same for every solver.

    Attributes:
      budget_seconds: of the solve that NashConv is taken after.
      repeats: windows in which iterations/s are counted.
      window_seconds: of one window.
    """

    budget_seconds: float
    repeats: int
    window_seconds: float


def _add_options(parser: Parser) -> None:
    parser.games(GAMES)
    words = "or any algorithm of spiel_cr, with /float32 behind it for single precision"
    parser.strings("--solvers", peers.default_solvers(), words, metavar="SOLVER")
    parser.number("--seconds", 10.0, "solving budget before NashConv is taken")
    parser.number("--repeats", 3, "interleaved windows for iterations/s")
    parser.number("--window", None, "seconds of one; default: a fifth of --seconds")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    window = options.window or options.seconds / 5
    plan = Plan(options.seconds, options.repeats, window)
    for name in options.games:
        game = GAMES.get(name, name)
        for row in measure_game(name, game, options.solvers, plan, in_a_process):
            yield {**plan._asdict(), **row}


def _failures(rows: Sequence[Row]) -> Iterator[str]:
    """What is broken of this project itself."""
    for row in rows:
        own = row["family"] == "spiel_cr" and "missing" in row
        if own or not row.get("agrees", True):
            reason = row.get("missing", "the C reference and spiel_cr disagree")
            yield f"{row['name']}, {row['solver']}: {reason}"


def measure_game(
    name: str, game: str, solvers: Sequence[str], plan: Plan, open_run: OpenRun
) -> list[Row]:
    """Measures all solvers on one game.

    Building and compiling happen one after another; iterations/s are counted in turns,
    one window of every solver in each round, so that the noise of a shared machine hits
    all alike; then each solves for the whole budget. Processes that wait are idle.

    Args:
      name: for tables.
      game: OpenSpiel string.
      solvers: names as in `peers.find`.
      plan: budgets.
      open_run: `in_a_process`, or `here` to stay in this process.

    Returns:
      One row of facts for each solver; `missing` in it says why there are no figures.
    """
    rows = [_row(name, game, solver) for solver in solvers]
    with contextlib.ExitStack() as stack:
        runs = [
            (row, stack.enter_context(open_run(game, row["solver"]))) for row in rows
        ]
        for row, ask in runs:
            say(f"{name}: {row['solver']}: build, compile")
            _attempt(row, ask, "prepare")
        for turn in range(plan.repeats):
            say(f"{name}: round {turn + 1} of {plan.repeats}")
            for row, ask in runs:
                if row["iterative"]:
                    _attempt(row, ask, "rate", plan.window_seconds)
        for row, ask in runs:
            say(f"{name}: {row['solver']}: solve")
            _attempt(row, ask, "solve", plan.budget_seconds)
    return [_with_rates(row) for row in rows]


def _row(name: str, game: str, solver: str) -> Row:
    # None of the solvers is random, so no seed is used.
    row: Row = {"name": name, "game": game, "solver": solver, "seed": None}
    try:
        return {**row, **peers.find(solver).facts()}
    except ValueError as error:
        row |= {"title": solver, "family": "spiel_cr", "dtype": "", "iterative": True}
        return {**row, "missing": f"ValueError: {error}"}


def _attempt(row: Row, ask: Ask, method: str, *seconds: float) -> None:
    """Adds what one measurement gave to a row, unless something is missing."""
    if "missing" in row:
        return
    try:
        answer = ask(method, *seconds)
    except Exception as error:  # Whatever a peer raises must not stop the others.
        known = isinstance(error, RunError)
        row["missing"] = str(error) if known else f"{type(error).__name__}: {error}"
        say(f"{row['name']}: {row['solver']}: {row['missing']}")
        return
    if method == "rate":
        row.setdefault("rates", []).append(answer["iterations"] / answer["seconds"])
    else:
        row.update(answer)


def _with_rates(row: Row) -> Row:
    """The row with what its windows say together."""
    if "rates" not in row:
        return row
    rates = row["rates"]
    return {
        **row,
        "iterations_per_second": statistics.median(rates),
        "iterations_per_second_min": min(rates),
        "iterations_per_second_max": max(rates),
    }


BENCHMARK = Benchmark(
    "cfr",
    "Measure spiel_cr's full-width solvers beside their peers.",
    _add_options,
    _measure,
    cfr_tables.markdown,
    tables="benchmark",
    page="benchmarks.md",
    failures=_failures,
    group=lambda row: row["name"],
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
