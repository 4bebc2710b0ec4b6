"""Matches of players that search partial trees, in games too large to be compiled.

What is left to exploit in them is measured first (`exploitability.py`), since matches
do not see it. Run `python -m benchmarks.partial --help`. The tables are in
docs/partial.md.

Seats are taken in turn, so two matches, one in each seat, are one observation: what a
seat is worth is no part of its spread.
"""

import argparse
import itertools
import json
import pathlib
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
from spiel_cr.eval.common import conditions
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
    words = "stop after this many seconds of matches (default: when all were played)"
    parser.number("--seconds", None, words)
    words = "JSON lines, one per match; those that are there are not played again"
    parser.add_argument("--record", type=pathlib.Path, metavar="PATH", help=words)
    words = "of a search per move (default: those on record, or what fits in a move)"
    parser.number("--simulations", None, words, least=1, kind=int)
    words = "further settings of resolving, such as gadget=maxmargin"
    parser.add_argument("--settings", nargs="*", default=[], help=words)
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
      ValueError: a bot failed, the opponent chose what it may not, illegal moves of
        the player ended all matches, or the record is of other conditions.
    """
    game = spiel_cr.load_game(GAMES.get(name, name))
    start = peak_bytes()
    record = _Record(
        *(options.record, _key(name, player, opponent, options)),
        _conditions(opponent, options),
    )
    begun = time.perf_counter()
    ours = [_player(player, game, seat, options) for seat in range(2)]
    made = time.perf_counter() - begun
    simulations = _simulations(opponent, game, record.lines, options)
    begun = time.perf_counter()
    for number in range(len(record.lines), options.matches):
        seconds = time.perf_counter() - begun
        if options.seconds and seconds > options.seconds and number % 2 == 0:
            break
        others = opponents.pair(game, simulations, options.seed, number)
        line = _play(game, number, ours[number % 2], others, options.seed)
        record.add({**line, "simulations": simulations})
    # Outcome sampling has no clock, and resolving no number of iterations.
    clocked = player != "oos"
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
        **_outcomes(game, player, opponent, record.lines),
        **_efforts(record.lines, options.move_ms if clocked else None),
        "most_histories": max(vars(bot.counts)["most_histories"] for bot in ours),
        "seconds_to_make": made,
        "device": jax.default_backend(),
        "peak_bytes": peak_bytes(),
        "start_bytes": start,
    }


def _outcomes(
    game: pyspiel.Game, player: str, opponent: str, lines: Sequence[Row]
) -> Row:
    """What the player won.

    Args:
      game, player, opponent: as of `measure`.
      lines: of matches, see `_play`; by number, so that those of a pair follow each
        other.

    Raises:
      ValueError: all matches ended in an illegal move.
    """
    illegal = sum(line["illegal"] for line in lines)
    if illegal == len(lines):
        raise ValueError(
            f"{game}: illegal moves of {player} ended {illegal} of {len(lines)} "
            f"matches against {opponent}; nothing was measured"
        )
    pairs = [
        (first["return"] + second["return"]) / 2
        for first, second in zip(lines[::2], lines[1::2], strict=False)
    ]
    mean, half_width = mean_and_half_width(pairs)
    every = np.array([line["return"] for line in lines])
    return {
        "matches": len(every),
        "mean": mean,
        "interval": half_width,
        "won": float((every > 0).mean()),
        "drawn": float((every == 0).mean()),
        "by_seat": [float(every[seat::2].mean()) for seat in range(2)],
        "illegal_moves": illegal,
    }


def _efforts(lines: Sequence[Row], move_ms: float | None) -> Row:
    """How the player came to its moves, in matches that no illegal move ended.

    Args:
      lines: of matches, see `_play`.
      move_ms: milliseconds per move; None: it has no clock.
    """
    played = [line for line in lines if not line["illegal"]]
    spent, taken = (
        [x for line in played for x in line[who]] for who in ("seconds", "its_seconds")
    )
    late = None if move_ms is None else sum(line["late_moves"] for line in played)
    by_10_ms = None
    if move_ms is not None:
        by_10_ms = sum(1000 * x > move_ms + 10 for x in spent)
    return {
        "moves": len(spent),
        "late_moves": late,
        "late_by_10_ms": by_10_ms,
        "max_ms": 1000 * max(spent),
        "mean_ms": 1000 * statistics.fmean(spent),
        "opponent_ms": 1000 * statistics.fmean(taken),
        "programs_compiled": sum(line["programs"] for line in played),
        "counts": {
            key: sum(line["counts"].get(key, 0) for line in played)
            for key in played[0]["counts"]
        },
    }


class _Record:
    """What matches of one measurement were, in order; on the disk if there is a file.

    Attributes:
      lines: one for each match.
    """

    def __init__(self, path: pathlib.Path | None, key: Row, shared: Row) -> None:
        """Reads the lines of earlier runs.

        Args:
          path: of the file, or None.
          key: what they are matches of.
          shared: what all of these must have in common, too.

        Raises:
          ValueError: the file has matches that were played under other conditions.
        """
        self._path, self._shared = path, {**key, **shared}
        self.lines: list[Row] = []
        if path is not None and path.exists():
            every = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            self.lines = [line for line in every if key.items() <= line.items()]
        for line, (name, value) in itertools.product(self.lines, shared.items()):
            if line.get(name) != value:
                raise ValueError(
                    f"--record {path} has matches with {name}={line.get(name)!r}, and "
                    f"these would be with {value!r}; give another file"
                )

    def add(self, line: Row) -> None:
        """Takes the next match in."""
        self.lines.append({**self._shared, **line})
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                print(json.dumps(self.lines[-1]), file=file)


def _key(name: str, player: str, opponent: str, options: argparse.Namespace) -> Row:
    """What matches are of: those of two keys are not counted together."""
    return {
        "name": name,
        "bot": _string(player, options),
        "opponent": opponent,
        "seed": options.seed,
    }


def _conditions(opponent: str, options: argparse.Namespace) -> Row:
    """What else may change results: the program, and what the opponent may do."""
    found: Row = {"versions": conditions.versions(), "source": conditions.source()}
    if opponent != "uniform":
        found["its_move_ms"] = options.move_ms
        if options.simulations is not None:
            found["simulations"] = options.simulations
    return found


def _simulations(
    opponent: str,
    game: pyspiel.Game,
    lines: Sequence[Row],
    options: argparse.Namespace,
) -> int | None:
    """Of a search per move; None: the opponent is no search."""
    if lines:
        found: int | None = lines[0]["simulations"]
        return found
    if opponent != "uniform" and options.simulations is not None:
        return int(options.simulations)
    return opponents.simulations_of(opponent, game, options.move_ms, options.seed)


def _play(
    game: pyspiel.Game,
    number: int,
    bot: pyspiel.Bot,
    others: Sequence[pyspiel.Bot],
    seed: int,
) -> Row:
    """One match, as a line; an illegal move of the bot loses the most there is."""
    seat = number % 2
    pair = list(others)
    pair[seat] = bot
    before = dict(vars(bot.counts)), bot.statistics.late_moves
    counter = matches.ProgramCounter()
    line: Row = {"number": number, "seat": seat}
    random = np.random.default_rng([seed, number])
    try:
        match = matches.play_match(game, pair, random, observers=[counter])
    except matches.IllegalMoveError as error:
        if error.player != seat:
            raise
        return {**line, "illegal": True, "return": game.min_utility()}
    return {
        **line,
        "illegal": False,
        "return": match.returns[seat],
        "seconds": match.seconds[seat],
        "its_seconds": match.seconds[1 - seat],
        "late_moves": bot.statistics.late_moves - before[1],
        "programs": sum(counter.counts),
        "counts": {
            key: count - before[0][key]
            for key, count in vars(bot.counts).items()
            if key != "most_histories"
        },
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
            "by 10 ms": "{late_by_10_ms}",
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
