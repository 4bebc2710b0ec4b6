"""The command `tournament`: play a round robin between bots, with confidence intervals.

bots, with their parameters in brackets:
{bots}

Matches are played in pairs. In the second match of a pair seats are swapped, and chance
uses the same random numbers. Confidence intervals are computed over pairs. The same
seed gives the same matches if bots have a budget of iterations (and no memory of
earlier matches, as oos has).

--out is a folder with matches.jsonl (one line per match, written as soon as it is
over), table.csv (one line per pair of bots), summary.json and settings.json. If you
repeat the command, only missing matches are played; a larger --matches adds matches.

--session stack=80,rounds=10: games of poker are played in sessions of several hands.
Both players start with a stack, seats are swapped after each hand, and the session ends
when one player has no chips left or after the last round; --matches counts sessions.
Each hand's result is capped at the smaller stack; blinds and bets are those of the
game. --out then has sessions.jsonl and sessions.csv.

--styles: action frequencies by street, and playing styles, of the matches; poker only.
They are written to styles.csv.

examples:
  spiel-cr tournament --game leduc_poker --matches 200 --out out/leduc \\
    --bots 'resolving(iterations=100);solved(solver=cfr+,iterations=1000);uniform'
  spiel-cr tournament --game leduc_poker --matches 200 --out out/sessions --styles \\
    --session stack=20,rounds=10 --bots 'solved(iterations=100);honest(rollouts=100)'
"""

import dataclasses
import itertools
import math
import pathlib
import sys
from collections.abc import Sequence

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.common.json_log import read_lines
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import number_text, one_line
from spiel_cr.evaluation.matches import Slot
from spiel_cr.players.player_specs import MEMORY_LIMIT
from spiel_cr.players.player_strings import describe_players

from ..common.plurals import counted
from ..tournaments import sessions, styles, tournament
from ..tournaments.round_robin import RoundRobinConfig
from .command import Arguments, Parser, WorkerOptions, split_bots
from .play import HUMAN

RESUMES = True
LISTS = {"bots": describe_players()}


