"""Pictures of the curves of a game, for reports.

They need the extra `plots`; reports are also written without it.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from spiel_cr.common import figures

from .html_page import number, text
from .summary import CurveBand, GameSummary, Row

Against = Literal["seconds", "wall", "iterations"]
# Labels of the horizontal axes.
AGAINST: dict[Against, str] = {
    "seconds": "solving time (s)",
    "wall": "time with set-up and compilation (s)",
    "iterations": "iterations",
}

# (x, NashConv, least, greatest)
_Point = tuple[float, float, float, float]
_MARKS = "os^Dv"
# Numbers below this share of the largest value are rounding errors.
_FLOOR = 1e-13


class Curve(NamedTuple):
    """A curve.

    Attributes:
      label: Label in the legend.
      points: x, NashConv, and its least and greatest value over seeds.
      is_spiel_cr: Whether it is of this project: a thicker, unbroken line.
      joined: Whether a line joins the points.
    """

    label: str
    points: list[_Point]
    is_spiel_cr: bool
    joined: bool


def chart(summary: GameSummary) -> str:
    """Return SVG with the curves of a game over seconds and iterations."""
    file = io.StringIO()
    # Each line of the legend contains four rows of the table.
    axes = figures.panels(size=(14, 4.5 + len(summary.rows) / 18), columns=3)
    titles: list[list[str]] = []
    for axis, (against, words) in zip(axes, AGAINST.items(), strict=True):
        series = series_of(summary.rows, against=against)
        _draw(axis, series, len(titles))
        axis.set_xlabel(words)
        titles += [[_words(one.label, p, words) for p in one.points] for one in series]
    axes[0].set_ylabel("NashConv (game's units)")
    figure = axes[0].figure
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figures.save_svg(figure, file)
    return _hovered(file.getvalue(), titles)


def _words(label: str, point: _Point, where: str) -> str:
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


def _draw(axis: figures.Axes, series: Sequence[Curve], first: int = 0) -> None:
    """Draw curves on logarithmic axes, with zeros and rounding errors at the edge.

    Args:
      axis: Axis of a panel.
      series: Curves of the panel.
      first: Number of the first one in the picture.
    """
    greatest = max((p[3] for one in series for p in one.points), default=1.0)
    for place, one in enumerate(series):
        # A curve without points still has a colour and an entry in the legend.
        x, *values = np.array(one.points).reshape(-1, 4).T
        middle, low, high = np.maximum(values, _FLOOR * greatest)
        colour, style = f"C{place}", "-" if one.is_spiel_cr else "--"
        axis.fill_between(x, low, high, color=colour, alpha=0.15)
        axis.plot(
            x,
            middle,
            color=colour,
            linestyle=style if one.joined else "none",
            linewidth=2 if one.is_spiel_cr else 1,
            marker=_MARKS[place // 10 % len(_MARKS)],
            markersize=4,
            label=one.label,
            gid=f"points-{first + place}",
        )
    if any(
        one.points for one in series
    ):  # matplotlib supports log axes only with points
        axis.set(xscale="log", yscale="log")
    # Minor ticks take most of the time of drawing.
    axis.minorticks_off()


def series_of(rows: Sequence[Row], *, against: Against) -> list[Curve]:
    """Return the curves of a game, in the order of the rows.

    Args:
      rows: Rows of the table.
      against: Quantity of the horizontal axis.
    """
    series = []
    for row in rows:
        points: list[_Point] = [
            (place, point.nash_conv.median, *point.nash_conv[1:])
            for point in row.curve
            if (place := _place(row, point, against)) is not None and place > 0
        ]
        if row.entry.mode == "restarts":
            points = _ahead(points)
        joined = row.entry.mode != "once"
        series.append(Curve(row.entry.title, points, row.entry.is_spiel_cr, joined))
    return series


def _place(row: Row, point: CurveBand, against: Against) -> float | None:
    if against == "wall":  # nearly all compilation is before the first point
        return point.seconds + row.setup_seconds.median + row.compile_seconds.median
    return point.seconds if against == "seconds" else point.iterations


def _ahead(points: list[_Point]) -> list[_Point]:
    """Drop points of separate runs that took longer than a run of more iterations."""
    kept: list[_Point] = []
    for point in reversed(points):
        if not kept or point[0] < kept[-1][0]:
            kept.append(point)
    return kept[::-1]
