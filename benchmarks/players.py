"""Players: exploitability, punctuality, gadgets and matches."""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
from benchmarks.document import Column, interval
from benchmarks.frame import Benchmark, Option, Part, Row, Table
from benchmarks.games import string_of
from spiel_cr.eval.tournaments import tournament
from spiel_cr.judging import one_match as matches
from spiel_cr.players.bots import ResolvingBot


class Plan(NamedTuple):
    """How much a game gets.

    Attributes:
      matches: of each pair of bots in the tournament. More where returns vary more, or
        matches are shorter: the tournaments take about eleven minutes together.
      move_ms: milliseconds of a move; ten times that before the first match.
      batch: trajectories in an iteration of the sampling bots, whose iterations also
        pass over all infosets.
      everywhere: small enough to ask a player at every infoset; if not, it only plays.
    """

    matches: int = 40
    move_ms: float = 50.0
    batch: int = 256
    everywhere: bool = True


PLANS = {
    "python_leduc_poker": Plan(120),
    "ii_goofspiel4": Plan(40),
    "princess4": Plan(50),
    "rps5": Plan(100),
    "latent_ttt": Plan(16, move_ms=500.0, batch=4096, everywhere=False),
    "kuhn": Plan(120),
    "liars_dice4": Plan(60),
}
_COUNTED = ("moves", "solves", "late_moves", "programs_compiled")
OPTIONS = {
    "games": Option(tuple(PLANS), "short names, or OpenSpiel strings"),
    "move_ms": Option(None, "of a move (default: 50, and 500 if large)", kind=float),
    "moves": Option(1000, "in matches over all games, for late answers"),
    "matches": Option(None, "of each pair (default: 16 to 120, by game)", kind=int),
    "repeats": Option(3, "of clocked evaluations"),
}


def _budget(move_ms: float) -> str:
    """Parameters of bots with a clock."""
    return f"move_ms={move_ms:g},init_ms={10 * move_ms:g}"


def measure_clocked(game: str, move_ms: float, repeats: int) -> Row:
    """NashConv of a clocked resolving player, asked everywhere, some times."""
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    bot = f"resolving(solver=cfr+,{_budget(move_ms)})"
    each = [spiel_cr.evaluate(tree, bot) for _ in range(repeats)]
    return {
        "bot": bot,
        "nash_conv": statistics.median(one.nash_conv for one in each),
        "all": [one.nash_conv for one in each],
        "late_moves": sum(one.late_moves for one in each),
        "programs_compiled": sum(one.programs_compiled for one in each),
    }


def measure_lateness(game: str, move_ms: float, moves: float) -> Row:
    """Moves in matches between two resolving players, by their own clocks."""
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    config = spiel_cr.ResolvingConfig(move_ms=move_ms, init_ms=10 * move_ms)
    bots = [ResolvingBot(tree, seat, config, seed=seat) for seat in range(2)]
    random, number = np.random.default_rng(0), 0
    played = [bot.resolver.statistics for bot in bots]
    while sum(s.moves for s in played) < moves:
        matches.play_match(tree.game, bots, random)
        number += 1
    return {
        "matches": number,
        **{name: sum(getattr(s, name) for s in played) for name in _COUNTED},
        "max_ms": max(s.max_ms for s in played),
    }


def measure_matches(game: str, move_ms: float, count: int, batch: int) -> Row:
    """A round robin at equal time per move.

    Args:
      game: OpenSpiel string or short name.
      move_ms: milliseconds of a move.
      count: matches of each pair.
      batch: trajectories in an iteration of the sampling bots.
    """
    tree = spiel_cr.compile_game(string_of(game), observations=True)
    # The same outcome sampling with and without aim; "mccfr" is the one without.
    solver = f"os-mccfr(epsilon=0.4,exploration=0.01,batch={batch},delta="
    budget = _budget(move_ms)
    bots = {
        "resolving": f"resolving(solver=cfr+,{budget})",
        "oos": f"oos(solver={solver}0.9),{budget})",
        "mccfr": f"oos(solver={solver}0),{budget})",
        "uniform": "uniform",
    }
    with tempfile.TemporaryDirectory() as folder:
        result = tournament.play_tournament(tree, list(bots.values()), count, folder)
    return {
        "names": list(bots),
        "bots": list(bots.values()),
        "mean": result.mean,
        "half_width": result.half_width,
        "late_moves": sum(effort.late_moves or 0 for effort in result.efforts),
        "max_ms": [effort.max_ms for effort in result.efforts],
    }


