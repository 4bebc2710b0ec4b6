"""Writes the report of a comparison, HTML and Markdown, from its records."""

import os
import pathlib
import warnings
from collections.abc import Callable, Sequence

from spiel_cr.common import atomic
from spiel_cr.common.json_log import Record, unsealed
from spiel_cr.common.record_checks import (
    Test,
    check_fields,
    is_list,
    is_number,
    is_text,
    optional,
)

from .report_html import report_html
from .report_markdown import report_markdown
from .report_text import document_of
from .summary import summarise

_NUMBERS = is_list(is_list(optional(is_number)))
_MATRIX: dict[str, Test] = {
    "game": is_text,
    "bots": is_list(is_text),
    "mean": _NUMBERS,
    "half_width": _NUMBERS,
}


def write(
    folder: pathlib.Path,
    settings: Record,
    records: Sequence[Record],
    *,
    unwritten: Callable[[OSError], object] | None = None,
) -> None:
    """Writes `report.html`, `report.md` and the latter's pictures.

    Args:
      folder: of the comparison; results of tournaments in folders inside it are shown
        too.
      settings: of the comparison.
      records: its runs, in the order of the plan.
      unwritten: called for each file that cannot be written; None: the first such
        error is raised, when the others are written.

    Raises:
      OSError: a file could not be written, and nobody was to be called.
    """
    summaries = summarise(settings, records)
    document = document_of(
        settings, records, summaries, tournaments(folder), os.fspath(folder)
    )
    markdown, pictures = report_markdown(document)
    files = {"report.html": report_html(document), "report.md": markdown, **pictures}
    errors: list[OSError] = []
    for name, text in files.items():
        try:
            atomic.write_text(folder / name, text)
        except OSError as error:
            (unwritten or errors.append)(error)
    if errors:
        raise errors[0]


def tournaments(folder: pathlib.Path) -> list[Record]:
    """The `summary.json` of each tournament in a folder inside this one.

    Other files of this name are left out; a warning says so.
    """
    found = []
    for path in sorted(folder.glob("*/summary.json")):
        try:
            # A FIFO would be waited for.
            content = path.read_bytes() if path.is_file() else None
        except OSError as error:
            warnings.warn(f"{error}; it is not in the report", stacklevel=2)
            continue
        if content is None:
            warnings.warn(
                f"{path} is not a regular file; it is not in the report", stacklevel=2
            )
            continue
        try:
            summary = unsealed(content)
            check_fields(summary, _MATRIX)
            _check_square(summary)
        except ValueError as error:
            warnings.warn(
                f"{path} is not in the report: it {error}; if it is a tournament's, "
                f"run that again to write it anew",
                stacklevel=2,
            )
            continue
        found.append(summary)
    return found


def _check_square(summary: Record) -> None:
    size = len(summary["bots"])
    for name in ("mean", "half_width"):
        if [len(row) for row in summary[name]] != [size] * size:
            raise ValueError(f"has no {name} for each pair of {size} bots")
