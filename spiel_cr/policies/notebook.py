"""HTML of a result for notebooks: numbers, curve, and the most visited infosets."""

import html
from collections.abc import Iterable, Sequence

import numpy as np

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import infoset_reach
from spiel_cr.policies.conversions import Behaviours

_MOST = 8


def page_of(
    title: str,
    facts: Iterable[Sequence[str]],
    curve: tuple[str, Sequence[tuple[int, float]]],
    tree: GameTree | None,
    average: Behaviours | None,
) -> str:
    """Return the HTML of a result, which loads nothing from other places.

    Args:
      title: Title of the page.
      facts: Names and values of a table.
      curve: Name of the curve's values, such as "NashConv", and for each point the
        number of iterations and the value.
      tree: The game tree; None if it was not built.
      average: Probability of each sequence's last action, float64 [S] of each player.
    """
    most_reached = (
        "" if tree is None or average is None else _most_reached(tree, average)
    )
    name, points = curve
    shown = np.array([(i, gap) for i, gap in points if i > 0 and gap > 0])
    line = _line(name, shown) if len(shown) > 1 else ""
    return f"<p><b>{html.escape(title)}</b></p>{_table(facts)}{line}{most_reached}"


def _table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return an HTML table of texts."""
    lines = [[f"<th>{html.escape(name)}</th>" for name in head]] if head else []
    lines += [[f"<td>{html.escape(cell)}</td>" for cell in row] for row in rows]
    inside = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table>{inside}</table>"


def _most_reached(tree: GameTree, average: Behaviours) -> str:
    """Return a table of the strategy at the most frequently reached infosets."""
    reached = infoset_reach.probabilities(tree, average)
    rows = []
    for player, infoset in infoset_reach.greatest(reached, _MOST):
        key, sequences, names = infoset_reach.described(tree, player, infoset)
        played = zip(names, average[player][sequences], strict=True)
        text = ", ".join(f"{name} {share:.1%}" for name, share in played)
        rows.append((str(player), key, f"{reached[player][infoset]:.1%}", text))
    head = "player", "information state", "reached", "plays"
    count = sum(map(len, reached))
    return f"<p>Reached most often, of {count:,}:</p>{_table(rows, head)}"


def _line(name: str, points: np.ndarray) -> str:
    """Draw a value against iterations, float [n, 2]; both axes are logarithmic."""
    places = np.log10(points)
    span = np.maximum(np.ptp(places, axis=0), 1e-9)
    x, y = ((places - places.min(0)) / span * (300, 100)).T
    line = " ".join(f"{a:.1f},{100 - b:.1f}" for a, b in zip(x, y, strict=True))
    (start, first), (done, last) = points[[0, -1]]
    return (
        f"<p>{name} {first:.1e} after {start:,.0f} iterations, "
        f"{last:.1e} after {done:,.0f} (logarithmic):</p>"
        f'<svg width="310" height="110" viewBox="-5 -5 310 110" role="img" '
        f'aria-label="{name} by iterations"><polyline points="{line}" fill="none" '
        f'stroke="#35608f" stroke-width="2"/></svg>'
    )
