"""Pictures for people: convergence curves. Needs the extra `plots` (matplotlib)."""

import contextlib
import importlib.util
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spiel_cr.common import storage
from spiel_cr.policies.result import CurvePoint

_FORMATS = (".png", ".svg", ".pdf")


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
def picture(
    path: str | os.PathLike[str], *, size: tuple[float, float], columns: int = 1
) -> Iterator[list[Any]]:
    """Panels side by side, with a common vertical axis; written when they are drawn.

    Args:
      path: of the picture.
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
        suffix = pathlib.Path(path).suffix.removeprefix(".")
        with storage.replacing(path) as file:
            figure.savefig(file, dpi=120, format=suffix)
    finally:
        pyplot.close(figure)


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
