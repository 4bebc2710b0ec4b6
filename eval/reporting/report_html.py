"""A report as one HTML file, which opens from disk."""

import pathlib
from collections.abc import Sequence

from . import curves, svg
from .document import Block, Command, Curves, Document, Paragraph, Section, Table, Terms
from .html_page import breakable, page, text
from .summary import GameSummary

# One picture for desks, one for phones: how `svg.chart` draws it.
_SIZES = {
    "large": svg.Size(width=1160, height=440, side=290),
    "small": svg.Size(width=372, height=420, side=152, font=10),
}
# Of columns, by their heads.
_CLASSES = {"note": "words", "range over seeds": "range"}


def report_html(document: Document) -> str:
    """The page."""
    contents = "".join(
        f'<li><a href="#s{number}">{text(section.title)}</a></li>'
        for number, section in enumerate(document.sections)
    )
    sections = "".join(map(_section, range(len(document.sections)), document.sections))
    body = (
        f"<header><h1>{text(document.title)}</h1>"
        f'<p class="lead">{text(document.lead)}</p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
        f"<main>{sections}</main><footer><p>Written by spiel_cr.</p></footer>"
    )
    script = pathlib.Path(__file__).with_suffix(".js").read_text("utf-8")
    return page(document.title, body, script)


def _section(number: int, section: Section) -> str:
    blocks = "".join(map(_block, section.blocks))
    return f'<section id="s{number}"><h2>{text(section.title)}</h2>{blocks}</section>'


def _block(block: Block) -> str:
    match block:
        case Paragraph(sentences):
            return f"<p>{text(sentences)}</p>"
        case Command(title, line):
            return f"<h3>{text(title)}</h3><pre><code>{text(line)}</code></pre>"
        case Curves(summary):
            return _figures(summary)
        case Table():
            return _table(block)
        case Terms():
            return _terms(block)


def _terms(terms: Terms) -> str:
    pairs = "".join(
        f"<dt>{text(term)}</dt><dd>{text(said)}</dd>" for term, said in terms.pairs
    )
    if terms.folded:
        summary = f"<summary>{text(terms.title)}</summary>"
        return f"<details>{summary}<dl>{pairs}</dl></details>"
    style = "facts warn" if terms.warning else "facts"
    return f'<h3>{text(terms.title)}</h3><dl class="{style}">{pairs}</dl>'


def _table(table: Table) -> str:
    styles = [
        f' class="{_CLASSES[head]}"' if head in _CLASSES else "" for head in table.heads
    ]
    heads = "".join(
        f"<th{style}>{text(head)}</th>"
        for style, head in zip(styles, table.heads, strict=True)
    )
    rows = []
    bars = _bars(table.times) or [""] * len(table.rows)
    for (name, *values), ours, bar in zip(table.rows, table.ours, bars, strict=True):
        entries = "".join(
            f'<td{style} data-head="{text(head)}">{text(value)}'
            f"{bar if head == 'seconds' else ''}</td>"
            for style, head, value in zip(
                styles[1:], table.heads[1:], values, strict=True
            )
        )
        style = ' class="ours"' if ours else ""
        rows.append(f'<tr{style}><th scope="row">{breakable(name)}</th>{entries}</tr>')
    legend = " Shaded: this project's." if any(table.ours) else ""
    if table.times:
        legend += " Bars: seconds of work and, striped, of compiling."
    return (
        '<div class="scroll cards" tabindex="0" role="region" aria-label="Table">'
        "<table>"
        f"<caption>{text(table.caption + legend)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _bars(times: Sequence[tuple[float, float]]) -> list[str]:
    """A bar for each (seconds of work, seconds of compiling), of one scale."""
    longest = max(map(sum, times), default=0.0) or 1.0
    return [
        '<span class="time" aria-hidden="true">'
        + "".join(
            f'<i class="{name}" style="width:{100 * own / longest:.1f}%"></i>'
            for name, own in zip(("work", "compile"), pair, strict=True)
        )
        + "</span>"
        for pair in times
    ]


def _figures(summary: GameSummary) -> str:
    figures = []
    for against in curves.AGAINST:
        pictures = "".join(
            curves.chart(summary, against, size=size).replace(
                'class="chart"', f'class="chart {name}"', 1
            )
            for name, size in _SIZES.items()
        )
        caption = f"NashConv against {against}, both axes logarithmic"
        figures.append(f"<figure><figcaption>{caption}</figcaption>{pictures}</figure>")
    keys = "".join(
        f'<li><label data-s="{n}"><input type="checkbox" checked>'
        f"{svg.mark(n, row.entry.ours)}<span>{breakable(row.entry.title)}</span>"
        f"</label></li>"
        for n, row in enumerate(summary.rows)
    )
    return (
        f'<div class="plots"><div class="figures">{"".join(figures)}</div>'
        '<div class="tools"><button type="button" data-show="all">show all</button>'
        '<button type="button" data-show="none">hide all</button>'
        '<button type="button" data-show="ours">ours only</button></div>'
        f'<ul class="legend">{keys}</ul></div>'
    )
