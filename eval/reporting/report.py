"""Writes the report of a comparison, HTML and Markdown, from its records."""

import json
import os
import pathlib
from collections.abc import Sequence

from spiel_cr.common import storage

from ..common.json_log import Record
from .report_html import report_html
from .report_markdown import report_markdown
from .report_text import document_of
from .summary import summarise

_MATRIX = ("game", "bots", "mean", "half_width")


def write(folder: pathlib.Path, settings: Record, records: Sequence[Record]) -> None:
    """Writes `report.html`, `report.md` and the latter's pictures.

    Args:
      folder: of the comparison; results of tournaments in folders inside it are shown
        too.
      settings: of the comparison.
      records: its runs, in the order of the plan.
    """
    summaries = summarise(settings, records)
    document = document_of(
        settings, records, summaries, tournaments(folder), os.fspath(folder)
    )
    markdown, pictures = report_markdown(document)
    files = {"report.html": report_html(document), "report.md": markdown, **pictures}
    for name, text in files.items():
        storage.write_text(folder / name, text)


def tournaments(folder: pathlib.Path) -> list[Record]:
    """The `summary.json` of each tournament in a folder inside this one."""
    found = []
    for path in sorted(folder.glob("*/summary.json")):
        try:
            summary = json.loads(path.read_text("utf-8"))
            if all(summary.get(name) for name in _MATRIX):
                found.append(summary)
        except (AttributeError, OSError, ValueError):
            # Another program's file of this name.
            continue
    return found
