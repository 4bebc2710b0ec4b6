"""Figures of convergence curves: panels, bands over seeds, and units of NashConv."""

import math
import os
import pathlib
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from spiel_cr.common import figures
from spiel_cr.common.checks import check_choice
from spiel_cr.common.json_log import SETTINGS, Record, read_lines, unsealed
from spiel_cr.games.opening.opened import load_game
from spiel_cr.policies.curves import (
    PANELS,
    Curve,
    Panel,
    Points,
    Range,
    ahead,
    bands,
    draw,
)
from spiel_cr.policies.result import CurvePoint, Result

Unit = Literal["nash_conv", "exploitability", "mbb"]
UNITS: tuple[Unit, ...] = get_args(Unit)
# A convergence curve, or several of them with different seeds.
Curves: TypeAlias = Result | Sequence[CurvePoint] | Sequence[Result]
# Results of `solve` or of comparisons.
Plottable: TypeAlias = (
    str
    | os.PathLike[str]
    | Result
    | Sequence[Result]
    | Sequence[Record]
    | Mapping[str, Curves]
)

# Antes of poker games that have no parameter for them, in chips.
_ANTES = {"kuhn_poker": 1.0, "leduc_poker": 1.0, "python_leduc_poker": 1.0}
# Inches in units of length.
_INCHES = {"": 1.0, "in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
# Default width of a panel, and the least one at which games are placed side by side.
_PANEL, _NARROW = 5.0, 2.5
# Figures of a smaller width have small letters, as the text around them.
_SMALL = 5.0
# Approximate number of markers on a curve.
_MARKS = 8


class _LabelledCurve(NamedTuple):
    """The curve of one run.

    Attributes:
      game: Game string; empty if it is unknown.
      label: Label of the curve; runs with the same label are combined.
      points: Points (seconds, iterations, NashConv).
      setup: Seconds of set-up and compilation.
      with_locks: Whether the values are NashConv with locks.
    """

    game: str
    label: str
    points: Points
    setup: float = 0.0
    with_locks: bool = False


def plot(
    results: Plottable,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    panel: Panel | Sequence[Panel] = ("iterations", "seconds"),
    width: float | str | None = None,
    unit: Unit = "nash_conv",
) -> figures.NotebookFigure:
    """Plot convergence curves with logarithmic axes.

    Runs that differ only in the seed become one curve: a line through the medians, and
    a band from the least to the greatest value. Each game has its own panels. For
    results with node locks, curves show NashConv with locks.

    Args:
      results: Results of `solve` or `resolve` that have curves (see `Goal.eval_every`);
        a mapping from labels to a result, to a curve, or to results with several seeds;
        or the folder or the records of a comparison (`spiel-cr compare`).
      path: Path of the figure. If given, the figure is also written to it, in the
        format of its suffix (png, svg, pdf).
      title: Title of the figure. If None, the name of the game, if there is only one.
      panel: Quantity of the horizontal axis, or of several axes side by side:
        "seconds", "wall" (with set-up and compilation) or "iterations".
      width: Width of the figure in inches, or as text such as "3.3in" or "84mm". By
        default 5 inches for each panel.
      unit: "nash_conv" or "exploitability" (half of it) in the game's units, or "mbb":
        NashConv in thousandths of the big blind, or of the ante if the game has no
        blinds.

    Returns:
      An object that notebooks display; its attribute `figure` is a matplotlib figure.

    Raises:
      ValueError: If a result has no curve, an argument is invalid, or the figure cannot
        be written.
      CorruptFileError: If a line of the folder was modified.

    Example:
      >>> import spiel_cr
      >>> goal = spiel_cr.Goal(iterations=100, eval_every=10)
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", goal)
      >>> plot = spiel_cr.plot(result, "kuhn.svg", panel="iterations", width="3.3in")
    """
    import matplotlib

    if path is not None:
        figures.check(path)
    panels = [panel] if isinstance(panel, str) else list(panel)
    for name in panels:
        check_choice(name, "panel", tuple(PANELS))
    runs = _runs(results)
    inches = _PANEL * len(panels) if width is None else inches_of(width)
    with matplotlib.rc_context({"font.size": 8 if inches < _SMALL else 10}):
        figure = _draw(runs, panels, inches, unit, title)
        if path is not None:
            figures.save(figure, path)
    return figures.NotebookFigure(figure)


def curve_columns(results: Plottable) -> dict[str, list[Any]]:
    """Return the points of curves as columns, as for `pandas.DataFrame`.

    Args:
      results: Results, as for `plot`.

    Returns:
      Lists of equal length by the names of columns: game, algorithm (or label), run (0,
      1, ... among equal games and algorithms, such as seeds), seconds, iterations and
      nash_conv (with locks, if there are any), in the game's units.

    Example:
      >>> import spiel_cr
      >>> from spiel_cr.policies.plotting import curve_columns
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", spiel_cr.Goal(20, eval_every=5))
      >>> curve_columns(result)["iterations"]
      [5, 10, 15, 20]
    """
    names = "game algorithm run seconds iterations nash_conv".split()
    columns: dict[str, list[Any]] = {name: [] for name in names}
    counts: dict[tuple[str, str], int] = {}
    for run in _runs(results):
        key = run.game, run.label
        counts[key] = counts.get(key, -1) + 1
        for point in run.points:
            for name, value in zip(names, (*key, counts[key], *point), strict=True):
                columns[name].append(value)
    return columns


def unit_factor(unit: Unit, game: str) -> float:
    """Return the number by which NashConv is multiplied.

    Args:
      unit: Unit of the product, see `plot`.
      game: Game string; empty if it is unknown.

    Raises:
      ValueError: If the unit is unknown, or the game has neither blinds nor an ante.
    """
    check_choice(unit, "unit", UNITS)
    if unit != "mbb":
        return 0.5 if unit == "exploitability" else 1.0
    bet = 0.0
    if game:
        loaded = load_game(game)
        parameters = loaded.get_parameters()
        blinds = map(float, str(parameters.get("blind", "")).split())
        ante = parameters.get("ante", _ANTES.get(loaded.get_type().short_name, 0.0))
        bet = max(blinds, default=0.0) or ante
    if not bet:
        raise ValueError(
            f"unit='mbb': {game or 'an unknown game'} has neither blinds nor an ante; "
            f"use 'nash_conv' or 'exploitability'"
        )
    return 1000 / bet


def unit_label(unit: Unit, name: str = "NashConv") -> str:
    """Return the label of a quantity in a unit, for axes and tables."""
    if unit == "exploitability":
        name = name.replace("NashConv", "exploitability")
    return f"{name} (mbb/g)" if unit == "mbb" else f"{name} (game's units)"


def _label(with_locks: Sequence[bool], unit: Unit) -> str:
    name = "NashConv with locks" if all(with_locks) else "NashConv"
    if any(with_locks) and not all(with_locks):
        name = "NashConv (with locks where there are any)"
    return unit_label(unit, name)


def _draw(
    runs: Sequence[_LabelledCurve],
    panels: Sequence[Panel],
    inches: float,
    unit: Unit,
    title: str | None,
) -> Any:
    """Return a figure with all curves, a legend and titles; see `plot`."""
    from matplotlib import rcParams

    games = list(dict.fromkeys(run.game for run in runs))
    labels = list(dict.fromkeys(run.label for run in runs))
    columns = len(panels)
    if columns == 1:
        columns = max(1, min(len(games), int(inches / _NARROW)))
    rows = math.ceil(len(games) * len(panels) / columns)
    # Average width of a letter, and height of a line, in inches.
    letter, line = 0.6 * rcParams["font.size"] / 72, 1.5 * rcParams["font.size"] / 72
    entry = letter * (7 + max(map(len, labels)))  # with the handle of the legend
    ncols = max(1, min(len(labels), int(inches / entry)))
    # Titles of games have up to two lines.
    height = rows * (0.75 * inches / columns + 2 * line * (len(games) > 1))
    height += line * math.ceil(len(labels) / ncols)
    axes = figures.panels(
        size=(inches, height),
        columns=columns,
        rows=rows,
        sharey="row" if len(panels) > 1 else "none",
    )
    for place, game in enumerate(games):
        axes_of_game = axes[place * len(panels) : (place + 1) * len(panels)]
        same = [run for run in runs if run.game == game]
        _draw_game(same, axes_of_game, panels, unit_factor(unit, game))
        axes_of_game[0].set_ylabel(_label([run.with_locks for run in same], unit))
        if len(games) > 1:
            name = textwrap.fill(_spaced(game), int(inches / columns / letter))
            axes_of_game[0].set_title(name, fontsize="medium")
    for spare in axes[len(games) * len(panels) :]:
        spare.remove()
    figure = axes[0].figure
    drawn = {one.get_label(): one for axis in figure.axes for one in axis.lines}
    handles = [drawn[label] for label in labels]
    figure.legend(
        handles, labels, loc="outside lower center", ncols=ncols, frameon=False
    )
    if title is None and len(games) == 1:
        title = games[0]
    if title:
        # Its letters are larger.
        figure.suptitle(textwrap.fill(_spaced(title), int(0.8 * inches / letter)))
    return figure


def _draw_game(
    runs: Sequence[_LabelledCurve],
    axes: Sequence[figures.Axes],
    panels: Sequence[Panel],
    factor: float,
) -> None:
    """Draw the curves of a game in its panels."""
    by_label: dict[str, list[_LabelledCurve]] = {}
    for run in runs:
        by_label.setdefault(run.label, []).append(run)
    for axis, panel in zip(axes, panels, strict=True):
        series = []
        for label, same in by_label.items():
            setup = float(np.median([run.setup for run in same]))
            points = [
                (x, *Range(*(factor * value for value in point.nash_conv)))
                for point in bands([run.points for run in same])
                if (x := point.at(panel, setup)) is not None and x > 0
            ]
            is_spiel_cr = not label.startswith("openspiel-")
            series.append(Curve(label, ahead(points), is_spiel_cr))
        draw(axis, series, marks=_MARKS)
        axis.set_xlabel(PANELS[panel])
    for axis in (*(axis.xaxis for axis in axes), axes[0].yaxis):
        _number_ticks(axis)


def _number_ticks(axis: Any) -> None:
    """Number decades, or other numbers if there are fewer than two decades."""
    from matplotlib.ticker import LogFormatterSciNotation, NullLocator

    low, high = np.log10(axis.get_view_interval())
    if np.floor(high) - np.ceil(low) >= 1:
        axis.set_minor_locator(NullLocator())  # whose numbers would cover each other
    else:
        axis.set_tick_params(which="minor", labelsize="small")
        axis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(2, 0.5)))


