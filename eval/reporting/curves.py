"""Figures of the curves of a game, for reports."""

import io
import re
from collections.abc import Iterator, Sequence

from spiel_cr.common import figures
from spiel_cr.policies.curves import PANELS, Curve, Panel, Place, ahead, draw

from .html_page import number, text
from .summary import GameSummary, Row


def chart(summary: GameSummary) -> str:
    """Return SVG with the curves of a game over seconds and iterations."""
    file = io.StringIO()
    # Each line of the legend contains four rows of the table.
    axes = figures.panels(size=(14, 4.5 + len(summary.rows) / 18), columns=3)
    titles: list[list[str]] = []
    for axis, (against, words) in zip(axes, PANELS.items(), strict=True):
        series = series_of(summary.rows, against=against)
        draw(axis, series, first=len(titles))
        # Minor ticks take most of the time of drawing.
        axis.minorticks_off()
        axis.set_xlabel(words)
        titles += [[_words(one.label, p, words) for p in one.points] for one in series]
    axes[0].set_ylabel("NashConv (game's units)")
    figure = axes[0].figure
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figures.save_svg(figure, file)
    return _hovered(file.getvalue(), titles)


def _words(label: str, point: Place, where: str) -> str:
    """Return the text that browsers show at a point."""
    x, *values = map(number, point)
    band = f" ({values[1]} to {values[2]})" if point[2] < point[3] else ""
    return f"{label}: NashConv {values[0]}{band}, {where}: {x}"


def _hovered(svg: str, titles: Sequence[Sequence[str]]) -> str:
    """Add titles, which browsers show, to the points of a picture."""
    words: Iterator[str] = iter(())

    def titled(match: re.Match[str]) -> str:
        nonlocal words
        if match[1]:
            words = iter(titles[int(match[1])])
        elif title := next(words, ""):
            return f"{match[0][:-2]}><title>{text(title)}</title></use>"
        return match[0]

    return re.sub(r'<g id="points-(\d+)">|<use [^>]*/>', titled, svg)


def series_of(rows: Sequence[Row], *, against: Panel) -> list[Curve]:
    """Return the curves of a game, in the order of the rows.

    Args:
      rows: Rows of the table.
      against: Quantity of the horizontal axis.
    """
    series = []
    for row in rows:
        # Nearly all compilation precedes the first point.
        setup = row.setup_seconds.median + row.compile_seconds.median
        points: list[Place] = [
            (place, *point.nash_conv)
            for point in row.curve
            if (place := point.at(against, setup)) is not None and place > 0
        ]
        if row.entry.mode == "restarts":
            points = ahead(points)
        series.append(Curve(row.entry.title, points, row.entry.is_spiel_cr))
    return series
