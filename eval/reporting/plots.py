"""Pictures of hands for people. Needs the extra `plots` (matplotlib)."""

import os
from collections.abc import Sequence

import numpy as np

from spiel_cr.common.pictures import check, picture

# As poker players draw them: to fold is blue, to call green; to raise is red, the
# darker the more.
_COLOURS = {"fold": "#4a7fb5", "pass": "#4a7fb5", "check": "#6aa84f", "call": "#6aa84f"}
_RAISES = ("#cc4125", "#8e1b0e", "#5b0f0a", "#b45309", "#674ea7")
# A share of a cell that has room for its number.
_ROOM = 0.42


def plot_hands(
    cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    actions: Sequence[str],
    path: str | os.PathLike[str],
    *,
    title: str,
) -> None:
    """Draws what is played with each hand: in each cell a bar, cut by action.

    Args:
      cells: float [rows, columns, A], probabilities; NaN where there is no hand.
      rows: names, from top to bottom.
      columns: names.
      actions: names.
      path: the picture; its suffix decides the format (png, svg, pdf).
      title: what stands above.

    Raises:
      ValueError: see `check`.
    """
    check(path)
    size = 2.5 + 0.42 * max(len(columns), 4), 1.6 + 0.3 * max(len(rows), 4)
    with picture(path, size=size) as (axis,):
        axis.grid(False)
        edges = np.concatenate([np.zeros_like(cells[..., :1]), cells.cumsum(-1)], -1)
        heights = np.repeat(np.arange(len(rows)), len(columns))
        lefts = np.tile(np.arange(len(columns)), len(rows))
        raises = [action for action in actions if action.lower() not in _COLOURS]
        for number, action in enumerate(actions):
            colour = _COLOURS.get(action.lower())
            if colour is None:
                colour = _RAISES[raises.index(action) % len(_RAISES)]
            bars = axis.barh(
                heights,
                0.92 * cells[..., number].reshape(-1),
                0.88,
                lefts + 0.04 + 0.92 * edges[..., number].reshape(-1),
                color=colour,
                label=action,
            )
            said = [
                f"{100 * share:.0f}" if share >= _ROOM else ""
                for share in cells[..., number].reshape(-1)
            ]
            axis.bar_label(bars, said, label_type="center", color="white", fontsize=6)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xticks([c + 0.5 for c in range(len(columns))], columns)
        axis.set_xlim(0, len(columns))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        if max(map(len, columns)) > 2:
            axis.tick_params(axis="x", rotation=90)
        axis.tick_params(length=0)
        axis.set_title(title, fontsize="medium")
        axis.legend(ncols=len(actions), loc="upper left", bbox_to_anchor=(0, -0.06))
