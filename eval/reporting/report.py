"""Reports of comparisons as HTML and Markdown files."""

import os
import pathlib
import re
from collections.abc import Callable, Sequence

from spiel_cr.common.json_log import Record

from ..common.files import markdown_table, write_all
from .document import (
    Block,
    Command,
    Document,
    DocumentFigure,
    DocumentTable,
    DocumentTerms,
    Section,
)
from .html_page import breakable, page, text
from .report_text import document_of
from .summary import summarise

# CSS classes of columns by title.
_CLASSES = {"note": "words", "range over seeds": "range"}


def write(
    folder: pathlib.Path,
    settings: Record,
    records: Sequence[Record],
    *,
    unwritten: Callable[[OSError], object] | None = None,
) -> None:
    """Write `report.html`, `report.md` and the figures of the Markdown report.

    Args:
      folder: Folder of the comparison.
      settings: Settings of the comparison.
      records: Runs in the order of the plan.
      unwritten: Function called for each file that cannot be written; None: the first
        such error is raised after the others are written.

    Raises:
      OSError: If a file cannot be written and `unwritten` is None.
    """
    summaries = summarise(settings, records)
    document = document_of(settings, records, summaries, os.fspath(folder))
    markdown, pictures = report_markdown(document)
    files = {"report.html": report_html(document), "report.md": markdown, **pictures}
    write_all(folder, files, unwritten)


def report_html(report: Document) -> str:
    """Return a report as one HTML page that opens from disk."""
    contents = "".join(
        f'<li><a href="#s{number}">{text(section.title)}</a></li>'
        for number, section in enumerate(report.sections)
    )
    sections = "".join(map(_html_section, range(len(report.sections)), report.sections))
    body = (
        f"<header><h1>{text(report.title)}</h1>"
        f'<p class="lead">{text(report.lead)}</p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
        f"<main>{sections}</main><footer><p>Written by spiel_cr.</p></footer>"
    )
    return page(report.title, body)


def _html_section(number: int, section: Section) -> str:
    blocks = "".join(map(_html_block, section.blocks))
    return f'<section id="s{number}"><h2>{text(section.title)}</h2>{blocks}</section>'


def _html_block(block: Block) -> str:
    match block:
        case str():
            return f"<p>{text(block)}</p>"
        case Command(title, line):
            return f"<h3>{text(title)}</h3><pre><code>{text(line)}</code></pre>"
        case DocumentFigure(words, svg):
            # Inline, so that points show their values.
            named = f'class="chart" role="img" aria-label="{text(words)}"'
            drawn = re.sub("(?s)<metadata>.*</metadata>", "", svg).partition("<svg")[2]
            head = f"<figcaption>{text(words)}</figcaption>"
            return f'<figure tabindex="0">{head}<svg {named}{drawn}</figure>'
        case DocumentTable():
            return _table(block)
        case DocumentTerms():
            return _terms(block)


def _terms(terms: DocumentTerms) -> str:
    pairs = "".join(
        f"<dt>{text(term)}</dt><dd>{text(description)}</dd>"
        for term, description in terms.pairs
    )
    if terms.folded:
        summary = f"<summary>{text(terms.title)}</summary>"
        return f"<details>{summary}<dl>{pairs}</dl></details>"
    style = "facts warn" if terms.warning else "facts"
    return f'<h3>{text(terms.title)}</h3><dl class="{style}">{pairs}</dl>'


def _table(table: DocumentTable) -> str:
    styles = [
        f' class="{_CLASSES[head]}"' if head in _CLASSES else "" for head in table.heads
    ]
    heads = "".join(
        f"<th{style}>{text(head)}</th>"
        for style, head in zip(styles, table.heads, strict=True)
    )
    rows = []
    bars = _bars(table.times) or [""] * len(table.rows)
    for (name, *values), is_spiel_cr, bar in zip(
        table.rows, table.is_spiel_cr, bars, strict=True
    ):
        columns = zip(styles[1:], table.heads[1:], values, strict=True)
        entries = "".join(
            f'<td{style} data-head="{text(head)}">{text(value)}'
            f"{bar if head == 'seconds' else ''}</td>"
            for style, head, value in columns
        )
        style = ' class="ours"' if is_spiel_cr else ""
        rows.append(f'<tr{style}><th scope="row">{breakable(name)}</th>{entries}</tr>')
    legend = " Shaded: this project's." if any(table.is_spiel_cr) else ""
    if table.times:
        legend += " Bars: solving time and (striped) compilation time, in seconds."
    return (
        '<div class="scroll cards" tabindex="0" role="region" aria-label="Table">'
        "<table>"
        f"<caption>{text(table.caption + legend)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _bars(times: Sequence[tuple[float, float]]) -> list[str]:
    """Return bars for (seconds of work, seconds of compilation) on one scale."""
    longest = max(map(sum, times), default=0.0) or 1.0
    return [
        '<span class="time" aria-hidden="true">'
        + "".join(
            f'<i class="{name}" style="width:{100 * seconds / longest:.1f}%"></i>'
            for name, seconds in zip(("work", "compile"), pair, strict=True)
        )
        + "</span>"
        for pair in times
    ]


def report_markdown(document: Document) -> tuple[str, dict[str, str]]:
    """Return a report as Markdown, and its figures: SVG files by name."""
    blocks = [f"# {document.title}", document.lead]
    pictures: dict[str, str] = {}
    for number, section in enumerate(document.sections, 1):
        blocks.append(f"## {section.title}")
        for block in section.blocks:
            if isinstance(block, DocumentFigure):
                name = f"report-{number}.svg"
                pictures[name] = block.svg
                blocks.append(f"![{block.words}]({name})")
            else:
                blocks.append(_markdown_block(block))
    return "\n\n".join(blocks) + "\n", pictures


def _markdown_block(block: Block) -> str:
    match block:
        case str():
            return block
        case Command(title, line):
            return f"### {title}\n\n```\n{line}\n```"
        case DocumentTable(caption, heads, rows):
            table = markdown_table(heads, rows, labels=1)
            return f"{caption}\n\n{table.rstrip()}"
        case DocumentTerms(title, pairs):
            lines = "\n".join(f"- {term}: {description}" for term, description in pairs)
            return f"### {title}\n\n{lines}"
    raise AssertionError(block)
