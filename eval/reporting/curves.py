"""Pictures of a game's curves, as reports of any form show them.

They need the extra `plots`; reports are written without them, too.
"""

import io
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from spiel_cr.common import pictures

from .summary import GameSummary, Row

Against = Literal["seconds", "iterations"]
AGAINST: tuple[Against, ...] = ("seconds", "iterations")

# (x, NashConv, least, greatest)
_Point = tuple[float, float, float, float]
_MARKS = "os^Dv"
# Below this share of the largest value, numbers are rounding.
_FLOOR = 1e-13


class Series(NamedTuple):
    """A curve.

    Attributes:
      label: for people.
      points: x, NashConv, and its least and greatest over seeds.
      ours: a thicker, unbroken line.
      joined: whether a line joins the points.
    """

    label: str
    points: list[_Point]
    ours: bool
    joined: bool


def chart(summary: GameSummary) -> str:
    """The text of an SVG file: a game's curves against seconds and iterations."""
    text = io.StringIO()
    axes = pictures.panels(size=(14, 5.5), columns=2)
    for axis, against in zip(axes, AGAINST, strict=True):
        _draw(axis, series_of(summary.rows, against=against))
        axis.set_xlabel(against)
    axes[0].set_ylabel("NashConv (game's units)")
    figure = axes[0].figure
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="x-small")
    pictures.save_svg(figure, text)
    return text.getvalue()


def _draw(axis: pictures.Axes, series: Sequence[Series]) -> None:
    """Both axes logarithmic; zeros and rounding errors are at the lower edge."""
    greatest = max((p[3] for one in series for p in one.points), default=1.0)
    for number, one in enumerate(series):
        # Without points it still has its colour, and its line of the legend.
        x, *values = np.array(one.points).reshape(-1, 4).T
        middle, low, high = np.maximum(values, _FLOOR * greatest)
        colour, style = f"C{number}", "-" if one.ours else "--"
        axis.fill_between(x, low, high, color=colour, alpha=0.15)
        axis.plot(
            x,
            middle,
            color=colour,
            linestyle=style if one.joined else "none",
            linewidth=2 if one.ours else 1,
            marker=_MARKS[number // 10 % len(_MARKS)],
            markersize=4,
            label=one.label,
        )
    if any(one.points for one in series):  # matplotlib draws no others so
        axis.set(xscale="log", yscale="log")
    # Those between powers of ten take most of the time of drawing.
    axis.minorticks_off()


def series_of(rows: Sequence[Row], *, against: Against) -> list[Series]:
    """Curves of a game, in the order of the rows.

    Args:
      rows: of the table.
      against: what is on the horizontal axis.
    """
    series = []
    for row in rows:
        points: list[_Point] = [
            (place, point.nash_conv.median, *point.nash_conv[1:])
            for point in row.curve
            if (place := getattr(point, against)) is not None and place > 0
        ]
        if row.entry.way == "restarts":
            points = _ahead(points)
        joined = row.entry.way != "once"
        series.append(Series(row.entry.title, points, row.entry.ours, joined))
    return series


def _ahead(points: list[_Point]) -> list[_Point]:
    """Points of runs of their own: a longer one that took less time stands for both."""
    kept: list[_Point] = []
    for point in reversed(points):
        if not kept or point[0] < kept[-1][0]:
            kept.append(point)
    return kept[::-1]
