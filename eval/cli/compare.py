"""The command `compare`: run algorithms side by side on games, with a report.

algorithms, with semicolons between them:
  default: all of spiel_cr's and all of OpenSpiel's below (the default)
  spiel_cr: {spiel_cr}
  bundled: all of OpenSpiel's below

spiel_cr's are the algorithms of solve, with their parameters, 'lp',
'resolve(solver=cfr+,iterations=100)' (without iterations: as many as fit into the
budget) and the bots of play, such as 'resolving(solver=cfr+,iterations=100)'.

OpenSpiel's:
{bundled}

--out is a folder with results.jsonl, settings.json, report.html and report.md.
results.jsonl has one line per run (an algorithm on a game with a seed), written as soon
as the run is finished. If you repeat the command, only missing runs are computed, also
with additional games, algorithms or seeds.

--figure and --latex write a figure and a table for papers, with the runs of this call.
With several seeds, lines are medians, and bands extend from the least to the greatest
value.

examples:
  spiel-cr compare --game leduc_poker
  spiel-cr compare --game kuhn_poker --game 'liars_dice(numdice=1,dice_sides=4)' \\
    --algorithms 'cfr+;evr-mccfr;openspiel-cfr+;openspiel-os-mccfr' --seconds 2 \\
    --seeds 5 --workers 2 --out out/two
  spiel-cr compare --game kuhn_poker --algorithms 'default;pcfr+' --iterations 1000 \\
    --out out/kuhn
  spiel-cr compare --game leduc_poker --algorithms 'os-mccfr;es-mccfr;public-vr+' \\
    --seconds 10 --seeds 5 --figure curves.pdf --width 3.3in --unit mbb
  spiel-cr compare --suite small --workers 2 --out out/small --table suites.md
"""

import dataclasses
import math
import pathlib
import re
import zlib
from typing import Any

from spiel_cr.common import atomic, memory
from spiel_cr.common.json_log import Record
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening.opened import open_game
from spiel_cr.players.player_specs import MEMORY_LIMIT
from spiel_cr.policies import plotting
from spiel_cr.policies.curves import PANELS
from spiel_cr.solvers.representation import TREE

from ..adapters import registry
from ..common.budget import Budget
from ..common.files import around_table
from ..common.plurals import counted
from ..common.time_estimate import Phases, announce_phases, solving_phases
from ..comparison import comparisons, suites
from ..reporting import latex
from ..reporting.html_page import plain
from ..reporting.summary import GameSummary, summarise
from .command import Arguments, Parser, WorkerOptions, report_problem

RESUMES = True
LISTS = {
    "spiel_cr": "; ".join(registry.GROUPS["spiel_cr"]),
    "bundled": registry.describe(),
}
_SECONDS = 10.0
_OUT = "out/compare"
# Characters that are allowed in a folder's name.
_LONGEST = 100


