"""Pictures for people: convergence curves. Needs the extra `plots` (matplotlib)."""

import contextlib
import importlib.util
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeAlias

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.policies.result import CurvePoint

# Of matplotlib, which is imported when it is needed.
Axes: TypeAlias = Any
_FORMATS = (".png", ".svg", ".pdf")
# As poker players draw them: to fold is blue, to call green, to raise red.
_ACTION_COLOURS = ("#4a7fb5", "#6aa84f", "#cc4125", "#8e1b0e", "#e69138", "#674ea7")


def check(path: str | os.PathLike[str]) -> None:
    """Raises ValueError, before any work, if a plot could not be written to `path`."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(
            "plots need matplotlib, the extra `plots`; install it with: "
            "pip install 'spiel_cr[plots]'"
        )
    target = pathlib.Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(
            f"plot={os.fspath(path)!r}: a plot's name must end in {', '.join(_FORMATS)}"
        )
    if not target.parent.is_dir():
        raise ValueError(
            f"plot={os.fspath(path)!r}: there is no folder {target.parent}; make it, "
            f"or give another path"
        )


@contextlib.contextmanager
def panels(*, size: tuple[float, float], columns: int) -> Iterator[list[Axes]]:
    """Panels side by side, with a common vertical axis.

    Args:
      size: of all of it, width and height in inches.
      columns: how many panels.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, columns, figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for axis in axes[0]:
        axis.grid(True, which="major", alpha=0.4)
    try:
        yield list(axes[0])
    finally:
        pyplot.close(figure)


@contextlib.contextmanager
def picture(
    path: str | os.PathLike[str], *, size: tuple[float, float], columns: int = 1
) -> Iterator[list[Axes]]:
    """Panels as in `panels`, written to a path when they are drawn."""
    with panels(size=size, columns=columns) as axes:
        yield axes
        suffix = pathlib.Path(path).suffix.removeprefix(".")
        with atomic.replacing(path) as file:
            axes[0].figure.savefig(file, dpi=120, format=suffix)


def save_svg(figure: Any, file: TextIO) -> None:
    """Writes SVG whose letters are text, the same for the same figure."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spiel_cr"}):
        figure.savefig(file, format="svg", metadata={"Date": None})


def plot_curves(
    curves: Mapping[str, Sequence[CurvePoint]],
    path: str | os.PathLike[str],
    *,
    title: str,
) -> None:
    """Draws NashConv against iterations and against seconds, both axes logarithmic.

    Args:
      curves: points by label.
      path: the picture; its suffix decides the format (png, svg, pdf).
      title: what stands above.

    Raises:
      ValueError: see `check`.
    """
    check(path)
    with picture(path, size=(10, 4), columns=2) as axes:
        for label, points in curves.items():
            nash_conv = [point.nash_conv for point in points]
            for axis, across in zip(axes, ("iterations", "seconds"), strict=True):
                places = [getattr(point, across) for point in points]
                axis.loglog(places, nash_conv, label=label)
        axes[0].set(xlabel="iterations", ylabel="NashConv (game's units)")
        axes[1].set(xlabel="seconds of iterating")
        axes[1].legend()
        axes[0].figure.suptitle(title)


def plot_hands(
    cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    actions: Sequence[str],
    path: str | os.PathLike[str],
    *,
    title: str,
) -> None:
    """Draws what is played with each hand: in each cell a bar, cut by action.

    Args:
      cells: float [rows, columns, A], probabilities; NaN where there is no hand.
      rows: names, from top to bottom.
      columns: names.
      actions: names.
      path: the picture; its suffix decides the format (png, svg, pdf).
      title: what stands above.

    Raises:
      ValueError: see `check`.
    """
    check(path)
    size = 2.5 + 0.42 * max(len(columns), 4), 1.6 + 0.3 * max(len(rows), 4)
    with picture(path, size=size) as (axis,):
        axis.grid(False)
        edges = np.concatenate([np.zeros_like(cells[..., :1]), cells.cumsum(-1)], -1)
        heights = np.repeat(np.arange(len(rows)), len(columns))
        lefts = np.tile(np.arange(len(columns)), len(rows))
        for number, action in enumerate(actions):
            axis.barh(
                heights,
                0.92 * cells[..., number].reshape(-1),
                0.88,
                lefts + 0.04 + 0.92 * edges[..., number].reshape(-1),
                color=_ACTION_COLOURS[number % len(_ACTION_COLOURS)],
                label=action,
            )
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xticks([c + 0.5 for c in range(len(columns))], columns)
        axis.set_xlim(0, len(columns))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        if max(map(len, columns)) > 2:
            axis.tick_params(axis="x", rotation=90)
        axis.tick_params(length=0)
        axis.set_title(title, fontsize="medium")
        axis.legend(ncols=len(actions), loc="upper left", bbox_to_anchor=(0, -0.06))
