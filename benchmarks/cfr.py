"""Full-width solvers against their peers: facts as JSON lines, then a table.

Run `python -m benchmarks.cfr --help`. See docs/benchmarks.md for what is measured.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import cell as cell_lib
from benchmarks import conditions, document, peers, table

_GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards={},players=2,"
    "points_order=descending))"
)

# Short names of the default games; any OpenSpiel string will do in their place.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "goofspiel4": _GOOFSPIEL.format(4),
    "goofspiel5": _GOOFSPIEL.format(5),
    "liars_dice4": "liars_dice(numdice=1,dice_sides=4)",
    "liars_dice": "liars_dice",
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured, the same for every solver.

    Attributes:
      seconds: budget of the solve that NashConv is taken after.
      repeats: windows in which iterations/s are counted.
      window: seconds of one window.
    """

    seconds: float
    repeats: int
    window: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; 1 if one of the project's own rows failed."""
    options = _parse(arguments)
    plan = Plan(options.seconds, options.repeats, options.window or options.seconds / 5)
    facts = {
        **conditions.facts(),
        "budget_seconds": plan.seconds,
        "window_seconds": plan.window,
        "repeats": plan.repeats,
    }
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name in options.games:
        measured = measure_game(
            name, GAMES.get(name, name), options.solvers, plan, cell_lib.RemoteCell
        )
        with out.open("a") as lines:
            for row in measured:
                print(json.dumps({**facts, **row}), file=lines)
        rows += [{**facts, **row} for row in measured]
    text = table.markdown(rows)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, table.MARKS)
    failures = [row for row in rows if _failed(row)]
    for row in failures:
        reason = row.get("missing") or "the C reference and spiel_cr disagree"
        _say(f"FAILED {row['name']}, {row['solver']}: {reason}")
    return 1 if failures else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cfr",
        description="Measure spiel_cr's full-width solvers beside their peers.",
        epilog="What is measured, and how, is written in docs/benchmarks.md.",
    )
    parser.add_argument(
        "--games",
        nargs="+",
        default=list(GAMES),
        metavar="GAME",
        help=f"OpenSpiel strings, or of {', '.join(GAMES)} (default: these)",
    )
    solvers = peers.default_solvers()
    parser.add_argument(
        "--solvers",
        nargs="+",
        default=solvers,
        metavar="SOLVER",
        help=f"of {', '.join(solvers)} (default: all), or any algorithm string of "
        f"spiel_cr, with /float32 behind it for single precision",
    )
    parser.add_argument(
        "--seconds",
        type=_positive(float),
        default=10.0,
        help="solving budget before NashConv is taken (default 10)",
    )
    parser.add_argument(
        "--repeats",
        type=_positive(int),
        default=3,
        help="interleaved windows for iterations/s (default 3)",
    )
    parser.add_argument(
        "--window",
        type=_positive(float),
        help="seconds of one window (default: a fifth of --seconds)",
    )
    parser.add_argument(
        "--out",
        default="out/benchmarks/cfr.jsonl",
        help="JSON lines are appended here (default out/benchmarks/cfr.jsonl)",
    )
    document.add_option(parser, table.MARKS)
    return parser.parse_args(arguments)


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """An argparse type: a number above zero."""

    def convert(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} must be above 0")
        return value

    return convert


def measure_game(
    name: str,
    game: str,
    solvers: Sequence[str],
    plan: Plan,
    open_cell: Callable[[str, str], cell_lib.CellLike],
) -> list[dict[str, Any]]:
    """Measures all solvers on one game.

    Building and compiling happen one after another; iterations/s are counted in turns,
    one window of every solver in each round, so that the noise of a shared machine hits
    all alike; then each solves for the whole budget. Cells that wait are idle.

    Args:
      name: for tables.
      game: OpenSpiel string.
      solvers: names as in `peers.make`.
      plan: budgets.
      open_cell: `cell.RemoteCell`, or `cell.Cell` to stay in this process.

    Returns:
      One row of facts a solver; `missing` in it says why there are no figures.
    """
    rows = [_row(name, game, solver) for solver in solvers]
    cells = {row["solver"]: open_cell(game, row["solver"]) for row in rows}
    try:
        for row in rows:
            _say(f"{name}: {row['solver']}: build, compile")
            _attempt(row, cells[row["solver"]].prepare)
        for turn in range(plan.repeats):
            _say(f"{name}: round {turn + 1} of {plan.repeats}")
            for row in rows:
                _attempt(row, cells[row["solver"]].rate, plan.window)
        for row in rows:
            _say(f"{name}: {row['solver']}: solve")
            _attempt(row, cells[row["solver"]].solve, plan.seconds)
            _attempt(row, cells[row["solver"]].verify)
    finally:
        for cell in cells.values():
            cell.close()
    return rows


def _row(name: str, game: str, solver: str) -> dict[str, Any]:
    description = dataclasses.asdict(peers.describe(solver))
    # None of the solvers is random, so no seed is used.
    return {"name": name, "game": game, "solver": solver, "seed": None, **description}


def _attempt(
    row: dict[str, Any], measure: Callable[..., dict[str, Any]], *budget: float
) -> None:
    """Adds what one measurement gave to a row, unless something is missing."""
    if "missing" in row or (measure.__name__ == "rate" and not row["iterative"]):
        return
    try:
        answer = measure(*budget)
    except Exception as error:  # Whatever a peer raises must not stop the others.
        remote = isinstance(error, cell_lib.CellError)
        row["missing"] = str(error) if remote else f"{type(error).__name__}: {error}"
        _say(f"{row['name']}: {row['solver']}: {row['missing']}")
        return
    if measure.__name__ != "rate":
        row.update(answer)
        return
    rates = [*row.get("rates", []), answer["iterations"] / answer["seconds"]]
    row.update(
        rates=rates,
        iterations_per_second=statistics.median(rates),
        iterations_per_second_min=min(rates),
        iterations_per_second_max=max(rates),
    )


def _failed(row: dict[str, Any]) -> bool:
    """Whether a row says that something of this project is broken."""
    own = row["family"] == "spiel_cr" and "missing" in row
    return own or not row.get("agrees", True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
