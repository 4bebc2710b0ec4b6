"""Figures with several panels, and their files; needs matplotlib, the extra `plots`."""

import contextlib
import dataclasses
import importlib.util
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any, TextIO, TypeAlias

from spiel_cr.common import atomic

# Class of matplotlib, which is imported on first use.
Axes: TypeAlias = Any
_FORMATS = (".png", ".svg", ".pdf")


@dataclasses.dataclass(frozen=True)
class NotebookFigure:
    """A figure that notebooks display.

    Attributes:
      figure: Figure of matplotlib.
    """

    figure: Any

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        save_svg(self.figure, text)
        return text.getvalue()


def available() -> bool:
    """Return whether plots can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def check_installed() -> None:
    """Raise ValueError, before any work, if matplotlib is not installed."""
    if not available():
        raise ValueError(
            "plots need matplotlib, the extra `plots`; install it with: "
            "pip install 'spiel_cr[plots]'"
        )


def check(path: str | os.PathLike[str]) -> None:
    """Raise ValueError, before any work, if a plot could not be written to `path`."""
    check_installed()
    target = pathlib.Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(
            f"plot={os.fspath(path)!r}: unknown format; use a name that ends in "
            f"{', '.join(_FORMATS)}"
        )
    if not target.parent.is_dir():
        raise ValueError(
            f"plot={os.fspath(path)!r}: folder {target.parent} does not exist; create "
            f"it, or use another path"
        )


def panels(*, size: tuple[float, float], columns: int = 1, rows: int = 1) -> list[Axes]:
    """Return panels with a common vertical axis, row by row, in one figure.

    Args:
      size: Width and height of the figure in inches.
      columns: Number of panels side by side.
      rows: Number of panels one below the other.
    """
    # Created without pyplot, which would change how a notebook displays other figures.
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
    for axis in axes:
        axis.grid(True, which="major", alpha=0.4)
    return axes


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that the suffix of the path selects."""
    with atomic.replacing(path) as file:
        figure.savefig(file, dpi=120, format=pathlib.Path(path).suffix[1:])


@contextlib.contextmanager
def saved_panels(
    path: str | os.PathLike[str],
    *,
    size: tuple[float, float],
    columns: int = 1,
    rows: int = 1,
) -> Iterator[list[Axes]]:
    """Yield panels as `panels` returns them, and write their figure after the block."""
    axes = panels(size=size, columns=columns, rows=rows)
    yield axes
    save(axes[0].figure, path)


def save_svg(figure: Any, file: TextIO) -> None:
    """Write SVG with letters as text; equal figures give equal files."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spiel_cr"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