@dataclasses.dataclass(kw_only=True)
class TournamentOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      bots ('A;B;C'): Two or more bots, separated by semicolons.
      memory_limit: Memory for game trees that bots need, such as 3GB.
      matches: Number of matches of each pair of bots, half of them in each seat.
      out (DIR): Folder of the results.
      session (stack=S,rounds=N): Play sessions of several hands with stacks of chips
        (poker).
      aivat (POLICY): Reduce the variance of returns (AIVAT) with the values of this
        policy against itself: a file or a name such as 'cfr+(iterations=100)'; exact if
        the game tree fits into memory.
      styles: Report action frequencies by street, and playing styles (poker).
    """

    game: str
    bots: str
    memory_limit: Limit = MEMORY_LIMIT
    matches: int = 100
    out: atomic.Path
    session: str | None = None
    aivat: str | None = None
    styles: bool = False


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(RoundRobinConfig, "seed")


def run(arguments: Arguments) -> dict[str, object]:
    """Play a tournament."""
    bots = split_bots(arguments.bots)
    if HUMAN in bots:
        raise ValueError(
            f"--bots={arguments.bots!r}: a tournament is for bots; "
            f"use `spiel-cr play` for {HUMAN}"
        )
    if arguments.matches % 2:
        print(
            f"--matches {arguments.matches} is odd: {arguments.matches + 1} are "
            f"played, each deal in both seats",
            file=sys.stderr,
        )
    settings = arguments.settings(
        RoundRobinConfig,
        executor=arguments.executor(),
        progress=True,
        unwritten=arguments.note_unwritten,
    )
    if arguments.session is not None:
        session = sessions.read_session(arguments.session)
        report = _sessions(arguments, bots, session, settings)
        report |= _styles(arguments, "sessions")
    else:
        report = _matches(arguments, bots, settings)
        report |= _styles(arguments, "matches")
    if not arguments.unwritten:
        print(f"written to {one_line(arguments.out)}")
    return report


def _matches(
    arguments: Arguments, bots: list[str], settings: RoundRobinConfig
) -> dict[str, object]:
    """Play, print and report matches."""
    if arguments.styles:
        sessions.check_chips(arguments.game, "--styles")
    options = arguments.options("game", "matches", "out", "aivat")
    result = tournament.play_tournament(bots=bots, config=settings, **options)
    print(
        f"{one_line(arguments.game)}, seed {arguments.seed}, {result.matches[0][1]} "
        f"matches per pair; mean return of the row against the column,\n"
        f"with half the width of its 95% confidence interval"
    )
    if arguments.aivat is not None:
        print(f"\nwithout luck (AIVAT, values of {one_line(arguments.aivat)}):")
    _print_table(result)
    if result.plain_mean is not None and result.plain_half_width is not None:
        print("\nas played, with luck:")
        _print_numbers(result.bots, result.plain_mean, result.plain_half_width)
    keys = ("bots", "mean", "half_width", "matches", "plain_half_width")
    shares = [effort.unvisited_share for effort in result.efforts]
    report = {key: getattr(result, key) for key in keys}
    return {**report, "unvisited_share": shares}


def _sessions(
    arguments: Arguments,
    bots: list[str],
    config: sessions.SessionConfig,
    settings: RoundRobinConfig,
) -> dict[str, object]:
    """Play, print and report sessions with stacks."""
    result = sessions.play_sessions(
        bots=bots,
        sessions=arguments.matches,
        session=config,
        config=settings,
        **arguments.options("game", "out", "aivat"),
    )
    print(
        f"{one_line(arguments.game)}, seed {arguments.seed}, "
        f"{result.sessions[0][1]} sessions per pair, "
        f"of at most {counted(config.rounds, 'hand')}, with stacks of {config.stack:g}"
    )
    shares = result.win_share, result.win_share_half_width
    tables = [
        ("share of sessions that the row wins", *shares),
        ("chips that it wins per hand", result.chips, result.chips_half_width),
    ]
    plain, half = result.plain_chips, result.plain_chips_half_width
    if plain is not None and half is not None:
        title = f"chips without luck (AIVAT, values of {one_line(arguments.aivat)})"
        tables[1:] = [(title, *tables[1][1:]), ("chips as they were paid", plain, half)]
    for title, values, halves in tables:
        print(f"\n{title}, with half the width of the 95% confidence interval")
        _print_numbers(result.bots, values, halves)
    print()
    for number, bot in enumerate(result.bots, 1):
        print(f"[{number}] {one_line(bot)}")
    return result._asdict()


def _styles(arguments: Arguments, name: str) -> dict[str, object]:
    """Print, write and report playing styles.

    Args:
      arguments: Arguments of the command.
      name: Name of the file with the matches, without ".jsonl".
    """
    if not arguments.styles:
        return {}
    folder = pathlib.Path(arguments.out)
    records = read_lines(folder / f"{name}.jsonl", Slot._fields)
    players = styles.styles_of(arguments.game, styles.read_hands(records))
    print("\nactions by street, and styles of play")
    print("\n".join(styles.lines_of_styles(players)))
    arguments.write_text(folder / "styles.csv", styles.table_of_styles(players))
    return {"styles": [{**style._asdict(), "style": style.text} for style in players]}


def _print_numbers(
    bots: Sequence[str],
    values: Sequence[Sequence[float | None]],
    half_widths: Sequence[Sequence[float | None]],
) -> list[str]:
    """Print a square table, and return the labels of the bots."""
    width = 20
    numbers = [f"[{number}]" for number in range(1, len(bots) + 1)]
    print("    " + "".join(f"{number:>{width}}" for number in numbers))
    for number, row, halves in zip(numbers, values, half_widths, strict=True):
        texts = [
            "-"
            if m is None
            else f"{number_text(m, '+.4f')} ± {'?' if h is None else f'{h:.4f}'}"
            for m, h in zip(row, halves, strict=True)
        ]
        print(f"{number:<4}" + "".join(f"{text:>{width}}" for text in texts))
    return numbers


def _print_doubts(numbers: Sequence[str], result: tournament.Tournament) -> None:
    """Print pairs without a significant difference, and how many matches they need."""
    pairs = list(itertools.combinations(range(len(numbers)), 2))
    doubted = significant = 0
    for i, j in pairs:
        mean, half = result.mean[i][j], result.half_width[i][j]
        significant += bool(mean and half is not None and abs(mean) > half)
        if mean and half and abs(mean) < half:
            # The interval is proportional to 1 / sqrt(number of matches).
            need = math.ceil(result.matches[i][j] * (half / mean) ** 2)
            pair = f"{numbers[i]} and {numbers[j]}"
            print(
                f"{pair}: not significant; about {need:,} matches would be enough, if "
                f"the mean is unchanged"
            )
            doubted += 1
    if significant and significant + doubted == len(pairs):
        print(f"all {'other ' if doubted else ''}pairs: significant at 95%")


def _print_table(result: tournament.Tournament) -> None:
    numbers = _print_numbers(result.bots, result.mean, result.half_width)
    means = [float(np.mean([m for m in row if m is not None])) for row in result.mean]
    order = sorted(zip(numbers, means, strict=True), key=lambda one: -one[1])
    print(
        "mean against all others: "
        + ", ".join(f"{number} {number_text(mean, '+.4f')}" for number, mean in order)
    )
    _print_doubts(numbers, result)
    print(
        f"\n{'':4}{'moves':>9}{'mean ms':>10}{'max ms':>10}{'late':>7}{'compiled':>10}"
    )
    for number, effort in zip(numbers, result.efforts, strict=True):
        late = "-" if effort.deadline_misses is None else effort.deadline_misses
        print(
            f"{number:<4}{effort.moves:>9,}{effort.mean_ms:>10.2f}{effort.max_ms:>10.1f}"
            f"{late:>7}{effort.compilations:>10}  {one_line(effort.bot)}"
        )
    for number, effort in zip(numbers, result.efforts, strict=True):
        if effort.unvisited_share is not None:
            print(
                f"{number} is uniform at infosets that it never visited: "
                f"{effort.unvisited_share:.1%} of {effort.queried:,} decisions"
            )
