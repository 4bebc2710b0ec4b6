"""The command `tournament`: a round robin between bots.

bots, with their parameters in brackets:
{bots}

Matches come in twos: the second is played with swapped seats, and chance draws from
the same numbers. Confidence intervals are computed over these twos. The same seed gives
the same matches where bots have a budget of iterations (and no memory of earlier
matches, as oos has).

--out is a folder: matches.jsonl, one line per match, written as soon as it is over;
table.csv, one line per pair; summary.json; settings.json. The same command again plays
only what is missing there, and a greater --matches adds to it.

example:
  spiel-cr tournament --game leduc_poker --matches 200 --out out/leduc \\
    --bots 'resolving(iterations=100);solved(solver=cfr+,iterations=1000);uniform'
"""

import argparse
import functools
import sys

from spiel_cr.players import bot_strings

from ..players.tournament import Tournament, play_tournament
from .command import (
    Commands,
    add_command,
    bot_options,
    given,
    note_unwritten,
    option,
    split_bots,
)
from .play import HUMAN


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "play a round robin between bots, with confidence intervals"
    parser = add_command(
        commands,
        "tournament",
        _tournament,
        text,
        __doc__,
        resumes=True,
        bots=bot_strings.describe_bots(),
    )
    bot_options(parser, "'A;B;C'", "two or more, see below")
    option(parser, "--matches", "matches of each pair, half in each seat", 100)
    option(parser, "--out", "folder of the results", required=True)
    option(parser, "--seed")


def _tournament(arguments: argparse.Namespace) -> dict[str, object]:
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
    result = play_tournament(
        arguments.game,
        bots,
        arguments.matches,
        arguments.out,
        progress=True,
        unwritten=functools.partial(note_unwritten, arguments),
        **given(arguments, "seed", "memory_limit"),
    )
    print(f"{arguments.game}, seed {arguments.seed}, {result.matches[0][1]} ", end="")
    print("matches per pair; mean return of the row against the column,")
    print("with half the width of its 95 % confidence interval")
    _print_table(result)
    if not arguments.unwritten:
        print(f"written to {arguments.out}")
    keys = ("bots", "mean", "half_width", "matches")
    shares = [effort.unmet_share for effort in result.efforts]
    return {**{key: getattr(result, key) for key in keys}, "unmet_share": shares}


def _print_table(result: Tournament) -> None:
    width = 20
    numbers = [f"[{number}]" for number in range(1, len(result.bots) + 1)]
    print("    " + "".join(f"{number:>{width}}" for number in numbers))
    for number, mean, half_width in zip(
        numbers, result.mean, result.half_width, strict=True
    ):
        texts = [
            "-" if m is None else f"{m:+.4f} ± {'?' if h is None else f'{h:.4f}'}"
            for m, h in zip(mean, half_width, strict=True)
        ]
        print(f"{number:<4}" + "".join(f"{text:>{width}}" for text in texts))
    print(
        f"\n{'':4}{'moves':>9}{'mean ms':>10}{'max ms':>10}{'late':>7}{'compiled':>10}"
    )
    for number, effort in zip(numbers, result.efforts, strict=True):
        late = "-" if effort.late_moves is None else effort.late_moves
        print(
            f"{number:<4}{effort.moves:>9,}{effort.mean_ms:>10.2f}{effort.max_ms:>10.1f}"
            f"{late:>7}{effort.programs_compiled:>10}  {effort.bot}"
        )
    for number, effort in zip(numbers, result.efforts, strict=True):
        if effort.unmet_share is not None:
            print(
                f"{number} is uniform at infosets that it never met: "
                f"{effort.unmet_share:.1%} of {effort.asked:,} decisions"
            )
