"""Pictures of grids of hands."""

import colorsys
import os
from collections.abc import Sequence

import numpy as np

from spiel_cr.common.figures import check, saved_panels

# Inches of a cell, and of a number of two digits.
_WIDTH, _NUMBER = 0.46, 0.14


def plot_hands(
    cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    actions: Sequence[str],
    path: str | os.PathLike[str],
    *,
    title: str,
) -> None:
    """Draw a grid of hands, with a bar of action probabilities in each cell.

    Args:
      cells: Probabilities, float [rows, columns, A]; NaN if there is no hand.
      rows: Names of the rows, from top to bottom.
      columns: Names of the columns.
      actions: Names of the actions.
      path: File of the picture; its suffix decides the format (png, svg, pdf).
      title: Title above the grid.

    Raises:
      ValueError: If the format is not supported; see `check`.
    """
    check(path)
    names = sorted(actions, key=_rank)
    shares = cells[..., [actions.index(name) for name in names]]
    wide = _WIDTH * max(len(columns), 4)
    with saved_panels(path, size=(2.5 + wide, 1.6 + 0.34 * max(len(rows), 4))) as (
        axis,
    ):
        axis.grid(False)
        y, left = np.indices(shares.shape[:2], float).reshape(2, -1)
        for number, (name, colour) in enumerate(
            zip(names, _colours(names), strict=True)
        ):
            share = shares[..., number].reshape(-1)
            bars = axis.barh(
                y, 0.92 * share, 0.88, left + 0.04, color=colour, label=name
            )
            left = left + 0.92 * share
            room = _NUMBER * len(columns) / wide
            percentages = [f"{100 * x:.0f}" if x >= room else "" for x in share]
            # White text is readable on dark colours only.
            ink = "white" if np.dot(colour, (0.3, 0.6, 0.1)) < 0.45 else "black"
            axis.bar_label(
                bars, percentages, label_type="center", color=ink, fontsize=6
            )
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xticks([c + 0.5 for c in range(len(columns))], columns)
        axis.set_xlim(0, len(columns))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        if max(map(len, columns)) > 2:
            axis.tick_params(axis="x", rotation=90)
        if "".join(rows) == "".join(columns) == "AKQJT98765432":
            axis.set_xlabel("suited above the diagonal, offsuit below")
        axis.tick_params(length=0)
        axis.set_title(title, fontsize="medium")
        axis.figure.legend(ncols=len(names), loc="outside lower center")


def _rank(action: str) -> int:
    """Return 0 for a fold, 1 for a check or call, 2 for a bet or raise."""
    words = ("fold",), ("check", "call", "pass")
    return next((i for i, w in enumerate(words) if action.lower().startswith(w)), 2)


def _colours(actions: Sequence[str]) -> list[tuple[float, float, float]]:
    """Return the usual colours in poker: blue, green, then from yellow to red."""
    ranks = list(map(_rank, actions))
    hues = [(212.0, 0.56, 0.62), (145.0, 0.46, 0.45)]
    colours = [hues[rank] for rank in ranks if rank < 2]
    bets = ranks.count(2)
    for part in np.linspace(0, 1, bets) if bets > 1 else [0.6] * bets:
        colours.append((44 - 44 * part, 0.58 - 0.18 * part, 0.78))
    return [colorsys.hls_to_rgb(h / 360, light, full) for h, light, full in colours]
