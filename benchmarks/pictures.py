"""Pictures of benchmarks, for documents; they need matplotlib."""

import argparse
import pathlib
from collections.abc import Callable, Sequence
from typing import Any


def image_path(options: argparse.Namespace, name: str) -> pathlib.Path:
    """Where a picture of the document of `--markdown` goes."""
    return options.markdown.parent / "img" / name


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
