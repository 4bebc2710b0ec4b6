"""Comparing: writes the report of a run, HTML and Markdown, from its records."""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from spiel_cr.common import storage

from . import report_html, report_markdown
from .report_text import words_of
from .summary import summarise

_MATRIX = ("game", "bots", "mean", "half_width")


def write(
    folder: pathlib.Path, settings: dict[str, Any], records: Sequence[dict[str, Any]]
) -> None:
    """Writes `report.html`, `report.md` and the latter's pictures.

    Args:
      folder: of the run; results of tournaments in folders inside it are shown too.
      settings: of the run.
      records: its runs, in the order of the plan.
    """
    summaries = summarise(settings, records)
    matrices = tournaments(folder)
    words = words_of(settings, records, summaries, os.fspath(folder))
    storage.write_text(
        folder / "report.html", report_html.report_html(words, summaries, matrices)
    )
    for name, picture in report_markdown.pictures(summaries).items():
        storage.write_text(folder / name, picture)
    storage.write_text(
        folder / "report.md",
        report_markdown.report_markdown(words, summaries, matrices),
    )


def tournaments(folder: pathlib.Path) -> list[dict[str, Any]]:
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