def _plan(
    *names: str, everywhere: bool = False
) -> Callable[[argparse.Namespace], Iterator[Row]]:
    """A part's plan: of each game the values of these names.

    Args:
      *names: besides game and milliseconds of a move.
      everywhere: only games in which a player can be asked at every infoset.
    """

    def rows(options: argparse.Namespace) -> Iterator[Row]:
        for game in options.games:
            plan = PLANS.get(game, Plan())
            move_ms = options.move_ms or plan.move_ms
            # Where moves take longer, fewer of them: as long as it takes elsewhere.
            share = min(1.0, 150 / move_ms) / len(options.games)
            values = {
                "repeats": options.repeats,
                "moves": options.moves * share,
                "count": options.matches or plan.matches,
                "batch": plan.batch,
            }
            if plan.everywhere or not everywhere:
                chosen = {name: values[name] for name in names}
                yield {"game": game, "move_ms": move_ms, **chosen}

    return rows


def _pairs(rows: Sequence[Row]) -> list[Row]:
    """A line for each bot of each round robin."""
    title = "`{game}`, {move_ms:g} ms per move, {count} matches per pair, {late_moves} "
    return [
        {"of": f"{title.format_map(row)}late answers", "bot": name, "row": values}
        for row in rows
        for name, *values in zip(
            row["names"], row["mean"], row["half_width"], strict=True
        )
    ]


def _against(lines: Sequence[Row]) -> dict[str, Column]:
    def column(number: int) -> Callable[[Mapping[str, Any]], str]:
        def entry(line: Mapping[str, Any]) -> str:
            mean, half_width = (values[number] for values in line["row"])
            return "–" if mean is None else interval(mean, half_width)

        return entry

    names = dict.fromkeys(line["bot"] for line in lines)
    return {"": "{bot}", **{name: column(i) for i, name in enumerate(names)}}


_CLOCKED: dict[str, Column] = {
    "game": "{game}",
    "ms per move": "{move_ms:g}",
    "NashConv": "{nash_conv:.1e}",
    "late": "{late_moves}",
    "compiled": "{programs_compiled}",
}
_LATENESS: dict[str, Column] = {
    "game": "{game}",
    "ms per move": "{move_ms:g}",
    "moves": "{moves}",
    "solves": "{solves}",
    "late": "{late_moves}",
    "longest, ms": "{max_ms:.1f}",
    "compiled": "{programs_compiled}",
}
BENCHMARK = Benchmark(
    "players",
    "Measure spiel_cr's players: NashConv, late answers, matches.",
    OPTIONS,
    {
        "exploitability": Part(
            measure_clocked,
            _plan("repeats", everywhere=True),
            (
                Table(
                    "NashConv by OpenSpiel of `resolving(solver=cfr+)`, asked "
                    "everywhere, ten moves' time at the start (median of runs):",
                    _CLOCKED,
                ),
            ),
            budget=("move_ms", "repeats"),
        ),
        "lateness": Part(
            measure_lateness,
            _plan("moves"),
            (Table("Two such players in matches:", _LATENESS),),
            budget=("move_ms", "moves"),
        ),
        "matches": Part(
            measure_matches,
            _plan("count", "batch"),
            (
                Table(
                    "Matches, the same time per move for all bots, ten times that at "
                    "the start: mean return of row against column, ± half of a 95 % "
                    "interval. `mccfr` is `oos` without aim.",
                    _against,
                    lines=_pairs,
                    per="of",
                ),
            ),
            budget=("move_ms", "count"),
        ),
    },
)
