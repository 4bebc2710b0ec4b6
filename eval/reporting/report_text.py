"""Contents of the report on a comparison, in any format."""

import math
import pathlib
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from spiel_cr.common.json_log import Record
from spiel_cr.players.player_specs import MEMORY_LIMIT

from ..adapters import registry
from ..common.budget import Budget
from ..common.exact_evaluator import OPENSPIEL, SPIEL_CR
from ..common.plurals import counted
from . import curves, document
from .html_page import count, number
from .summary import GameSummary, Range, Row

# Mark of an algorithm whose result is not meaningful.
_DOUBTED = " †"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def document_of(
    settings: Record,
    records: Sequence[Record],
    summaries: Sequence[GameSummary],
    out: str,
) -> document.Document:
    """Return the report of a comparison.

    Args:
      settings: Settings of the comparison.
      records: Runs of the comparison.
      summaries: Summary of each game.
      out: Folder of the comparison, for the command.
    """
    budget = Budget(**settings["budget"])
    games, seeds = settings["games"], settings["seeds"]
    games_text = games[0] if len(games) == 1 else f"{len(games)} games"
    rows = [row for summary in summaries for row in summary.rows]
    shown = {row.entry.title: row.entry.how for row in rows}
    lead = (
        f"{len(shown)} algorithms, {budget.text()} each, "
        f"{'one seed' if seeds == 1 else f'{seeds} seeds for those that sample'}. "
        f"NashConv is the sum of both players' gains from exact best responses, in the "
        f"game's units; 0 is an equilibrium."
    )
    title = "Algorithms, and the meaning of an iteration"
    repeating = command(settings, out)
    how = document.Section(
        "How the numbers were obtained",
        [
            *_method(records, budget),
            document.DocumentTerms(title, sorted(shown.items()), folded=True),
            document.DocumentTerms("Machine and versions", _facts(settings, records)),
            document.Command("Command that repeats this comparison", repeating),
        ],
    )
    return document.Document(
        f"Comparison on {games_text}", lead, [*map(_of_game, summaries), how]
    )


def _of_game(summary: GameSummary) -> document.Section:
    blocks: list[document.Block] = [*_outstanding(summary)]
    if summary.rows:
        words = "NashConv against solving time, total time and iterations"
        figure = document.DocumentFigure(words, curves.chart(summary))
        blocks += [figure, _table(summary)]
    if summary.absent:
        pairs = [(entry.title, reason) for entry, reason in summary.absent]
        blocks.append(document.DocumentTerms("Not available", pairs))
    if summary.failed:
        pairs = [
            (f"{entry.title}, seed {seed}", error)
            for entry, seed, error in summary.failed
        ]
        blocks.append(document.DocumentTerms("Failed", pairs, warning=True))
    return document.Section(summary.game, blocks)


def _outstanding(summary: GameSummary) -> list[str]:
    """Return sentences about the most important results of a game."""
    lines = []
    if summary.done < summary.expected:
        lines.append(
            f"Not finished: {summary.done} of {counted(summary.expected, 'run')} exist."
        )
    best_spiel_cr = summary.best(is_spiel_cr=True)
    best_openspiel = summary.best(is_spiel_cr=False)
    both = [row for row in (best_spiel_cr, best_openspiel) if row is not None]
    if both:
        best = min(both, key=lambda row: row.nash_conv.median)
        line = f"Lowest NashConv of the iterative solvers: {_named(best)}"
        other = best_openspiel if best is best_spiel_cr else best_spiel_cr
        if other is not None:
            is_bundled = other is best_openspiel
            origin = "bundled with OpenSpiel" if is_bundled else "of spiel_cr"
            line += f"; of those {origin}: {_named(other)}{_ratio(best, other)}"
        lines.append(f"{line}.")
    exact = summary.exact
    if exact is not None:
        lines.append(
            f"The game's value for player 0 is "
            f"{number(exact.game_value.median, 8)}, by linear programming "
            f"(NashConv {number(exact.nash_conv.median)})."
        )
    if any(SPIEL_CR in row.judges for row in summary.rows):
        lines.append(
            "NashConv was computed by the exact best response of spiel_cr for some "
            "rows, because OpenSpiel's tool cannot: see the column of evaluators."
        )
    return lines


def _table(summary: GameSummary) -> document.DocumentTable:
    # A single seed has no range.
    several = any(row.seeds > 1 for row in summary.rows)
    # If OpenSpiel evaluated everything, the text says so once.
    mixed = any(row.judges != (OPENSPIEL,) for row in summary.rows)
    columns = [_columns(row, several, mixed) for row in summary.rows]
    over = ": medians over seeds, with minimum and maximum" if several else ""
    if any(row.doubt for row in summary.rows):
        over += f".{_DOUBTED}: too few iterations to mean anything"
    return document.DocumentTable(
        f"Final values, lowest NashConv first{over}.",
        list(columns[0]),
        [list(values.values()) for values in columns],
        [row.entry.is_spiel_cr for row in summary.rows],
        [(row.seconds.median, row.compile_seconds.median) for row in summary.rows],
    )


