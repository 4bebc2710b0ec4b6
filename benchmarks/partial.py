"""Players of games that are too large to be compiled: matches on partial trees.

Run `python -m benchmarks.partial --help`. docs/partial.md has the tables.
"""

import argparse
import itertools
import json
import math
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from spiel_cr.eval.players import match as matches

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import conditions, document, partial_opponents, process
from spiel_cr.common import memory
from spiel_cr.partial.config import PartialConfig
from spiel_cr.players import partial_bots
from spiel_cr.resolving.config import ResolvingConfig

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "phantom_ttt": "phantom_ttt",
    "II-goofspiel, 7 cards": "python_ii_goofspiel(num_cards=7)",
}
OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Who is measured, by the name that `--players` takes.
PLAYERS = {"resolving": "resolving", "oos": "outcome sampling"}
MARKS = document.Marks("<!-- partial tables: begin -->", "<!-- partial tables: end -->")

# How a player came to its answers, see `PartialStatistics`.
_WAYS = "safe_resolves", "unsafe_restarts", "reused", "fallback", "uniform"
# Of a normal distribution, for intervals of 95 %.
_Z = 1.96

Row = dict[str, Any]
Run = Callable[..., Row]


def main(arguments: Sequence[str] | None = None, *, run: Run | None = None) -> int:
    """Plays, writes facts as JSON lines, prints tables.

    Args:
      arguments: of the command line.
      run: how to call a measurement; by default in a new process each, so that its
        peak of memory is its own.
    """
    options = _parse(arguments)
    run = run or process.in_a_process
    facts = conditions.facts()
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with out.open("w") as file:
        plan = options.max_histories, options.move_ms, options.matches, options.seed
        every = itertools.product(options.games, options.players, options.opponents)
        for name, player, opponent in every:
            game, batches = GAMES.get(name, name), options.iterations
            row = run(measure, name, game, player, opponent, *plan, batches)
            rows.append({**facts, **row})
            print(json.dumps(rows[-1]), file=file, flush=True)
            words = f"{name}: {player} against {opponent}: mean {row['mean']:+.3f}"
            print(words, file=sys.stderr, flush=True)
    text = markdown(rows)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, MARKS)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partial",
        description="Play matches in games that cannot be compiled whole.",
        epilog="What is measured, and how, is written in docs/partial.md.",
    )
    parser.add_argument(
        "--games",
        nargs="+",
        default=list(GAMES),
        metavar="GAME",
        help=f"OpenSpiel strings, or of {'; '.join(GAMES)} (default: these)",
    )
    parser.add_argument(
        "--opponents", nargs="+", choices=list(OPPONENTS), default=list(OPPONENTS)
    )
    parser.add_argument(
        "--players",
        nargs="+",
        choices=list(PLAYERS),
        default=["resolving"],
        help="who is measured (default: resolving)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=20,
        help="batches a move of outcome sampling, which has no clock "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--matches",
        type=int,
        default=200,
        help="against each opponent, seats in turn (default %(default)s)",
    )
    parser.add_argument(
        "--move-ms", type=float, default=1000.0, help="default %(default)s"
    )
    parser.add_argument(
        "--max-histories",
        type=int,
        default=100_000,
        help="of a partial tree (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument(
        "--out",
        default="out/benchmarks/partial.jsonl",
        help="JSON lines replace this file (default %(default)s)",
    )
    document.add_option(parser, MARKS)
    options = parser.parse_args(arguments)
    if options.iterations < 1:
        parser.error("--iterations must be at least 1")
    if options.matches < 2:
        parser.error("--matches must be at least 2, one for each seat")
    return options


