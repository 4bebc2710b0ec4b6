"""Convergence curves: medians and ranges over seeds, and their drawing."""

import statistics
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from spiel_cr.common.figures import Axes

Panel = Literal["seconds", "wall", "iterations"]
# Labels of the horizontal axes.
PANELS: dict[Panel, str] = {
    "seconds": "solving time (s)",
    "wall": "time with set-up and compilation (s)",
    "iterations": "iterations",
}

# Points of a curve, each (seconds, iterations, NashConv).
Points = Sequence[Sequence[Any]]
# (x, NashConv, least, greatest)
Place = tuple[float, float, float, float]
# Colours that colour-blind readers distinguish (Okabe and Ito 2008), without yellow,
# which is too light for lines.
_COLOURS = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000".split()
_MARKS = "os^Dv"
# Numbers below this share of the largest value are rounding errors.
_FLOOR = 1e-13


class Range(NamedTuple):
    """Median, minimum and maximum of a number over seeds."""

    median: float
    least: float
    greatest: float

    @property
    def single(self) -> bool:
        """Whether all seeds have the same value."""
        return self.least == self.greatest


class CurveBand(NamedTuple):
    """A point of a curve over seeds.

    Attributes:
      seconds: Median of seconds.
      iterations: Median number of iterations; None if there are none.
      nash_conv: Median and range of NashConv.
    """

    seconds: float
    iterations: float | None
    nash_conv: Range

    def at(self, panel: Panel, setup: float = 0.0) -> float | None:
        """Return the horizontal coordinate.

        Args:
          panel: Quantity of the horizontal axis.
          setup: Seconds of set-up and compilation, which precede the first point.
        """
        if panel == "iterations":
            return self.iterations
        return self.seconds + (setup if panel == "wall" else 0.0)


class Curve(NamedTuple):
    """A curve of a panel; if it has several points, a line joins them.

    Attributes:
      label: Label in the legend.
      points: x, NashConv, and its least and greatest value over seeds.
      is_spiel_cr: Whether it is of this project: a thicker, unbroken line.
    """

    label: str
    points: Sequence[Place]
    is_spiel_cr: bool = True


def over_seeds(values: Sequence[float]) -> Range:
    """Return the median and the range of a number."""
    return Range(float(statistics.median(values)), min(values), max(values))


def median_count(counts: Sequence[int | None]) -> float | None:
    """Return the median of the counts that are not None."""
    present = [count for count in counts if count is not None]
    return statistics.median(present) if present else None


def bands(curves: Sequence[Points]) -> tuple[CurveBand, ...]:
    """Return a curve with medians and ranges over seeds.

    Points with equal numbers of iterations are combined if at least half of the numbers
    occur in all curves, as for runs from scratch, and also the final points. Otherwise,
    points are combined by their places from the end, because slow seeds skip the first.

    Args:
      curves: Points of each seed, in the order of time.
    """
    by_count = [{point[1]: point for point in curve} for curve in curves]
    shared = [c for c in by_count[0] if all(c in other for other in by_count)]
    length = min(map(len, curves))
    final = [curve[-1] for curve in curves]
    if 2 * len(shared) >= length:
        groups = [[points[count] for points in by_count] for count in shared]
        groups += [] if groups[-1] == final else [final]
    else:
        groups = [[curve[place] for curve in curves] for place in range(-length, 0)]
    return tuple(
        CurveBand(
            statistics.median(seconds for seconds, _, _ in points),
            median_count([count for _, count, _ in points]),
            over_seeds([value for _, _, value in points]),
        )
        for points in groups
    )


def ahead(points: Sequence[Place]) -> list[Place]:
    """Drop points of separate runs that took longer than a run of more iterations."""
    kept: list[Place] = []
    for point in reversed(points):
        if not kept or point[0] < kept[-1][0]:
            kept.append(point)
    return kept[::-1]


def draw(
    axis: Axes, series: Sequence[Curve], *, first: int = 0, marks: int | None = None
) -> None:
    """Draw curves on logarithmic axes, with zeros and rounding errors at the edge.

    Args:
      axis: Axis of a panel.
      series: Curves of the panel.
      first: Number of the first one in the figure.
      marks: Approximate number of markers on a curve; None: one at each point.
    """
    greatest = max((p[3] for one in series for p in one.points), default=1.0)
    for place, one in enumerate(series):
        # A curve without points still has a colour and an entry in the legend.
        x, *values = np.array(one.points).reshape(-1, 4).T
        middle, low, high = np.maximum(values, _FLOOR * greatest)
        colour = _COLOURS[place % len(_COLOURS)]
        style = "-" if one.is_spiel_cr else "--"
        axis.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        axis.plot(
            x,
            middle,
            color=colour,
            linestyle=style if len(x) > 1 else "none",
            linewidth=1.5 if one.is_spiel_cr else 1,
            marker=_MARKS[place % len(_MARKS)],
            markersize=3.5,
            markevery=max(1, len(x) // (marks or len(x) or 1)),
            label=one.label,
            gid=f"points-{first + place}",
        )
    # matplotlib supports logarithmic axes only with points.
    if any(len(one.points) for one in series):
        axis.set(xscale="log", yscale="log")
