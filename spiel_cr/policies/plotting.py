"""Convergence curves of results in one picture. Needs the extra `plots`."""

import os
import re
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np

from spiel_cr.common import figures
from spiel_cr.policies.result import CurvePoint, Result

# Width of a title in characters.
_WIDTH = 100


def plot(
    results: Result | Sequence[Result] | Mapping[str, Result | Sequence[CurvePoint]],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> figures.NotebookFigure:
    """Plot NashConv against iterations and against seconds, with logarithmic axes.

    For results with node locks, the curve shows NashConv with locks.

    Args:
      results: Results of `solve` or `resolve` that have curves (see `Goal.eval_every`),
        or a mapping from names to results or curves.
      path: Path of the figure. If given, the figure is also written to it, in the
        format of its suffix (png, svg, pdf).
      title: Title of the figure. If None, the name of the game, if it is known.

    Returns:
      An object that notebooks display; its attribute `figure` is a matplotlib figure.

    Raises:
      ValueError: If a result has no curve, or the figure cannot be drawn or written.

    Example:
      >>> import spiel_cr
      >>> goal = spiel_cr.Goal(iterations=100, eval_every=10)
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", goal)
      >>> plot = spiel_cr.plot(result, "kuhn.svg")
    """
    figures.check_installed()
    from matplotlib.ticker import LogFormatterSciNotation, NullLocator

    if path is not None:
        figures.check(path)
    if isinstance(results, Result):
        results = [results]
    named = list(
        results.items()
        if isinstance(results, Mapping)
        else ((result.algorithm, result) for result in results)
    )
    games: dict[str, None] = {}
    axes = figures.panels(size=(10, 4), columns=2)
    locked: list[bool] = []
    for label, one in named:
        if isinstance(one, Result):
            games[str(one.game)], one = None, one.curve
        points = one
        if not points:
            raise ValueError(
                f"results: {label!r} has no curve to draw; solve with a goal that "
                f"evaluates, as spiel_cr.Goal(1000, eval_every=50)"
            )
        for axis, across in zip(axes, ("iterations", "seconds"), strict=True):
            places = [getattr(point, across) for point in points]
            axis.loglog(places, [point.gap for point in points], label=label)
        locked.append(any(point.nash_conv_with_locks is not None for point in points))
    for one in (*(axis.xaxis for axis in axes), axes[0].yaxis):
        low, high = np.log10(one.get_view_interval())
        if np.floor(high) - np.ceil(low) >= 1:
            one.set_minor_locator(NullLocator())  # whose numbers would cover each other
        else:
            one.set_tick_params(which="minor", labelsize="small")
            one.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(2, 0.5)))
    shown = "NashConv with locks" if all(locked) else "NashConv"
    if any(locked) and not all(locked):
        shown = "NashConv (with locks where there are any)"
    axes[0].set(xlabel="iterations", ylabel=f"{shown} (game's units)")
    axes[1].set(xlabel="solving time (s)")
    axes[1].legend()
    figure = axes[0].figure
    title = re.sub(r",\s*", ", ", ", ".join(games) if title is None else title)
    figure.suptitle(textwrap.fill(title, _WIDTH))
    if path is not None:
        figures.save(figure, path)
    return figures.NotebookFigure(figure)
