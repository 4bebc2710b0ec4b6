"""Pictures for people: convergence curves. Needs the extra `plots` (matplotlib)."""

import importlib.util
import os
import pathlib
from collections.abc import Mapping, Sequence

from spiel_cr.policies.result import CurvePoint

_FORMATS = (".png", ".svg", ".pdf")


def check(path: str | os.PathLike[str]) -> None:
    """Raises ValueError, before any work, if a plot could not be written to `path`."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(
            "plots need matplotlib, the extra `plots`; install it with: "
            "pip install -e '.[plots]' (in the virtual environment)"
        )
    target = pathlib.Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(f"{target}: a plot's name must end in {', '.join(_FORMATS)}")
    if not target.parent.is_dir():
        raise ValueError(f"{target}: there is no folder {target.parent}")


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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for label, points in curves.items():
        nash_conv = [point.nash_conv for point in points]
        axes[0].loglog([point.iterations for point in points], nash_conv, label=label)
        axes[1].loglog([point.seconds for point in points], nash_conv, label=label)
    axes[0].set_xlabel("iterations")
    axes[1].set_xlabel("seconds of iterating")
    axes[0].set_ylabel("NashConv (game's units)")
    for axis in axes:
        axis.grid(True, which="major", alpha=0.4)
        axis.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
