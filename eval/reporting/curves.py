"""Pictures of a game's curves, as reports of any form show them."""

from collections.abc import Sequence
from typing import Any, Literal

from . import svg
from .summary import GameSummary, Row

Against = Literal["seconds", "iterations"]
AGAINST: tuple[Against, ...] = ("seconds", "iterations")

# As in `svg.Series`.
_Point = tuple[float, float, float, float]


def chart(summary: GameSummary, against: Against, **options: Any) -> str:
    """An `<svg>` element of a game's curves; options as for `svg.chart`."""
    return svg.chart(
        series_of(summary.rows, against=against),
        title=f"{summary.game}: NashConv against {against}",
        x_label=against,
        y_label="NashConv",
        **options,
    )


def series_of(rows: Sequence[Row], *, against: Against) -> list[svg.Series]:
    """Curves of a game, numbered as the rows are.

    Args:
      rows: of the table.
      against: what is on the horizontal axis.
    """
    series = []
    for number, row in enumerate(rows):
        points: list[_Point] = [
            (place, point.nash_conv.median, *point.nash_conv[1:])
            for point in row.curve
            if (place := getattr(point, against)) is not None and place > 0
        ]
        if row.entry.way == "restarts":
            points = _ahead(points)
        joined = row.entry.way != "once"
        series.append(
            svg.Series(number, row.entry.title, points, row.entry.ours, joined)
        )
    return series


def _ahead(points: list[_Point]) -> list[_Point]:
    """Points of runs of their own: a longer one that took less time stands for both."""
    kept: list[_Point] = []
    for point in reversed(points):
        if not kept or point[0] < kept[-1][0]:
            kept.append(point)
    return kept[::-1]
