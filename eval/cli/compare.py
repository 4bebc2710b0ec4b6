"""The command `compare`: algorithms side by side.

algorithms, with semicolons between them:
  default: all of ours and all of OpenSpiel's below (the default)
  ours: {ours}
  bundled: all of OpenSpiel's below

Ours are the algorithms of solve, with their parameters, 'lp',
'resolve(solver=cfr+,iterations=100)' (without iterations: as many as fit in the budget)
and the bots of play, such as 'resolving(solver=cfr+,iterations=100)'.

OpenSpiel's:
{bundled}

--out is a folder: results.jsonl, a line per run (an algorithm on a game with a seed),
written as soon as it is finished; settings.json; report.html; report.md. The same
command again runs only what is missing there; more games, algorithms or seeds add to
it.

examples:
  spiel-cr compare --game leduc_poker
  spiel-cr compare --game kuhn_poker --game 'liars_dice(numdice=1,dice_sides=4)' \\
    --algorithms 'cfr+;evr-mccfr;openspiel-cfr+;openspiel-os-mccfr' --seconds 2 \\
    --seeds 5 --workers 2 --out out/two
  spiel-cr compare --game kuhn_poker --algorithms 'default;pcfr+' --iterations 1000 \\
    --out out/kuhn
"""

import re
import zlib
from typing import Any

from spiel_cr.common import memory
from spiel_cr.common.messages import one_line
from spiel_cr.players.bot_strings import MEMORY_LIMIT

from ..adapters import registry
from ..common.budget import Budget
from ..comparison import comparisons
from ..reporting.html_page import plain
from ..reporting.summary import GameSummary, summarise
from .command import Arguments, Commands, add_command, report_problem

_SECONDS = 10.0
_OUT = "out/compare"
# Letters of a folder's name.
_LONGEST = 100


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "run algorithms side by side on games, ours and OpenSpiel's, with a report"
    lists = {"ours": "; ".join(registry.GROUPS["ours"]), "bundled": registry.describe()}
    parser = add_command(
        commands, "compare", _compare, text, __doc__, resumes=True, **lists
    )
    parser.option("--game", "OpenSpiel string; may be repeated", action="append")
    text = "see below (default: all of ours and all of OpenSpiel's)"
    parser.option("--algorithms", text, "default", metavar="'A;B;C'")
    budget = parser.add_mutually_exclusive_group()
    text = f"each algorithm works this long (default {_SECONDS:g})"
    parser.option("--seconds", text, type=float, group=budget)
    parser.option("--iterations", "each does this many iterations", group=budget)
    parser.option("--seeds", "algorithms that sample run K times", 1, metavar="K")
    parser.option(
        "--out",
        f"folder of results and report (default {_OUT}/GAME, and so games have folders "
        f"of their own)",
    )
    text = "processes at a time, no more than cores or times mean little; 0: this one"
    parser.worker_options(text, 1)
    parser.option(
        "--patience",
        "give a run up after this wall-clock time; not with --workers 0 (default: ten "
        "minutes and thirty times --seconds)",
        type=float,
        metavar="SECONDS",
    )
    text = "refuse games that need more in each process"
    parser.option("--memory-limit", text, MEMORY_LIMIT)
    parser.option("--retry", "do runs again that failed", action="store_true")


def _compare(arguments: Arguments) -> dict[str, object]:
    seconds = arguments.seconds
    arguments.out = arguments.out or _folder(arguments.game)
    if seconds is None and arguments.iterations is None:
        seconds = _SECONDS
    # A limit of the user's own is what workers on Ray reserve.
    limit = memory.parse_limit(arguments.memory_limit)
    reserved = None if arguments.memory_limit == MEMORY_LIMIT else limit
    result = comparisons.compare(
        arguments.game,
        registry.expand(arguments.algorithms),
        Budget(seconds, arguments.iterations),
        arguments.out,
        comparisons.CompareConfig(
            executor=arguments.executor(
                1, memory=reserved, **arguments.given("patience")
            ),
            **arguments.given("seeds", "memory_limit", "retry"),
        ),
        progress=True,
        unwritten=arguments.note_unwritten,
    )
    summaries = summarise(result.settings, result.records)
    for summary in summaries:
        _print_game(summary)
    page = str(result.folder / "report.html")
    written = page not in arguments.unwritten
    if written:
        print(f"report: {one_line(page)}")
    useless = all(record["nash_conv"] is None for record in result.requested)
    if useless:
        report_problem(
            "error", "nothing gave a number; see above why, and choose others"
        )
    return {
        **({"exit_code": 1} if useless else {}),
        "out": str(result.folder),
        **({"report": page} if written else {}),
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
    print(f"\n{one_line(summary.game)}\n  {'':<{width}}{heads}")
    for row in summary.rows:
        count = "-" if row.iterations is None else f"{row.iterations:,.0f}"
        spread = ""
        if not row.nash_conv.single:
            low, high = (plain(value) for value in row.nash_conv[1:])
            spread = f"  ({low} .. {high})"
        spread += f"  {row.doubt}" if row.doubt else ""
        print(
            f"  {row.entry.title:<{width}}{row.nash_conv.median:>10.2e}"
            f"{row.seconds.median:>10.3g}{count:>14}{spread}"
        )
    for title, reason in summary.absent:
        print(f"  {one_line(title)}: missing: {one_line(reason)}")
    for title, seed, error in summary.failed:
        print(f"  {one_line(title)}, seed {seed}: failed: {one_line(error)}")


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