def measure(
    name: str,
    game: str,
    player: str,
    opponent: str,
    max_histories: int,
    move_ms: float,
    count: int,
    seed: int,
    iterations: int,
) -> Row:
    """Plays matches.

    Args:
      name: for tables.
      game: OpenSpiel string.
      player: of `PLAYERS`.
      opponent: of `OPPONENTS`.
      max_histories: of a partial tree.
      move_ms: milliseconds of a move.
      count: matches, seats in turn.
      seed: of everything.
      iterations: batches a move of outcome sampling.

    Raises:
      ValueError: a bot failed, or the opponent chose what it may not.
    """
    loaded = spiel_cr.load_game(game)
    start = memory.peak_bytes()
    begun = time.perf_counter()
    ours = [
        _player(player, game, seat, max_histories, move_ms, iterations, seed)
        for seat in range(2)
    ]
    made = time.perf_counter() - begun
    others, simulations = partial_opponents.make(opponent, loaded, move_ms, seed)
    rng = np.random.default_rng(seed)
    returns: tuple[list[float], list[float]] = ([], [])
    spent: tuple[list[float], list[float]] = ([], [])
    illegal = programs = 0
    for number in range(count):
        seat = number % 2
        pair = list(others)
        pair[seat] = ours[seat]
        with matches.count_programs() as (compiled, observer):
            try:
                match = matches.play_match(loaded, pair, rng, observers=[observer])
            except matches.IllegalMoveError as error:
                if error.player != seat:
                    raise
                illegal += 1
                continue
        programs += sum(compiled)
        returns[seat].append(match.returns[seat])
        spent[0].extend(match.seconds[seat])
        spent[1].extend(match.seconds[1 - seat])
    if min(map(len, returns)) < 1:
        raise ValueError(
            f"{game}: illegal moves ended {illegal} of {count} matches of {player} "
            f"against {opponent}; none is left for one of the seats"
        )
    every = np.array(returns[0] + returns[1])
    counts = [vars(bot.counts) for bot in ours]
    return {
        "name": name,
        "game": game,
        "player": player,
        "opponent": opponent,
        "simulations": simulations,
        "max_histories": max_histories,
        "move_ms": move_ms,
        "iterations": iterations if player == "oos" else None,
        "matches": len(every),
        "mean": float(every.mean()),
        "interval": _Z * float(every.std(ddof=1)) / math.sqrt(len(every)),
        "won": float((every > 0).mean()),
        "drawn": float((every == 0).mean()),
        "by_seat": [statistics.fmean(seat) for seat in returns],
        "moves": sum(bot.statistics.moves for bot in ours),
        # Outcome sampling has no clock.
        "late_moves": None
        if player == "oos"
        else sum(bot.statistics.late_moves for bot in ours),
        "max_ms": 1000 * max(spent[0]),
        "mean_ms": 1000 * statistics.fmean(spent[0]),
        "opponent_ms": 1000 * statistics.fmean(spent[1]),
        "illegal_moves": illegal,
        "programs_compiled": programs,
        "counts": {key: counts[0][key] + counts[1][key] for key in (*_WAYS, "shrunk")},
        "most_histories": max(each["most_histories"] for each in counts),
        "seconds_to_make": made,
        "device": jax.default_backend(),
        "peak_bytes": memory.peak_bytes(),
        "start_bytes": start,
        "seed": seed,
    }


def _player(
    kind: str,
    game: str,
    seat: int,
    max_histories: int,
    move_ms: float,
    iterations: int,
    seed: int,
) -> partial_bots.PartialResolvingBot | partial_bots.PartialOOSBot:
    """Who is measured."""
    partial = PartialConfig(max_histories)
    if kind == "oos":
        return partial_bots.PartialOOSBot(
            game, seat, partial=partial, iterations=iterations, seed=seed
        )
    config = ResolvingConfig(move_ms=move_ms)
    return partial_bots.PartialResolvingBot(
        game, seat, config, partial=partial, seed=seed
    )


def markdown(rows: Sequence[Row]) -> str:
    """One table of results and one of conduct."""
    head = ["game", "player", "against", "matches", "mean return", "won", "drawn"]
    head += ["as player 0", "as player 1", "ms a move", "its ms a move"]
    head += ["its simulations"]
    body = [
        [
            *(row["name"], PLAYERS[row["player"]], OPPONENTS[row["opponent"]]),
            str(row["matches"]),
            f"{row['mean']:+.3f} ± {row['interval']:.3f}",
            *(f"{row['won']:.1%}", f"{row['drawn']:.1%}"),
            *(f"{mean:+.3f}" for mean in row["by_seat"]),
            *(f"{row['mean_ms']:.0f}", f"{row['opponent_ms']:.1f}"),
            "" if row["simulations"] is None else f"{row['simulations']:,}",
        ]
        for row in rows
    ]
    conduct = ["game", "player", "against", "moves", "late", "slowest, ms", "illegal"]
    conduct += ["programs compiled", *(way.replace("_", " ") for way in _WAYS)]
    conduct += ["most histories", "peak memory, MB", "at start, MB"]
    how = [
        [
            *(row["name"], PLAYERS[row["player"]], OPPONENTS[row["opponent"]]),
            str(row["moves"]),
            "" if row["late_moves"] is None else str(row["late_moves"]),
            f"{row['max_ms']:.0f}",
            *(str(row["illegal_moves"]), str(row["programs_compiled"])),
            *(str(row["counts"][key]) for key in _WAYS),
            f"{row['most_histories']:,}",
            *(f"{row[key] / 1e6:,.0f}" for key in ("peak_bytes", "start_bytes")),
        ]
        for row in rows
    ]
    parts = [
        conditions.sentence(rows[0], (row["device"] for row in rows)),
        document.grid(head, body, labels=3),
        document.grid(conduct, how, labels=3),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