def _columns(row: Row, several: bool, mixed: bool) -> dict[str, str]:
    """Return the cells of a row by the titles of their columns."""
    ranges = {"range over seeds": _range(row.nash_conv), "seeds": str(row.seeds)}
    judges = {"evaluator": ", ".join(row.judges)}
    return {
        "algorithm": row.entry.title + (_DOUBTED if row.doubt else ""),
        "NashConv": number(row.nash_conv.median),
        **(ranges if several else {}),
        "seconds": number(row.seconds.median),
        "iterations": count(row.iterations),
        "game value": number(row.game_value.median, 6),
        "set-up s": number(row.setup_seconds.median, 2),
        "compilation s": number(row.compile_seconds.median, 2),
        **(judges if mixed else {}),
        "note": "; ".join(filter(None, (row.doubt, row.note))),
    }


def _range(value: Range) -> str:
    if value.single:
        return "–"
    return f"{number(value.least)} … {number(value.greatest)}"


def command(settings: Record, out: str) -> str:
    """Return a command for a shell that repeats a comparison."""
    words = ["spiel-cr", "compare"]
    for game in settings["games"]:
        words += ["--game", game]
    names = settings["algorithms"]
    if names == list(registry.GROUPS["default"]):
        names = ["default"]
    words += ["--algorithms", ";".join(names)]
    for name, value in settings["budget"].items():
        if value is not None:
            # Not rounded, because another budget is another run.
            short = f"{value:g}"
            words += [f"--{name}", short if float(short) == value else repr(value)]
    words += ["--seeds", str(settings["seeds"])]
    if settings["workers"] == "ray":
        words.append("--ray")
    else:
        words += ["--workers", str(settings["workers"])]
    limit = settings["memory_limit"]
    if limit not in (MEMORY_LIMIT, None):
        words += ["--memory-limit", str(limit)]
    return shlex.join([*words, "--out", out])


def _named(row: Row) -> str:
    return f"{row.entry.title}, {number(row.nash_conv.median)}"


def _ratio(best: Row, other: Row) -> str:
    low, high = best.nash_conv.median, other.nash_conv.median
    if low <= 0 or high / low < 1.05:
        return ""
    factor = high / low
    shown = f"{factor:.1f}" if factor < 10 else f"{float(f'{factor:.2g}'):,.0f}"
    if factor >= 1e9:
        power = str(math.floor(math.log10(factor))).translate(_RAISED)
        return f", more than 10{power} times as much"
    return f", {shown} times as much"


def _method(records: Sequence[Record], budget: Budget) -> list[str]:
    """Return paragraphs about how the numbers were obtained."""
    by_spiel_cr = [r for r in records if r.get("evaluator") == SPIEL_CR]
    large = sorted({r["game"] for r in records if r.get("curve_evaluator") == SPIEL_CR})
    exceptions = curves = ""
    if by_spiel_cr:
        reasons = sorted({f"{r['game']}: {r['evaluator_reason']}" for r in by_spiel_cr})
        exceptions = f" Exceptions, evaluated by spiel_cr alone: {'; '.join(reasons)}."
    if large:
        curves = (
            f" Points of curves are evaluated by spiel_cr on large games: "
            f"{'; '.join(large)}."
        )
    text = pathlib.Path(__file__).with_name("method.md").read_text("utf-8")
    ways = _listed(_at_a_time(record["workers"]) for record in records)
    filled = text.format(
        budget=budget.text(), exceptions=exceptions, curves=curves, ways=ways
    )
    return filled.strip().split("\n\n")


def _at_a_time(workers: int | str) -> str:
    if isinstance(workers, str):
        return "as tasks on Ray, one processor core each"
    if workers == 0:
        return "one after the other in one process"
    return f"in {counted(workers, 'worker process', 'worker processes')} at a time"


def _facts(settings: Record, records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return machines and versions of all runs, because folders grow."""
    dates = sorted(record["finished"][:10] for record in records)
    versions_of_runs = [record["optional_versions"] for record in records]
    names = dict.fromkeys(name for versions in versions_of_runs for name in versions)
    packages = {
        name: _listed(run.get(name, "absent") for run in versions_of_runs)
        for name in names
    }
    loads = sorted({record["load"] for record in records if "load" in record})
    return [
        ("machine", _listed(record["machine"] for record in records)),
        *[("load when runs started", f"{loads[0]} to {loads[-1]}") for _ in loads[:1]],
        ("date", " to ".join(dict.fromkeys([*dates[:1], *dates[-1:]]))),
        *settings["versions"].items(),
        *packages.items(),
        ("source", _listed(record["source"] for record in records)),
        ("runs", f"{len(records)}"),
    ]


def _listed(values: Iterable[str]) -> str:
    """Return a common value, or each value with the number of its runs."""
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({counted(n, 'run')})" for value, n in counts.items())
