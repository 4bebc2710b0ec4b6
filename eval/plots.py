"""Pictures for people: convergence curves. Needs the extra `plots` (matplotlib)."""

import os
from collections.abc import Mapping, Sequence

from spiel_cr.result import CurvePoint

__all__ = ["plot_curves"]


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
      ValueError: matplotlib is not installed, or a format that it does not know.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise ValueError(
            "plots need matplotlib; install it with: pip install 'spiel_cr[plots]'"
        ) from error
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
