"""Matches of players that search partial trees, in games too large to be compiled.

What is left to exploit in them is measured first (`exploitability.py`), since matches
do not see it. Run `python -m benchmarks.partial --help`. The tables are in
docs/partial.md.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pyspiel

import spiel_cr
from benchmarks import frame
from benchmarks.document import MEMORY, Column, table
from benchmarks.frame import Row
from benchmarks.partial import opponents
from spiel_cr.common.memory import peak_bytes
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players import match as matches

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "phantom_ttt": "phantom_ttt",
    "II-goofspiel, 7 cards": "python_ii_goofspiel(num_cards=7)",
}
OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Who is measured, by the names of bot strings.
PLAYERS = ("resolving", "oos")


def _add_options(parser: frame.Parser) -> None:
    parser.games(GAMES)
    parser.several("--opponents", OPPONENTS, "against whom")
    parser.several("--players", PLAYERS, "who is measured", ["resolving"])
    parser.number("--iterations", 20, "per move of oos, which has no clock; of batches")
    parser.number("--matches", 200, "against each opponent, seats in turn", least=2)
    parser.number("--move-ms", 1000.0, "milliseconds of a move")
    words = "milliseconds to prepare each seat (default: ten moves)"
    parser.number("--init-ms", None, words)
    parser.number("--max-histories", 100_000, "of the partial tree")
    parser.add_argument(
        "--leaf", default="", help="at the frontier, see docs/leaves.md"
    )
    parser.number("--seed", 0, "of everything", least=0)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    """Each row in a new process, so that its peak of memory is its own."""
    for name, player, opponent in itertools.product(
        options.games, options.players, options.opponents
    ):
        row = frame.in_a_process(measure, name, player, opponent, options)
        frame.say(f"{name}: {player} against {opponent}: mean {row['mean']:+.3f}")
        yield row


def measure(name: str, player: str, opponent: str, options: argparse.Namespace) -> Row:
    """Plays matches.

    Args:
      name: of the game, one of `GAMES` or OpenSpiel's string.
      player: of `PLAYERS`.
      opponent: of `OPPONENTS`.
      options: of the command.

    Raises:
      ValueError: a bot failed, or the opponent chose what it may not.
    """
    game = spiel_cr.load_game(GAMES.get(name, name))
    start = peak_bytes()
    begun = time.perf_counter()
    ours = [_player(player, game, seat, options) for seat in range(2)]
    made = time.perf_counter() - begun
    others, simulations = opponents.make(opponent, game, options.move_ms, options.seed)
    rng = np.random.default_rng(options.seed)
    returns: tuple[list[float], list[float]] = ([], [])
    spent: tuple[list[float], list[float]] = ([], [])
    illegal = programs = 0
    for number in range(options.matches):
        seat = number % 2
        pair = list(others)
        pair[seat] = ours[seat]
        counter = matches.ProgramCounter()
        try:
            match = matches.play_match(game, pair, rng, observers=[counter])
        except matches.IllegalMoveError as error:
            if error.player != seat:
                raise
            illegal += 1
            continue
        programs += sum(counter.counts)
        returns[seat].append(match.returns[seat])
        spent[0].extend(match.seconds[seat])
        spent[1].extend(match.seconds[1 - seat])
    if min(map(len, returns)) < 1:
        raise ValueError(
            f"{game}: illegal moves ended {illegal} of {options.matches} "
            f"matches of {player} against {opponent}; none is left for "
            f"one of the seats"
        )
    every = np.array(returns[0] + returns[1])
    mean, half_width = mean_and_half_width(every)
    counts = [vars(bot.counts) for bot in ours]
    # Outcome sampling has no clock, and resolving no number of iterations.
    clocked = player != "oos"
    late = sum(bot.statistics.late_moves for bot in ours)
    return {
        "name": name,
        "game": str(game),
        "player": player,
        "bot": _string(player, options),
        "opponent": opponent,
        "simulations": simulations,
        "max_histories": options.max_histories,
        "move_ms": options.move_ms,
        "iterations": None if clocked else options.iterations,
        "seed": options.seed,
        "matches": len(every),
        "mean": mean,
        "interval": half_width,
        "won": float((every > 0).mean()),
        "drawn": float((every == 0).mean()),
        "by_seat": [statistics.fmean(seat) for seat in returns],
        "moves": sum(bot.statistics.moves for bot in ours),
        "late_moves": late if clocked else None,
        "max_ms": 1000 * max(spent[0]),
        "mean_ms": 1000 * statistics.fmean(spent[0]),
        "opponent_ms": 1000 * statistics.fmean(spent[1]),
        "illegal_moves": illegal,
        "programs_compiled": programs,
        "counts": {
            key: counts[0][key] + counts[1][key]
            for key in counts[0]
            if key != "most_histories"
        },
        "most_histories": max(each["most_histories"] for each in counts),
        "seconds_to_make": made,
        "device": jax.default_backend(),
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
    }


def _player(
    kind: str, game: pyspiel.Game, seat: int, options: argparse.Namespace
) -> pyspiel.Bot:
    """Who is measured."""
    return spiel_cr.load_bot(_string(kind, options), game, seat, seed=options.seed)


def _string(kind: str, options: argparse.Namespace) -> str:
    """Of who is measured, see `load_bot`."""
    budget = f"iterations={options.iterations}"
    if kind != "oos":  # which has no clock
        budget = f"move_ms={options.move_ms:g}"
        if options.init_ms:
            budget += f",init_ms={options.init_ms:g}"
    given = [f"max_histories={options.max_histories}", budget]
    if options.leaf:
        given.append(f"leaf={options.leaf}")
    return f"{kind}({','.join([*given, *options.settings])})"


def _ways(row: Mapping[str, Any]) -> str:
    """How often the player came to its answers in which way."""
    ways = (f"{key.replace('_', ' ')} {n}" for key, n in row["counts"].items() if n)
    return ", ".join(ways) or "–"


def markdown(rows: Sequence[Row]) -> str:
    """One table of results and one of conduct."""
    who: dict[str, Column] = {
        "game": "{name}",
        "player": "`{bot}`",
        "against": lambda row: OPPONENTS[row["opponent"]],
    }
    results = table(
        rows,
        {
            **who,
            "matches": "{matches}",
            "mean return": "{mean:+.3f} ± {interval:.3f}",
            "won": "{won:.1%}",
            "drawn": "{drawn:.1%}",
            "as player 0": "{by_seat[0]:+.3f}",
            "as player 1": "{by_seat[1]:+.3f}",
            "ms per move": "{mean_ms:.0f}",
            "its ms per move": "{opponent_ms:.1f}",
            "its simulations": "{simulations:,}",
        },
        labels=3,
    )
    conduct = table(
        rows,
        {
            **who,
            "moves": "{moves}",
            "late": "{late_moves}",
            "slowest, ms": "{max_ms:.0f}",
            "illegal": "{illegal_moves}",
            "programs compiled": "{programs_compiled}",
            "how answered": _ways,
            "most histories": "{most_histories:,}",
            **MEMORY,
        },
        labels=3,
    )
    measured = frame.sentence(rows[0], (row["device"] for row in rows))
    return "\n".join([f"{measured}\n", results, conduct])


BENCHMARK = frame.Benchmark(
    "partial",
    "Play matches in games that cannot be compiled whole.",
    _add_options,
    _measure,
    markdown,
    group=lambda row: (row["name"], row["bot"], row["opponent"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
