"""A report as one HTML file, which opens from disk."""

import re
from collections.abc import Sequence

from . import document
from .html_page import breakable, page, text

# Of columns, by their heads.
_CLASSES = {"note": "words", "range over seeds": "range"}


def report_html(report: document.Document) -> str:
    """The page."""
    contents = "".join(
        f'<li><a href="#s{number}">{text(section.title)}</a></li>'
        for number, section in enumerate(report.sections)
    )
    sections = "".join(map(_section, range(len(report.sections)), report.sections))
    body = (
        f"<header><h1>{text(report.title)}</h1>"
        f'<p class="lead">{text(report.lead)}</p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
        f"<main>{sections}</main><footer><p>Written by spiel_cr.</p></footer>"
    )
    return page(report.title, body)


def _section(number: int, section: document.Section) -> str:
    blocks = "".join(map(_block, section.blocks))
    return f'<section id="s{number}"><h2>{text(section.title)}</h2>{blocks}</section>'


def _block(block: document.Block) -> str:
    match block:
        case document.Paragraph(sentences):
            return f"<p>{text(sentences)}</p>"
        case document.Command(title, line):
            return f"<h3>{text(title)}</h3><pre><code>{text(line)}</code></pre>"
        case document.Picture(words, svg):
            # Inline, so that points say their values.
            named = f'class="chart" role="img" aria-label="{text(words)}"'
            drawn = re.sub("(?s)<metadata>.*</metadata>", "", svg).partition("<svg")[2]
            head = f"<figcaption>{text(words)}</figcaption>"
            return f'<figure tabindex="0">{head}<svg {named}{drawn}</figure>'
        case document.Table():
            return _table(block)
        case document.Terms():
            return _terms(block)


def _terms(terms: document.Terms) -> str:
    pairs = "".join(
        f"<dt>{text(term)}</dt><dd>{text(said)}</dd>" for term, said in terms.pairs
    )
    if terms.folded:
        summary = f"<summary>{text(terms.title)}</summary>"
        return f"<details>{summary}<dl>{pairs}</dl></details>"
    style = "facts warn" if terms.warning else "facts"
    return f'<h3>{text(terms.title)}</h3><dl class="{style}">{pairs}</dl>'


def _table(table: document.Table) -> str:
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
