"""The command `compare`; brings `show` and `study` with it."""

import argparse
import re
import sys
import zlib
from typing import Any

from spiel_cr.players import bot_strings

from ..common.budget import Budget
from ..comparison import comparisons
from ..contestants import registry
from ..reporting.html_page import plain
from ..reporting.summary import GameSummary, summarise
from . import show, study
from .command import Commands, add_command

_SECONDS = 10.0
_OUT = "out/compare"
# Letters of a folder's name.
_LONGEST = 100

_EPILOG = f"""algorithms, with semicolons between them:
  default: all of ours and all of OpenSpiel's below (the default)
  ours: {"; ".join(registry.GROUPS["ours"])}
  bundled: all of OpenSpiel's below

Ours are the algorithms of solve, with their parameters, 'lp',
'resolve(solver=cfr+,iterations=100)' (without iterations: as many as fit in the budget)
and the bots of play, such as 'resolving(solver=cfr+,iterations=100)'.

OpenSpiel's:
{registry.describe()}

--out is a folder: results.jsonl, a line per run (an algorithm on a game with a seed),
written as soon as it is finished; settings.json; report.html; report.md. The same
command again runs only what is missing there; more games, algorithms or seeds add to
it. Results of `spiel-cr tournament --out DIR/NAME` are shown in the report, too.

examples:
  spiel-cr compare --game leduc_poker
  spiel-cr compare --game kuhn_poker --game 'liars_dice(numdice=1,dice_sides=4)' \\
    --algorithms 'cfr+;vr-mccfr;openspiel-cfr+;openspiel-os-mccfr' --seconds 2 \\
    --seeds 5 --workers 2 --out out/two
  spiel-cr compare --game kuhn_poker --algorithms 'default;pcfr+' --iterations 1000 \\
    --out out/kuhn"""


def add_commands(commands: Commands) -> None:
    """Adds the commands of this file."""
    text = "run algorithms side by side on games, ours and OpenSpiel's, with a report"
    parser = add_command(commands, "compare", _compare, text)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument(
        "--game",
        required=True,
        action="append",
        help="OpenSpiel string; may be repeated",
    )
    parser.add_argument(
        "--algorithms",
        default="default",
        metavar="'A;B;C'",
        help="see below (default %(default)s)",
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--seconds",
        type=float,
        help=f"each algorithm works so long (default {_SECONDS:g})",
    )
    budget.add_argument(
        "--iterations", type=int, metavar="N", help="each does so many iterations"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="K",
        help="algorithms that sample run K times (default %(default)s)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=f"folder of results and report (default {_OUT}/GAME, and so games have "
        f"folders of their own)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes at a time, no more than cores or times mean little; 0: in this "
        "process (default %(default)s)",
    )
    parser.add_argument(
        "--ray", action="store_true", help="do runs on Ray (the extra `ray`)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="give a run up after this wall-clock time, everything included; not with "
        "--workers 0 or --ray (default: ten minutes and thirty times --seconds)",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        default=bot_strings.MEMORY_LIMIT,
        help="refuse games that need more in each process (default %(default)s)",
    )
    parser.add_argument(
        "--retry", action="store_true", help="do runs again that failed"
    )
    show.add_commands(commands)
    study.add_commands(commands)


def _compare(arguments: argparse.Namespace) -> dict[str, object]:
    seconds = arguments.seconds
    out = _folder(arguments.game) if arguments.out is None else arguments.out
    if seconds is None and arguments.iterations is None:
        seconds = _SECONDS
    try:
        result = comparisons.compare(
            arguments.game,
            registry.expand(arguments.algorithms),
            Budget(seconds, arguments.iterations),
            out,
            seeds=arguments.seeds,
            workers=arguments.workers,
            ray=arguments.ray,
            patience=arguments.patience,
            memory_limit=arguments.memory_limit,
            retry=arguments.retry,
            progress=True,
        )
    except KeyboardInterrupt:
        print(
            f"finished runs are kept in {out}, with a report on them; the "
            f"same command runs the rest",
            file=sys.stderr,
        )
        raise
    summaries = summarise(result.settings, result.records)
    for summary in summaries:
        _print_game(summary)
    print(f"report: {result.folder / 'report.html'}")
    useless = all(record["nash_conv"] is None for record in result.asked)
    if useless:
        print("spiel-cr: error: nothing gave a number, see above", file=sys.stderr)
    return {
        **({"exit_code": 1} if useless else {}),
        "out": str(result.folder),
        "report": str(result.folder / "report.html"),
        "runs": len(result.records),
        "games": [_as_json(summary) for summary in summaries],
    }


def _folder(games: list[str]) -> str:
    """A folder for these games, with a name that any file system takes."""
    name = "+".join(
        re.sub(r"[^A-Za-z0-9_.=-]+", "-", game).strip("-.") for game in games
    )
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{zlib.crc32(name.encode()):08x}"
    return f"{_OUT}/{name}"


def _print_game(summary: GameSummary) -> None:
    width = 2 + max((len(row.entry.title) for row in summary.rows), default=0)
    heads = f"{'NashConv':>10}{'seconds':>10}{'iterations':>14}"
    print(f"\n{summary.game}\n  {'':<{width}}{heads}")
    for row in summary.rows:
        count = "-" if row.iterations is None else f"{row.iterations:,.0f}"
        spread = ""
        if not row.nash_conv.single:
            low, high = (plain(value) for value in row.nash_conv[1:])
            spread = f"  ({low} .. {high})"
        print(
            f"  {row.entry.title:<{width}}{row.nash_conv.median:>10.2e}"
            f"{row.seconds.median:>10.3g}{count:>14}{spread}"
        )
    for title, reason in summary.absent:
        print(f"  {title}: missing: {reason}")
    for title, seed, error in summary.failed:
        print(f"  {title}, seed {seed}: failed: {error}")


def _as_json(summary: GameSummary) -> dict[str, Any]:
    return {
        "game": summary.game,
        "results": [
            {
                "algorithm": row.entry.name,
                "nash_conv": row.nash_conv.median,
                "least": row.nash_conv.least,
                "greatest": row.nash_conv.greatest,
                "game_value": row.game_value.median,
                "seconds": row.seconds.median,
                "iterations": row.iterations,
                "seeds": row.seeds,
            }
            for row in summary.rows
        ],
        "missing": [
            {"algorithm": title, "reason": reason} for title, reason in summary.absent
        ],
        "failed": [
            {"algorithm": title, "seed": seed, "error": error}
            for title, seed, error in summary.failed
        ],
    }
