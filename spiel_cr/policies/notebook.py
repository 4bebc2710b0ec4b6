"""A result as a notebook shows it: its figures, its curve, what it plays most often."""

import html
import math
from collections.abc import Iterable, Sequence

import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies import met
from spiel_cr.policies.conversions import Behaviours

_MOST = 8
_WIDTH, _HEIGHT, _MARGIN = 320, 120, 6


def page_of(
    title: str,
    facts: Iterable[Sequence[str]],
    curve: Sequence[tuple[int, float, float]],
    tree: CompiledGame | None,
    average: Behaviours | None,
) -> str:
    """HTML of a result; nothing in it comes from elsewhere.

    Args:
      title: what stands above.
      facts: names and what they are.
      curve: iterations, seconds, NashConv.
      tree: the compiled game, if there is one.
      average: for each player float64 [S], action probabilities by logical sequence.
    """
    met_most = "" if tree is None or average is None else _met(tree, average)
    shown = [(i, nash_conv) for i, _, nash_conv in curve if i > 0 and nash_conv > 0]
    line = _line(shown) if len(shown) > 1 else ""
    return f"<p><b>{html.escape(title)}</b></p>{table(facts)}{line}{met_most}"


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """An HTML table of texts."""
    lines = [[f"<th>{html.escape(name)}</th>" for name in head]] if head else []
    lines += [[f"<td>{html.escape(cell)}</td>" for cell in row] for row in rows]
    return (
        "<table>" + "".join(f"<tr>{''.join(line)}</tr>" for line in lines) + "</table>"
    )


def _met(tree: CompiledGame, average: Behaviours) -> str:
    """What is played where play comes most often."""
    reached = met.probabilities(tree, average)
    rows = []
    for player, infoset in met.greatest(reached, _MOST):
        sequences, names = met.actions_at(tree, player, infoset)
        played = average[player][sequences]
        said = (f"{n} {p:.1%}" for n, p in zip(names, played, strict=True))
        key = met.key_in_line(tree, player, infoset)
        share = f"{reached[player][infoset]:.1%}"
        rows.append((str(player), key, share, ", ".join(said)))
    head = "player", "information state", "reached", "plays"
    return (
        f"<p>Reached most often, of {sum(map(len, reached)):,}:</p>{table(rows, head)}"
    )


def _line(points: Sequence[tuple[int, float]]) -> str:
    """NashConv by iterations as a line; both axes logarithmic."""
    x, y = np.log10(points).T
    across = _MARGIN + (x - x[0]) / (x[-1] - x[0]) * (_WIDTH - 2 * _MARGIN)
    high = max(float(np.ptp(y)), math.ulp(1.0))
    down = _MARGIN + (y.max() - y) / high * (_HEIGHT - 2 * _MARGIN)
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    (begun, first), (done, last) = points[0], points[-1]
    return (
        f"<p>NashConv {first:.1e} after {begun:,} iterations, "
        f"{last:.1e} after {done:,} (logarithmic):</p>"
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="NashConv by iterations"><polyline points="{line}" fill="none" '
        f'stroke="#35608f" stroke-width="2"/></svg>'
    )
