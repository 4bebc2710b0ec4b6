"""Comparing: the report as Markdown, with pictures beside it."""

from collections.abc import Sequence
from typing import Any

from . import svg
from .html_page import number, whole
from .report_html import series_of
from .report_text import Words
from .summary import GameSummary, Range

_Against = ("seconds", "iterations")


def pictures(summaries: Sequence[GameSummary]) -> dict[str, str]:
    """SVG files by name."""
    found = {}
    for place, summary in enumerate(summaries):
        for against in _Against if summary.rows else ():
            found[_name(place, against)] = svg.chart(
                series_of(summary.rows, against=against),
                title=f"{summary.game}: NashConv against {against}",
                x_label=against,
                y_label="NashConv",
                alone=True,
            )
    return found


def report_markdown(
    words: Words, summaries: Sequence[GameSummary], matrices: Sequence[dict[str, Any]]
) -> str:
    """The text; arguments as for `report_html`."""
    lines = [f"# {words.title}", "", words.lead, ""]
    for place, summary in enumerate(summaries):
        lines += [f"## {_code(summary.game)}", ""]
        for line in Words.of_game(summary):
            lines += [line, ""]
        if summary.rows:
            for against in _Against:
                name = _name(place, against)
                lines += [f"![NashConv against {against}]({name})", ""]
            lines += [*_table(summary), ""]
        lines += _not_run(summary)
    for matrix in matrices:
        lines += _matrix(matrix)
    lines += ["## How the numbers were obtained", ""]
    for paragraph in words.method:
        lines += [paragraph, ""]
    shown = {row.title: row.how for summary in summaries for row in summary.rows}
    lines += [f"- {_cell(title)}: {how}" for title, how in sorted(shown.items())]
    lines += ["", "## Machine and versions", ""]
    lines += [f"- {name}: {value}" for name, value in words.facts]
    lines += ["", "## The command that repeats this", "", "```", words.command, "```"]
    return "\n".join(lines) + "\n"


def _name(place: int, against: str) -> str:
    return f"report-{place + 1}-{against}.svg"


def _cell(value: str) -> str:
    return value.replace("|", "\\|")


def _code(value: str) -> str:
    return f"`{value}`"


def _table(summary: GameSummary) -> list[str]:
    several = any(row.seeds > 1 for row in summary.rows)
    lines = [
        f"| algorithm | NashConv |{' range over seeds | seeds |' if several else ''} "
        "seconds | iterations | game value | judge |",
        f"|---|---:|{'---:|---:|' if several else ''}---:|---:|---:|---|",
    ]
    for row in summary.rows:
        cells = [
            _cell(row.title),
            number(row.nash_conv.median),
            *((_range(row.nash_conv), str(row.seeds)) if several else ()),
            number(row.seconds.median),
            whole(row.iterations),
            number(row.game_value.median, 6),
            ", ".join(row.judges),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _range(value: Range) -> str:
    if value.single:
        return "–"
    return f"{number(value.least)} … {number(value.greatest)}"


def _not_run(summary: GameSummary) -> list[str]:
    lines = []
    if summary.absent:
        lines += ["Missing here:", ""]
        lines += [f"- {title}: {reason}" for title, reason in summary.absent]
        lines.append("")
    if summary.failed:
        lines += ["Failed:", ""]
        lines += [
            f"- {title}, seed {seed}: {error}" for title, seed, error in summary.failed
        ]
        lines.append("")
    return lines


def _matrix(summary: dict[str, Any]) -> list[str]:
    bots = summary["bots"]
    heads = " | ".join(f"[{n + 1}]" for n in range(len(bots)))
    lines = [
        f"## Tournament: {_code(summary['game'])}",
        "",
        "Mean return of the row against the column, with half the width of its 95 % "
        "confidence interval.",
        "",
        f"| player | {heads} |",
        f"|---|{'---:|' * len(bots)}",
    ]
    for n, bot in enumerate(bots):
        cells = [
            "–" if mean is None else f"{mean:+.4f}" + (f" ± {half:.4f}" if half else "")
            for mean, half in zip(
                summary["mean"][n], summary["half_width"][n], strict=True
            )
        ]
        lines.append(f"| [{n + 1}] {_cell(bot)} | {' | '.join(cells)} |")
    return [*lines, ""]
