"""Plots of several panels, and their files. Needs the extra `plots` (matplotlib)."""

import contextlib
import dataclasses
import importlib.util
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any, TextIO, TypeAlias

from spiel_cr.common import atomic

# Of matplotlib, which is imported when it is needed.
Axes: TypeAlias = Any
_FORMATS = (".png", ".svg", ".pdf")


@dataclasses.dataclass(frozen=True)
class NotebookFigure:
    """A figure that notebooks show.

    Attributes:
      figure: of matplotlib.
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
    """Raises ValueError, before any work, if nothing can be drawn."""
    if not available():
        raise ValueError(
            "plots need matplotlib, the extra `plots`; install it with: "
            "pip install 'spiel_cr[plots]'"
        )


def check(path: str | os.PathLike[str]) -> None:
    """Raises ValueError, before any work, if a plot could not be written to `path`."""
    check_installed()
    target = pathlib.Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(
            f"plot={os.fspath(path)!r}: a plot's name must end in {', '.join(_FORMATS)}"
        )
    if not target.parent.is_dir():
        raise ValueError(
            f"plot={os.fspath(path)!r}: there is no folder {target.parent}; create it, "
            f"or give another path"
        )


def panels(*, size: tuple[float, float], columns: int = 1) -> list[Axes]:
    """Panels side by side, with a common vertical axis; their `figure` has them all.

    Args:
      size: of all of it, width and height in inches.
      columns: how many panels.
    """
    # Not by pyplot, which would choose how a notebook shows all other figures.
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(1, columns, sharey=True, squeeze=False)[0])
    for axis in axes:
        axis.grid(True, which="major", alpha=0.4)
    return axes


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure, in the format that the suffix says."""
    with atomic.replacing(path) as file:
        figure.savefig(file, dpi=120, format=pathlib.Path(path).suffix[1:])


@contextlib.contextmanager
def saved_panels(
    path: str | os.PathLike[str], *, size: tuple[float, float], columns: int = 1
) -> Iterator[list[Axes]]:
    """Panels as of `panels`, written to a path when they are drawn."""
    axes = panels(size=size, columns=columns)
    yield axes
    save(axes[0].figure, path)


def save_svg(figure: Any, file: TextIO) -> None:
    """Writes SVG whose letters are text, the same for the same figure."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spiel_cr"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