@dataclasses.dataclass(kw_only=True)
class CompareOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      game: OpenSpiel game string; may be repeated.
      suite: Games, algorithms and budget of a benchmark. small: 1,000 iterations of all
        full-width rules on small games. large: ten minutes of three algorithms on
        games whose game tree is too large; only with --seconds, --out, --table,
        --memory-limit and --workers.
      algorithms ('A;B;C'): Algorithms, separated by semicolons (default: all that are
        listed below).
      seconds: Time budget of each run (default 10).
      iterations: Number of iterations of each run.
      out (DIR): Folder of results and report (default out/compare/GAME, so that games
        have separate folders).
      workers: Number of processes, at most the number of cores for valid times; 0: none
        (default 1).
      figure (FILE): Draw the curves of the algorithms of this call (pdf, svg or png).
      panel: Horizontal axis of the figure; may be repeated for panels side by side
        (default seconds).
      width: Width of the figure, such as 3.3in or 84mm (default 5in for each panel).
      unit: Unit of the figure and of the LaTeX table; mbb: NashConv per game in
        thousandths of the big blind, or of the ante (default nash_conv).
      latex (FILE): Write the final values as a LaTeX table.
      table (FILE): Write the results of the suite as a Markdown page. If the file has
        the two lines `<!-- suite NAME: begin -->` and `<!-- suite NAME: end -->`, the
        tables replace the text between them.
      patience (SECONDS): Wall-clock time after which a run is given up; not with
        --workers 0 (default: ten minutes and thirty times --seconds).
    """

    game: list[str] | None = None
    suite: str | None = dataclasses.field(
        default=None, metadata={"choices": list(suites.SUITES)}
    )
    algorithms: str | None = None
    seconds: float | None = None
    iterations: int | None = None
    out: atomic.Path | None = None
    figure: atomic.Path | None = None
    panel: list[str] | None = dataclasses.field(
        default=None, metadata={"choices": list(PANELS)}
    )
    width: str | None = None
    unit: plotting.Unit = "nash_conv"
    latex: atomic.Path | None = None
    table: atomic.Path | None = None
    patience: float | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    parser.settings(
        comparisons.CompareConfig, "seeds memory_limit retry", seeds={"metavar": "K"}
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Compare algorithms."""
    suite = _apply_suite(arguments)
    if suite is not None and not suite.is_built:
        return _run_large(arguments, suite)
    seconds = arguments.seconds
    arguments.out = arguments.out or _folder(arguments.game)
    if seconds is None and arguments.iterations is None:
        seconds = _SECONDS
    for game in arguments.game:  # before any work
        plotting.unit_factor(arguments.unit, game)
    if arguments.width is not None:
        plotting.inches_of(arguments.width)
    # Workers on Ray reserve as much memory as the user's limit.
    limit = memory.parse_limit(arguments.memory_limit)
    reserved = None if arguments.memory_limit == MEMORY_LIMIT else limit
    executor = arguments.executor(1, memory=reserved, patience=arguments.patience)
    algorithms = registry.expand(arguments.algorithms or "default")
    budget = Budget(seconds, arguments.iterations)
    _announce_estimate(arguments, algorithms, budget, max(executor.workers, 1))
    result = comparisons.compare(
        *(arguments.game, algorithms, budget, arguments.out),
        arguments.settings(comparisons.CompareConfig, executor=executor),
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
    files = _write_for_papers(arguments, result)
    if suite is not None:
        files |= _write_suite(arguments, suite, result.requested)
    useless = all(record["nash_conv"] is None for record in result.requested)
    if useless:
        report_problem(
            "error", "no run gave a number; see the reasons above, and choose others"
        )
    return {
        **({"exit_code": 1} if useless else {}),
        "out": str(result.folder),
        **({"report": page} if written else {}),
        **files,
        "runs": len(result.records),
        "games": [_as_json(summary) for summary in summaries],
    }


def _apply_suite(arguments: Arguments) -> suites.Suite | None:
    """Return the suite, whose games, algorithms and budget become options."""
    if arguments.suite is None:
        if not arguments.game or arguments.table:
            missing = "--table needs a suite" if arguments.table else "no game"
            raise ValueError(f"--game, --suite: {missing}; add --suite, or a game")
        return None
    suite = suites.SUITES[arguments.suite]
    fixed = "seconds" if suite.is_built else "figure latex panel width unit patience"
    names = ["game", "algorithms", "iterations", *fixed.split()]
    arguments.reject(CompareOptions, names, f"is not for the suite {suite.name}")
    problem = f"is not for the suite {suite.name}, which has one run of each algorithm"
    arguments.reject(comparisons.CompareConfig, ["seeds"], problem)
    if arguments.table:
        around_table(pathlib.Path(arguments.table), f"suite {suite.name}")
    arguments.game = [row.game for row in suite.games]
    arguments.algorithms = ";".join(suite.algorithms)
    arguments.iterations = suite.budget.iterations
    arguments.out = arguments.out or f"{_OUT}/suite-{suite.name}"
    return suite


def _run_large(arguments: Arguments, suite: suites.Suite) -> dict[str, object]:
    """Run a suite of games without game trees."""
    if arguments.seconds is not None:
        budget = Budget(arguments.seconds, None)
        budget.check()
        suite = suite._replace(budget=budget, points=(math.ceil(arguments.seconds),))
    records = []
    options = arguments.options("out", "memory_limit")
    for record in suites.run_large(suite, executor=arguments.executor(), **options):
        records.append(record)
        value = record["nash_conv"]
        text = f"{value:.2e}" if value is not None else record["error"]
        print(one_line(f"{record['game']}, {record['algorithm']}: {text}"))
    files = _write_suite(arguments, suite, records)
    return {"out": str(arguments.out), **files, "runs": len(records)}


def _write_suite(
    arguments: Arguments, suite: suites.Suite, records: list[Record]
) -> dict[str, Any]:
    """Write the page of a suite, and print how good `auto` is."""
    rows = suites.standings(suite, records)
    ratio = suites.auto_ratio(rows)
    if ratio is not None:
        print(f"auto / best rule: {ratio:.3g} (geometric mean of NashConv)")
    if arguments.table:
        with arguments.writing("table:", arguments.table):
            suites.write_page(suite, rows, arguments.table)
    return {"suite": suite.name, "auto_ratio": ratio, "table": arguments.table}


def _announce_estimate(
    arguments: Arguments, algorithms: list[str], budget: Budget, workers: int
) -> None:
    """Print an estimate of the time of all runs, as if none were finished."""
    total, count = Phases(), 0
    for game in dict.fromkeys(arguments.game):
        runs = comparisons.plan([game], algorithms, budget, arguments.seeds)
        compiled = [run for run in runs if registry.find(run.algorithm).is_spiel_cr]
        # No run is marked as cached: workers compile everything again.
        one = solving_phases(open_game(game), TREE, (), seconds=budget.seconds)
        each = (1, len(compiled) / workers, len(runs) / workers, len(runs) / workers)
        parts = zip(total, one, each, strict=True)
        total = Phases(*(sum_ + part * times for sum_, part, times in parts))
        count += len(runs)
    announce_phases(total, f" for {counted(count, 'run')}")


def _write_for_papers(
    arguments: Arguments, result: comparisons.Comparison
) -> dict[str, str]:
    """Write the figure and the LaTeX table of this call, and return their paths."""
    done = [record for record in result.requested if record["nash_conv"] is not None]
    if arguments.figure and done:
        with arguments.writing("figure:", arguments.figure):
            plotting.plot(
                done,
                arguments.figure,
                title="",
                panel=arguments.panel or "seconds",
                **arguments.options("width", "unit"),
            )
    if arguments.latex and done:
        text = latex.table(summarise(result.settings, done), arguments.unit)
        arguments.write_text(arguments.latex, text, "table:")
    paths = arguments.options("figure", "latex") if done else {}
    return {k: v for k, v in paths.items() if v and v not in arguments.unwritten}


def _folder(games: list[str]) -> str:
    """Return a folder for these games, with a name that any file system accepts."""
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
    for entry, reason in summary.absent:
        print(f"  {one_line(entry.title)}: missing: {one_line(reason)}")
    for entry, seed, error in summary.failed:
        print(f"  {one_line(entry.title)}, seed {seed}: failed: {one_line(error)}")


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
            {"algorithm": entry.name, "reason": reason}
            for entry, reason in summary.absent
        ],
        "failed": [
            {"algorithm": entry.name, "seed": seed, "error": error}
            for entry, seed, error in summary.failed
        ],
    }
