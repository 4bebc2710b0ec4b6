"""NashConv of resolved strategies, and of players that resolve by sampling.

Part `strategies`: games × algorithms × iterations per solve. Part `sampled`: players
under a clock on games of growing size, full-width ones beside them.

Run `python -m benchmarks.resolving --help`. docs/resolving.md has the table.
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence

import jax

import spiel_cr
from benchmarks.document import grid
from benchmarks.frame import (
    Benchmark,
    Parser,
    Row,
    goofspiel,
    group_by,
    in_a_process,
    say,
    sentence,
)
from spiel_cr.eval.judging import python_judge
from spiel_cr.eval.players import traversing

_BUNDLED = "points_order=ascending,returns_type=win_loss"

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "python_leduc_poker": "python_leduc_poker",
    "goofspiel, 4 cards (bundled)": goofspiel(4, _BUNDLED),
    "goofspiel, 5 cards (bundled)": goofspiel(5, _BUNDLED),
    "python_ii_goofspiel(num_cards=4)": "python_ii_goofspiel(num_cards=4)",
    "liars_dice 1×4": "liars_dice(numdice=1,dice_sides=4)",
    "princess and monster, horizon 4": "python_princess_and_monster(horizon=4)",
    "princess and monster, horizon 5": "python_princess_and_monster(horizon=5)",
    "latent tic-tac-toe": "python_latent_tic_tac_toe(conflict=keep)",
    "rock_paper_scissors(5)": "python_rock_paper_scissors(num_actions=5)",
}
# Games of growing size for players that sample, and what they are called.
SIZES = {
    **{
        f"II-goofspiel, {cards} cards": f"python_ii_goofspiel(num_cards={cards})"
        for cards in (3, 4, 5)
    },
    **{
        f"Leduc, stacks of 7, {ranks} ranks": f"python_leduc_poker(num_ranks={ranks})"
        for ranks in (3, 7, 13)
    },
}
_PARTS = ["strategies", "sampled"]
# What resolving took, as `SolveResult` names it.
_TOOK = ("solves", "seconds", "compile_seconds", "build_seconds")


def _add_options(parser: Parser) -> None:
    known = list(GAMES)
    default = [name for name in known if "tic-tac-toe" not in name]
    parser.several("--parts", _PARTS, "what to measure", _PARTS[:1])
    parser.several("--games", known, "what to resolve", default)
    sizes = [name for name in SIZES if "5 cards" not in name]
    parser.several("--sizes", list(SIZES), "games of part sampled", sizes)
    solvers = ["evr-mccfr(batch=256)", "os-mccfr(batch=256)", "cfr+"]
    parser.strings("--solvers", solvers, "of part sampled")
    parser.add_argument(
        "--move-ms",
        nargs="+",
        type=float,
        default=[5.0, 50.0],
        help="of part sampled: milliseconds a move, ten times that before the first",
    )
    parser.strings("--algorithms", ["cfr+", "pdcfr+"], "of every solve")
    parser.add_argument("--iterations", nargs="+", type=int, default=[100, 500, 2000])


def _measure_all(options: argparse.Namespace) -> Iterator[Row]:
    if "strategies" in options.parts:
        for combination in itertools.product(
            options.games, options.algorithms, options.iterations
        ):
            row = measure(*combination)
            say(f"{' '.join(map(str, combination))} {row['nash_conv']:.2e}")
            yield row
    if "sampled" in options.parts:
        for combination in itertools.product(
            options.sizes, options.solvers, options.move_ms
        ):
            row = in_a_process(measure_player, *combination)
            say(f"{' '.join(map(str, combination))} {row['nash_conv']:.2e}")
            yield row


def measure(name: str, algorithm: str, iterations: int) -> Row:
    """Resolves one game; NashConv by OpenSpiel's exact tool.

    Args:
      name: one of `GAMES`.
      algorithm: solver of every solve.
      iterations: of every solve.
    """
    result = spiel_cr.resolve(GAMES[name], algorithm, iterations)
    verdict = python_judge.judge(result.game, result.average_policy())
    return {
        "part": "strategies",
        "name": name,
        "game": GAMES[name],
        "algorithm": algorithm,
        "iterations": iterations,
        # Resolving a whole game is deterministic.
        "seed": None,
        "dtype": "float64",
        "device": jax.default_backend(),
        "nash_conv": verdict.nash_conv,
        "game_value": verdict.game_value,
        **{name: getattr(result, name) for name in _TOOK},
    }


def measure_player(name: str, solver: str, move_ms: float) -> Row:
    """Makes a player in both seats and asks it everywhere; in a process of its own.

    Args:
      name: one of `SIZES`.
      solver: of every solve.
      move_ms: milliseconds a move.
    """
    game = spiel_cr.compile_game(SIZES[name], observations=True)
    bot = f"resolving(solver={solver},move_ms={move_ms:g})"
    seats, strategies = [], []
    for seat in range(2):
        started = time.perf_counter()
        player = spiel_cr.load_bot(bot, game, seat, seed=seat)
        seats.append(time.perf_counter() - started)
        strategies.append(traversing.traverse(game, player))
    found = traversing.evaluate(game, (strategies[0], strategies[1]))
    return {
        "part": "sampled",
        "name": name,
        "game": SIZES[name],
        "histories": len(game.histories),
        "infosets": found.infosets,
        "solver": solver,
        "move_ms": move_ms,
        "seed": [0, 1],
        "device": jax.default_backend(),
        # Programs are compiled for the first; both have the solve before a match.
        "seat_seconds": seats,
        "nash_conv": found.nash_conv,
        "moves": found.moves,
        "late_moves": found.late_moves,
        "programs_compiled": found.programs_compiled,
    }


def markdown(rows: Sequence[Row]) -> str:
    """The tables of the parts that were measured."""
    parts = group_by(rows, "part")
    measured = sentence(rows[0], (row["device"] for row in rows))
    tables = []
    if "strategies" in parts:
        tables.append(_strategies(parts["strategies"]))
    if "sampled" in parts:
        tables.append(_players(parts["sampled"]))
    return "\n\n".join([measured, *tables])


def _players(rows: Sequence[Row]) -> str:
    """A line for each game and solver, a column for each time a move."""
    times = sorted({row["move_ms"] for row in rows})
    lines: dict[tuple[str, str, str], dict[float, str]] = {}
    made: dict[tuple[str, str, str], float] = {}
    for row in rows:
        names = row["name"], f"{row['histories']:,}".replace(",", " "), row["solver"]
        lines.setdefault(names, {})[row["move_ms"]] = f"{row['nash_conv']:.1e}"
        # The one with the least time before the first match shows best what it takes.
        made[names] = min(made.get(names, math.inf), row["seat_seconds"][0])
    head = ["game", "histories", "solver", "first seat made, s"]
    head += [f"NashConv, {move_ms:g} ms" for move_ms in times]
    body = [
        [*names, f"{made[names]:.1f}", *(line.get(t, "–") for t in times)]
        for names, line in lines.items()
    ]
    return grid(head, body, labels=3)


def _strategies(rows: Sequence[Row]) -> str:
    """A line for each game and algorithm, a column for each number of iterations."""
    counts = sorted({row["iterations"] for row in rows})
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        entries = lines.setdefault((row["name"], row["algorithm"]), {})
        entries[row["iterations"]] = f"{row['nash_conv']:.1e}"
    head = ["game", "algorithm", *(str(count) for count in counts)]
    body = [
        [*names, *(entries.get(count, "–") for count in counts)]
        for names, entries in lines.items()
    ]
    return grid(head, body, labels=2)


def _measured(row: Row) -> tuple[object, ...]:
    """What a row is one measurement of."""
    names = ("part", "name", "algorithm", "iterations", "solver", "move_ms")
    return tuple(row.get(name) for name in names)


BENCHMARK = Benchmark(
    "resolving",
    "NashConv of continually resolved strategies, and of players that sample.",
    _add_options,
    _measure_all,
    markdown,
    group=_measured,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
