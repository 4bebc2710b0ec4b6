"""Comparing: the report as one HTML file, which opens from disk."""

from collections.abc import Sequence
from typing import Any

from ..judging.cpp_judge import OPENSPIEL
from . import svg
from .html_page import breakable, number, page, text, whole
from .report_text import Words
from .summary import CurveBand, GameSummary, Range, Row

# As in `svg.Series`.
_Point = tuple[float, float, float, float]

# (class, width, height): one picture for desks, one for phones.
_SIZES = (("large", 620, 430), ("small", 372, 400))


def report_html(
    words: Words, summaries: Sequence[GameSummary], matrices: Sequence[dict[str, Any]]
) -> str:
    """The page.

    Args:
      words: sentences about the run.
      summaries: one a game.
      matrices: summaries of tournaments in the folder.
    """
    parts = [
        f'<header><h1>{text(words.title)}</h1><p class="lead">{text(words.lead)}</p>',
        _contents(summaries, matrices),
        "</header><main>",
    ]
    for place, summary in enumerate(summaries):
        parts.append(_game(place, summary))
    for place, matrix in enumerate(matrices):
        parts.append(_matrix(place, matrix))
    parts.append(_how(words, summaries))
    parts.append("</main><footer><p>Written by spiel_cr.</p></footer>")
    return page(words.title, "\n".join(parts), _SCRIPT)


def series_of(rows: Sequence[Row], *, against: str) -> list[svg.Series]:
    """Curves of a game, numbered as the rows are.

    Args:
      rows: of the table.
      against: "seconds" or "iterations".
    """
    found = []
    for place, row in enumerate(rows):
        points = [
            (_place(point, against), point.nash_conv.median, *point.nash_conv[1:])
            for point in row.curve
            if _place(point, against) > 0
        ]
        joined = row.way != "once"
        if row.way == "restarts":
            points = _ahead(points)
        found.append(svg.Series(place, row.title, points, row.ours, joined))
    return found


def _ahead(points: list[_Point]) -> list[_Point]:
    """Points of runs of their own: a longer one that took less time stands for both."""
    kept: list[_Point] = []
    for point in reversed(points):
        if not kept or point[0] < kept[-1][0]:
            kept.append(point)
    return kept[::-1]


def _place(point: CurveBand, against: str) -> float:
    value = point.seconds if against == "seconds" else point.iterations
    return 0.0 if value is None else float(value)