def _spaced(title: str) -> str:
    """Return a title that can be wrapped after commas."""
    return re.sub(r",\s*", ", ", title)


def inches_of(width: float | str) -> float:
    """Return a width in inches.

    Raises:
      ValueError: If it is not a length from 1 to 50 inches.
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*(in|cm|mm|pt|)\s*", str(width))
    try:
        inches = float(match[1]) * _INCHES[match[2]] if match else 0.0
    except ValueError:
        inches = 0.0
    if not 1 <= inches <= 50:
        raise ValueError(
            f"width={width!r}: use a length from 1 to 50 inches, such as 3.3in or 84mm"
        )
    return inches


def _runs(results: Plottable) -> list[_LabelledCurve]:
    """Return the runs of `plot`, with the game of other runs where it is unknown.

    Raises:
      ValueError: If there is no run, or a result has no curve.
    """
    labelled: list[tuple[str, Any]]
    if isinstance(results, str | os.PathLike):
        results = _records(pathlib.Path(results))
    if isinstance(results, Mapping):
        labelled = [
            (label, one) for label, value in results.items() for one in _several(value)
        ]
    else:
        several = results if isinstance(results, Sequence) else [results]
        labelled = [("", one) for one in several]
    runs = [
        _labelled_curve(label, one)
        for label, one in labelled
        if not isinstance(one, Mapping) or one["nash_conv"] is not None
    ]
    if not runs:
        raise ValueError(
            "results: no run has a curve to draw; give results, or the folder of a "
            "comparison whose runs have not failed"
        )
    default = next((run.game for run in runs if run.game), "")
    return [run._replace(game=run.game or default) for run in runs]


def _several(value: Curves) -> Sequence[Any]:
    """Return several results as they are, and one result or one curve as a list."""
    if isinstance(value, Sequence) and not all(
        isinstance(v, CurvePoint) for v in value
    ):
        return value
    return [value]


def _labelled_curve(
    label: str, one: Result | Record | Sequence[CurvePoint]
) -> _LabelledCurve:
    if isinstance(one, Mapping):
        setup = one["setup_seconds"] + one["compile_seconds"]
        return _LabelledCurve(one["game"], one["algorithm"], one["curve"], setup)
    game, setup = "", 0.0
    if isinstance(one, Sequence):
        points = one
    else:
        game, setup = str(one.game), one.build_seconds + one.compile_seconds
        label, points = label or one.algorithm, one.curve
    if not points:
        raise ValueError(
            f"results: {label!r} has no curve to draw; solve with a goal that "
            f"evaluates, as spiel_cr.Goal(1000, eval_every=50)"
        )
    curve = [(point.seconds, point.iterations, point.gap) for point in points]
    with_locks = any(point.nash_conv_with_locks is not None for point in points)
    return _LabelledCurve(game, label, curve, setup, with_locks)


def _records(folder: pathlib.Path) -> list[Record]:
    """Return the results of a comparison's folder, in the order of its settings.

    Raises:
      ValueError: If the folder does not contain a comparison.
      CorruptFileError: If a result is invalid.
    """
    try:
        settings = unsealed((folder / SETTINGS).read_bytes())
        names = [*settings["games"], *settings["algorithms"]]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"results={os.fspath(folder)!r} is not a folder of spiel-cr compare "
            f"({error}); use the folder of its option --out"
        ) from error
    lines = read_lines(folder / "results.jsonl", ("game", "algorithm", "seed"))
    order = {name: place for place, name in enumerate(names)}
    return sorted(
        lines.values(),
        key=lambda one: (order.get(one["game"], 0), order.get(one["algorithm"], 0)),
    )
