"""Pictures of grids of hands."""

import colorsys
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cr.common.figures import Axes, check, saved_panels

# Inches of a cell, and of a number of two digits.
_WIDTH, _NUMBER = 0.46, 0.14
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}


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
    wide = _WIDTH * max(len(columns), 4)
    with saved_panels(path, size=(2.5 + wide, 1.6 + 0.34 * max(len(rows), 4))) as (
        axis,
    ):
        _draw_shares(axis, cells, actions, _NUMBER * len(columns) / wide)
        _set_grid(axis, rows, columns)
        if "".join(rows) == "".join(columns) == "AKQJT98765432":
            axis.set_xlabel("suited above the diagonal, offsuit below")
        axis.set_title(title, fontsize="medium")
        axis.figure.legend(ncols=len(actions), loc="outside lower center")


def plot_cards(
    rows: Sequence[Mapping[str, Any]],
    actions: Sequence[str],
    path: str | os.PathLike[str],
    *,
    title: str,
) -> None:
    """Draw a runout report: strategy, EV and equity for each card.

    Args:
      rows: Rows of `runout_report`.
      actions: Names of the actions.
      path: File of the picture; its suffix decides the format (png, svg, pdf).
      title: Title above the panels.

    Raises:
      ValueError: As `plot_hands`.
    """
    check(path)
    ranks, suits = "AKQJT98765432", dict(zip("shdc", "♠♥♦♣", strict=True))
    names = ["ev", "equity", *actions]
    cells = np.full((len(suits), len(ranks), len(names)), np.nan)
    for row in rows:
        rank, suit = row["card"]
        place = list(suits).index(suit), ranks.index(rank)
        cells[place] = [row[name] for name in names]
    with saved_panels(path, size=(9.6, 6.6), rows=3) as axes:
        _draw_shares(axes[0], cells[..., 2:], actions, 0.2)
        for axis, values, form in zip(
            axes[1:],
            (cells[..., 0], 100 * cells[..., 1]),
            ("+,.1f", ".0f"),
            strict=True,
        ):
            extent = 0, len(ranks), len(suits) - 0.5, -0.5
            axis.imshow(values, cmap="RdYlGn", alpha=0.6, aspect="auto", extent=extent)
            for (y, x), value in np.ndenumerate(values):
                if not np.isnan(value):
                    axis.text(x + 0.5, y, f"{value:{form}}", **_CENTRED)
        captions = "strategy, %", "EV, net chips", "equity, %"
        for axis, caption in zip(axes, captions, strict=True):
            _set_grid(axis, list(suits.values()), ranks)
            axis.set_title(caption, fontsize="medium", loc="left")
            axis.set_facecolor("0.92")  # Cards that cannot be dealt.
        axes[0].figure.suptitle(title, fontsize="medium")
        axes[0].figure.legend(ncols=len(actions), loc="outside lower center")


def _draw_shares(
    axis: Axes, cells: np.ndarray, actions: Sequence[str], room: float
) -> None:
    """Draw a bar of action probabilities in each cell of a grid.

    Args:
      axis: Panel.
      cells: Probabilities, float [rows, columns, A]; NaN if there is no bar.
      actions: Names of the actions.
      room: Smallest probability whose number fits into the bar.
    """
    names = sorted(actions, key=_rank)
    shares = cells[..., [actions.index(name) for name in names]]
    y, left = np.indices(shares.shape[:2], float).reshape(2, -1)
    for number, (name, colour) in enumerate(zip(names, _colours(names), strict=True)):
        share = shares[..., number].reshape(-1)
        bars = axis.barh(y, 0.92 * share, 0.88, left + 0.04, color=colour, label=name)
        left = left + 0.92 * share
        percentages = [f"{100 * x:.0f}" if x >= room else "" for x in share]
        # White text is readable on dark colours only.
        ink = "white" if np.dot(colour, (0.3, 0.6, 0.1)) < 0.45 else "black"
        axis.bar_label(bars, percentages, label_type="center", color=ink, fontsize=6)


def _set_grid(axis: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Set limits and names of the rows and columns of a grid of cells."""
    axis.grid(False)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xticks([c + 0.5 for c in range(len(columns))], list(columns))
    axis.set_xlim(0, len(columns))
    axis.set_ylim(len(rows) - 0.5, -0.5)
    if max(map(len, columns)) > 2:
        axis.tick_params(axis="x", rotation=90)
    axis.tick_params(length=0)


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