def _contents(
    summaries: Sequence[GameSummary], matrices: Sequence[dict[str, Any]]
) -> str:
    items = [
        f'<li><a href="#g{n}">{text(s.game)}</a></li>' for n, s in _count(summaries)
    ]
    items += [f'<li><a href="#t{n}">Tournament</a></li>' for n, _ in _count(matrices)]
    items.append('<li><a href="#how">How the numbers were obtained</a></li>')
    return f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def _count(things: Sequence[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(things))


def _game(place: int, summary: GameSummary) -> str:
    parts = [f'<section id="g{place}"><h2>{text(summary.game)}</h2>']
    parts += [f"<p>{text(line)}</p>" for line in Words.of_game(summary)]
    if summary.rows:
        parts.append(_figures(summary))
        parts.append(_table(summary))
    parts.append(_not_run(summary))
    return "".join([*parts, "</section>"])


def _figures(summary: GameSummary) -> str:
    figures = []
    for against in ("seconds", "iterations"):
        curves = series_of(summary.rows, against=against)
        pictures = []
        for name, width, height in _SIZES:
            picture = svg.chart(
                curves,
                title=f"{summary.game}: NashConv against {against}",
                x_label=against,
                y_label="NashConv",
                width=width,
                height=height,
            )
            pictures.append(
                picture.replace('class="chart"', f'class="chart {name}"', 1)
            )
        caption = f"NashConv against {against}, both axes logarithmic"
        figures.append(
            f"<figure><figcaption>{caption}</figcaption>{''.join(pictures)}</figure>"
        )
    keys = "".join(
        f'<li><label data-s="{n}"><input type="checkbox" checked>'
        f"{svg.mark(n, row.ours)}<span>{breakable(row.title)}</span></label></li>"
        for n, row in _count(summary.rows)
    )
    return (
        f'<div class="plots"><div class="figures">{"".join(figures)}</div>'
        '<div class="tools"><button type="button" data-show="all">show all</button>'
        '<button type="button" data-show="none">hide all</button>'
        '<button type="button" data-show="ours">ours only</button></div>'
        f'<ul class="legend">{keys}</ul></div>'
    )


def _table(summary: GameSummary) -> str:
    # Where OpenSpiel judged everything, the text says so once.
    mixed = any(row.judges != (OPENSPIEL,) for row in summary.rows)
    judge = "<th>judge</th>" if mixed else ""
    # One seed has no range.
    several = any(row.seeds > 1 for row in summary.rows)
    spread = "<th>range over seeds</th><th>seeds</th>" if several else ""
    head = (
        f"<th>algorithm</th><th>NashConv</th>{spread}<th>seconds</th>"
        "<th>iterations</th><th>game value</th><th>set-up s</th>"
        f"<th>compiling s</th>{judge}<th class=words>note</th>"
    )
    body = []
    for row in summary.rows:
        ours = ' class="ours"' if row.ours else ""
        judged = f"<td>{text(', '.join(row.judges))}</td>" if mixed else ""
        spread = f'<td class="range">{_range(row.nash_conv)}</td><td>{row.seeds}</td>'
        body.append(
            f'<tr{ours}><th scope="row">{breakable(row.title)}</th>'
            f"<td>{number(row.nash_conv.median)}</td>"
            f"{spread if several else ''}"
            f"<td>{number(row.seconds.median)}</td><td>{whole(row.iterations)}</td>"
            f"<td>{number(row.game_value.median, 6)}</td>"
            f"<td>{number(row.setup_seconds.median, 2)}</td>"
            f"<td>{number(row.compile_seconds.median, 2)}</td>"
            f'{judged}<td class="words">{text(row.note)}</td></tr>'
        )
    over = ": medians over seeds, with the least and the greatest" if several else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Final values">'
        "<table>"
        f"<caption>Final values, lowest NashConv first{over}. Shaded: this project's."
        "</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _range(value: Range) -> str:
    if value.single:
        return "–"
    return f"{number(value.least)} … {number(value.greatest)}"


def _not_run(summary: GameSummary) -> str:
    parts = []
    if summary.absent:
        items = "".join(
            f"<li><strong>{text(title)}</strong>: {text(reason)}</li>"
            for title, reason in summary.absent
        )
        parts.append(f"<h3>Missing here</h3><ul>{items}</ul>")
    if summary.failed:
        items = "".join(
            f"<li><strong>{text(title)}</strong>, seed {seed}: "
            f'<span class="warn">{text(error)}</span></li>'
            for title, seed, error in summary.failed
        )
        parts.append(f"<h3>Failed</h3><ul>{items}</ul>")
    return "".join(parts)


def _matrix(place: int, summary: dict[str, Any]) -> str:
    bots = summary["bots"]
    numbers = "".join(f"<th>[{n + 1}]</th>" for n in range(len(bots)))
    body = []
    for n, bot in enumerate(bots):
        cells = []
        for mean, half in zip(
            summary["mean"][n], summary["half_width"][n], strict=True
        ):
            if mean is None:
                cells.append("<td>–</td>")
            else:
                around = "" if half is None else f" ± {half:.4f}"
                cells.append(f"<td>{mean:+.4f}{around}</td>")
        body.append(
            f'<tr><th scope="row">[{n + 1}] {text(bot)}</th>{"".join(cells)}</tr>'
        )
    return (
        f'<section id="t{place}"><h2>Tournament: {text(summary["game"])}</h2>'
        "<p>Mean return of the row against the column over seat-swapped deals, with "
        "half the width of its 95 % confidence interval.</p>"
        '<div class="scroll" tabindex="0"><table>'
        f"<thead><tr><th>player</th>{numbers}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div></section>"
    )


def _how(words: Words, summaries: Sequence[GameSummary]) -> str:
    shown = {row.title: row.how for summary in summaries for row in summary.rows}
    terms = "".join(
        f"<dt>{text(title)}</dt><dd>{text(how)}</dd>"
        for title, how in sorted(shown.items())
    )
    facts = "".join(
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in words.facts
    )
    lines = "".join(f"<p>{text(line)}</p>" for line in words.method)
    return (
        '<section id="how"><h2>How the numbers were obtained</h2>'
        f"{lines}<details><summary>What each algorithm does, and what an iteration "
        f"is to it</summary><dl>{terms}</dl></details>"
        f'<h3>Machine and versions</h3><dl class="facts">{facts}</dl>'
        "<h3>The command that repeats this</h3>"
        f"<pre><code>{text(words.command)}</code></pre></section>"
    )


_SCRIPT = """
"use strict";
for (const plots of document.querySelectorAll(".plots")) {
  const keys = [...plots.querySelectorAll(".legend label")];
  const curves = key => plots.querySelectorAll(".chart .s" + key.dataset.s);
  const show = (key, on) => {
    key.querySelector("input").checked = on;
    for (const curve of curves(key)) curve.classList.toggle("off", !on);
  };
  const heat = (key, on) => {
    for (const chart of plots.querySelectorAll(".chart"))
      chart.classList.toggle("hot", on);
    for (const curve of curves(key)) curve.classList.toggle("on", on);
  };
  for (const key of keys) {
    key.addEventListener("change", () => show(key, key.querySelector("input").checked));
    key.addEventListener("mouseenter", () => heat(key, true));
    key.addEventListener("mouseleave", () => heat(key, false));
  }
  for (const button of plots.querySelectorAll("[data-show]")) {
    const what = button.dataset.show;
    button.addEventListener("click", () => {
      for (const key of keys) {
        const ours = !key.querySelector(".key .thin");
        show(key, what === "all" || (what === "ours" && ours));
      }
    });
  }
}
"""
