"""Writes the report of a comparison, HTML and Markdown, from its records."""

import os
import pathlib
from collections.abc import Callable, Sequence

from spiel_cr.common.json_log import Record

from ..common.files import write_all
from .report_html import report_html
from .report_markdown import report_markdown
from .report_text import document_of
from .summary import summarise


def write(
    folder: pathlib.Path,
    settings: Record,
    records: Sequence[Record],
    *,
    unwritten: Callable[[OSError], object] | None = None,
) -> None:
    """Writes `report.html`, `report.md` and the latter's pictures.

    Args:
      folder: of the comparison.
      settings: of the comparison.
      records: its runs, in the order of the plan.
      unwritten: called for each file that cannot be written; None: the first such
        error is raised, when the others are written.

    Raises:
      OSError: a file could not be written, and nobody was to be called.
    """
    summaries = summarise(settings, records)
    document = document_of(settings, records, summaries, os.fspath(folder))
    markdown, pictures = report_markdown(document)
    files = {"report.html": report_html(document), "report.md": markdown, **pictures}
    write_all(folder, files, unwritten)
