"""Convergence curves of results in one picture. Needs the extra `plots`."""

import os
from collections.abc import Mapping, Sequence

from spiel_cr.common import pictures
from spiel_cr.policies.result import CurvePoint, Result


def plot(
    results: Result | Sequence[Result] | Mapping[str, Result | Sequence[CurvePoint]],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> pictures.Picture:
    """Draws NashConv against iterations and against seconds, all axes logarithmic.

    Args:
      results: of `solve` or `resolve`, with their curves (see `Goal.eval_every`); a
        mapping gives them, or curves, names.
      path: the picture's file too; its suffix decides the format (png, svg, pdf).
      title: what stands above; None: the game, where there is one.

    Returns:
      What notebooks show; its `figure` is matplotlib's.

    Raises:
      ValueError: a result has no curve, or a picture cannot be drawn or written.
    """
    pictures.check_installed()
    if path is not None:
        pictures.check(path)
    if isinstance(results, Result):
        results = [results]
    named = list(
        results.items()
        if isinstance(results, Mapping)
        else ((result.algorithm, result) for result in results)
    )
    games = {str(one.game): None for _, one in named if isinstance(one, Result)}
    axes = pictures.panels(size=(10, 4), columns=2)
    for label, one in named:
        points = one.curve if isinstance(one, Result) else one
        if not points:
            raise ValueError(
                f"results: {label!r} has no curve to draw; solve with a goal that "
                f"evaluates, as spiel_cr.Goal(1000, eval_every=50)"
            )
        for axis, across in zip(axes, ("iterations", "seconds"), strict=True):
            places = [getattr(point, across) for point in points]
            axis.loglog(places, [point.nash_conv for point in points], label=label)
            axis.minorticks_off()  # whose numbers would cover each other
    axes[0].set(xlabel="iterations", ylabel="NashConv (game's units)")
    axes[1].set(xlabel="seconds of iterating")
    axes[1].legend()
    figure = axes[0].figure
    figure.suptitle(", ".join(games) if title is None else title)
    if path is not None:
        pictures.save(figure, path)
    return pictures.Picture(figure)
