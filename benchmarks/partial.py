"""Matches of players that search partial trees, in games too large to be compiled.

Run `python -m benchmarks.partial --help`. docs/partial.md has the tables.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players import match as matches

import spiel_cr
from benchmarks import frame, partial_opponents
from benchmarks.document import grid, megabytes
from benchmarks.frame import Row
from spiel_cr.common.memory import peak_bytes
from spiel_cr.partial.config import PartialConfig
from spiel_cr.players.partial_bots import PartialOOSBot, PartialResolvingBot
from spiel_cr.resolving.config import ResolvingConfig

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "phantom_ttt": "phantom_ttt",
    "II-goofspiel, 7 cards": "python_ii_goofspiel(num_cards=7)",
}
OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Who is measured, by the name that `--players` takes.
PLAYERS = {"resolving": "resolving", "oos": "outcome sampling"}
# How a player came to its answers, see `PartialStatistics`.
_WAYS = "safe_resolves", "unsafe_restarts", "reused", "fallback", "uniform"


class Pairing(NamedTuple):
    """Who plays what against whom, and with which means.

    Attributes:
      name: of the game, for tables.
      game: OpenSpiel string.
      player: of `PLAYERS`.
      opponent: of `OPPONENTS`.
      max_histories: of the partial tree.
      move_ms: milliseconds of a move.
      matches: how many, seats in turn.
      seed: of everything.
      iterations: batches per move of outcome sampling.
    """

    name: str
    game: str
    player: str
    opponent: str
    max_histories: int
    move_ms: float
    matches: int
    seed: int
    iterations: int


def _add_options(parser: frame.Parser) -> None:
    parser.games(GAMES)
    parser.several("--opponents", OPPONENTS, "against whom")
    parser.several("--players", PLAYERS, "who is measured", ["resolving"])
    parser.number(
        "--iterations", 20, "batches per move of outcome sampling, which has no clock"
    )
    parser.number("--matches", 200, "against each opponent, seats in turn", least=2)
    parser.number("--move-ms", 1000.0, "milliseconds of a move")
    parser.number("--max-histories", 100_000, "of the partial tree")
    parser.number("--seed", 0, "of everything", least=0)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    """Each row in a new process, so that its peak of memory is its own."""
    for name, player, opponent in itertools.product(
        options.games, options.players, options.opponents
    ):
        pairing = Pairing(
            name,
            GAMES.get(name, name),
            player,
            opponent,
            options.max_histories,
            options.move_ms,
            options.matches,
            options.seed,
            options.iterations,
        )
        row = frame.in_a_process(measure, pairing)
        frame.say(f"{name}: {player} against {opponent}: mean {row['mean']:+.3f}")
        yield row


def measure(pairing: Pairing) -> Row:
    """Plays matches.

    Raises:
      ValueError: a bot failed, or the opponent chose what it may not.
    """
    game = spiel_cr.load_game(pairing.game)
    start = peak_bytes()
    begun = time.perf_counter()
    ours = [_player(pairing, seat) for seat in range(2)]
    made = time.perf_counter() - begun
    others, simulations = partial_opponents.make(
        pairing.opponent, game, pairing.move_ms, pairing.seed
    )
    rng = np.random.default_rng(pairing.seed)
    returns: tuple[list[float], list[float]] = ([], [])
    spent: tuple[list[float], list[float]] = ([], [])
    illegal = programs = 0
    for number in range(pairing.matches):
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
            f"{pairing.game}: illegal moves ended {illegal} of {pairing.matches} "
            f"matches of {pairing.player} against {pairing.opponent}; none is left for "
            f"one of the seats"
        )
    every = np.array(returns[0] + returns[1])
    mean, half_width = mean_and_half_width(every)
    counts = [vars(bot.counts) for bot in ours]
    # Outcome sampling has no clock, and resolving no number of iterations.
    clocked = pairing.player != "oos"
    late = sum(bot.statistics.late_moves for bot in ours)
    return {
        **pairing._asdict(),
        "simulations": simulations,
        "iterations": None if clocked else pairing.iterations,
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
        "counts": {key: counts[0][key] + counts[1][key] for key in (*_WAYS, "shrunk")},
        "most_histories": max(each["most_histories"] for each in counts),
        "seconds_to_make": made,
        "device": jax.default_backend(),
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
    }


def _player(pairing: Pairing, seat: int) -> PartialResolvingBot | PartialOOSBot:
    """Who is measured."""
    partial, seed = PartialConfig(pairing.max_histories), pairing.seed
    if pairing.player == "oos":
        return PartialOOSBot(
            pairing.game,
            seat,
            partial=partial,
            iterations=pairing.iterations,
            seed=seed,
        )
    config = ResolvingConfig(move_ms=pairing.move_ms)
    return PartialResolvingBot(pairing.game, seat, config, partial=partial, seed=seed)


def markdown(rows: Sequence[Row]) -> str:
    """One table of results and one of conduct."""
    who = ["game", "player", "against"]
    head = [*who, "matches", "mean return", "won", "drawn", "as player 0"]
    head += ["as player 1", "ms per move", "its ms per move", "its simulations"]
    conduct = [*who, "moves", "late", "slowest, ms", "illegal", "programs compiled"]
    conduct += [
        *(way.replace("_", " ") for way in _WAYS),
        "most histories",
        "peak memory, MB",
        "at start, MB",
    ]
    body, how = [], []
    for row in rows:
        names = row["name"], PLAYERS[row["player"]], OPPONENTS[row["opponent"]]
        body.append(
            [
                *(*names, str(row["matches"])),
                f"{row['mean']:+.3f} ± {row['interval']:.3f}",
                *(f"{row['won']:.1%}", f"{row['drawn']:.1%}"),
                *(f"{mean:+.3f}" for mean in row["by_seat"]),
                *(f"{row['mean_ms']:.0f}", f"{row['opponent_ms']:.1f}"),
                "" if row["simulations"] is None else f"{row['simulations']:,}",
            ]
        )
        how.append(
            [
                *(*names, str(row["moves"])),
                "" if row["late_moves"] is None else str(row["late_moves"]),
                f"{row['max_ms']:.0f}",
                *(str(row["illegal_moves"]), str(row["programs_compiled"])),
                *(str(row["counts"][key]) for key in _WAYS),
                *(f"{row['most_histories']:,}", *megabytes(row)),
            ]
        )
    measured = frame.sentence(rows[0], (row["device"] for row in rows))
    tables = grid(head, body, labels=3), grid(conduct, how, labels=3)
    return "\n".join([f"{measured}\n", *tables])


BENCHMARK = frame.Benchmark(
    "partial",
    "Play matches in games that cannot be compiled whole.",
    _add_options,
    _measure,
    markdown,
    tables="partial",
    page="partial.md",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
