"""Plots of studies, and the table of the page *Reproductions*."""

import collections
import json
import pathlib
import re
from collections.abc import Sequence

from spiel_cr.common import atomic, figures

from ..common.files import around_table
from .study import STUDIES, MeanPoint, Study, find_point

_HEAD = "| source | published | spiel_cr | size, seeds | verdict | command |\n"


def plot(study: Study, points: Sequence[MeanPoint], path: pathlib.Path) -> None:
    """Draw curves of all quantities, or their means if they have no budgets.

    Quantities with a single point are left out if others have curves.

    Args:
      study: The study.
      points: Means of all quantities.
      path: File of the plot; its suffix decides the format (png, svg, pdf).
    """
    counts = collections.Counter(point.series for point in points)
    has_curves = bool(study.x_label) and max(counts.values()) > 1
    names = [name for name, count in counts.items() if count > 1 or not has_curves]
    height = 2.0 + 0.25 * len(names)
    with figures.saved_panels(path, size=(9.0, max(4.0, height))) as (axis,):
        for number, name in enumerate(names):
            curve = sorted((p for p in points if p.series == name), key=lambda p: p.x)
            means, widths = [p.mean for p in curve], [p.half_width or 0 for p in curve]
            x = [p.x for p in curve] if has_curves else [number] * len(curve)
            if has_curves:
                axis.errorbar(x, means, widths, marker=".", capsize=2, label=name)
            else:
                axis.errorbar(means, x, xerr=widths, marker="o", linestyle="")
        if has_curves:
            axis.set(xlabel=study.x_label, ylabel=study.y_label)
            if not study.linear:
                axis.set(xscale="log", yscale="log")
            axis.figure.legend(fontsize=6, loc="outside right upper")
        else:
            axis.set_yticks(range(len(names)), names, fontsize=6)
            axis.set_xlabel(study.y_label)
        axis.set_title(study.title, fontsize="medium")


def write_table(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the table of all studies, with the results that a folder contains.

    Args:
      path: Markdown file. In an existing file, only the text between the marks changes.
      folder: Folder of results, `NAME.json`.

    Raises:
      ValueError: If the file exists and has no marks.
    """
    before, after = around_table(path, "studies")
    rows = "".join(_line(study, folder) for study in STUDIES.values())
    table = f"{_HEAD}|{'---|' * 6}\n{rows}"
    atomic.write_text(path, f"{before}{table}{after}")


def _line(study: Study, folder: pathlib.Path) -> str:
    sources = "; ".join(
        f"[{name}](../reference/bibliography.md#{key})" if key else name
        for name, key in study.sources.items()
    )
    file = folder / f"{study.name}.json"
    cells = "not run", "–", "–"
    if file.exists():
        report = json.loads(file.read_text("utf-8"))
        points = [MeanPoint(**point) for point in report["points"]]
        seeds = max(point.seeds for point in points)
        verdict, reason = study.verdict(study.findings(points, report["size"]))
        cells = (
            filled(study.finding, points),
            f"{report['size']:g}, {seeds}",
            f"*{verdict}*" + (f". {reason}" if reason else ""),
        )
    command = f"`spiel-cr study {study.name}`"
    return f"| {' | '.join((sources, study.published, *cells, command))} |\n"


def filled(template: str, points: Sequence[MeanPoint]) -> str:
    """Replace "{name}", "{name@x}" and "{name@mean}" by means with four digits.

    Args:
      template: Text with names of points, see `find_point`; a point that was not
        measured, for example at a small size, becomes a dash.
      points: Means of all quantities.
    """

    def number(match: re.Match[str]) -> str:
        try:
            return f"{find_point(match[1], points).mean:.4g}"
        except ValueError:
            return "–"

    return re.sub(r"\{([^{}]+)\}", number, template)
