"""Pictures of benchmarks, for documents; they need matplotlib."""

import argparse
import contextlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def image_path(options: argparse.Namespace, name: str) -> pathlib.Path:
    """Where a picture of the document of `--markdown` goes."""
    return options.markdown.parent / "img" / name


@contextlib.contextmanager
def picture(
    path: pathlib.Path, *, size: tuple[float, float], columns: int = 1
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
    yield list(axes[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def draw_band(
    axis: Any,
    across: Sequence[float],
    found: Sequence[Sequence[float]],
    middle: Callable[[Sequence[float]], float],
    label: str,
) -> None:
    """A line through the middle of what was found at each place, and its range."""
    (line,) = axis.plot(across, list(map(middle, found)), marker=".", label=label)
    least, most = list(map(min, found)), list(map(max, found))
    axis.fill_between(across, least, most, alpha=0.2, color=line.get_color())
