"""Figures with several panels, and their files."""

import contextlib
import dataclasses
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any, Literal, TextIO, TypeAlias

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


def check(path: str | os.PathLike[str], name: str = "plot") -> None:
    """Raise ValueError, before any work, if a figure could not be written.

    Args:
      path: Path of the figure.
      name: Name of the argument, for error messages.
    """
    target = pathlib.Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(
            f"{name}={os.fspath(path)!r}: unknown format; use a name that ends in "
            f"{', '.join(_FORMATS)}"
        )
    if not target.parent.is_dir():
        raise ValueError(
            f"{name}={os.fspath(path)!r}: folder {target.parent} does not exist; "
            f"create it, or use another path"
        )


def panels(
    *,
    size: tuple[float, float],
    columns: int = 1,
    rows: int = 1,
    sharey: Literal["all", "row", "none"] = "all",
) -> list[Axes]:
    """Return panels in one figure, row by row.

    Args:
      size: Width and height of the figure in inches.
      columns: Number of panels side by side.
      rows: Number of panels one below the other.
      sharey: Panels that have a common vertical axis.
    """
    # Created without pyplot, which would change how a notebook displays other figures.
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).flat)
    for axis in axes:
        axis.grid(True, which="major", alpha=0.4)
    return axes


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that the suffix of the path selects."""
    import matplotlib

    # Publishers reject Type 3 fonts. Small figures have at least 1,000 pixels.
    dpi = max(120.0, 1000 / figure.get_figwidth())
    with matplotlib.rc_context({"pdf.fonttype": 42}), atomic.replacing(path) as file:
        figure.savefig(file, dpi=dpi, format=pathlib.Path(path).suffix[1:])


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
