"""Tables of comparisons for papers, in LaTeX."""

import re
from collections.abc import Sequence

from spiel_cr.policies.plotting import Unit, unit_factor, unit_label

from .html_page import count
from .summary import GameSummary, Row

# Characters with a meaning in LaTeX.
_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def table(summaries: Sequence[GameSummary], unit: Unit) -> str:
    """Return the final values of a comparison as a table for the package `booktabs`.

    Args:
      summaries: Summary of each game.
      unit: Unit of NashConv, see `spiel_cr.plot`.

    Raises:
      ValueError: If a game does not have this unit.
    """
    heads = ["Game", "Algorithm", unit_label(unit), "Range", "Seconds", "Iterations"]
    rows = [
        [escaped("" if place else summary.game), *_cells(row, unit, summary.game)]
        for summary in summaries
        for place, row in enumerate(summary.rows)
    ]
    if not any(row.seeds > 1 for summary in summaries for row in summary.rows):
        heads, *rows = ([*cells[:3], *cells[4:]] for cells in (heads, *rows))
    lines = []
    for cells in rows:
        lines += [r"\midrule"] if cells[0] else []
        lines.append(" & ".join(cells) + r" \\")
    columns = "ll" + "r" * (len(heads) - 2)
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs}. Medians over seeds, with their range.",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _cells(row: Row, unit: Unit, game: str) -> list[str]:
    """Return the cells of a row after the game."""
    factor = unit_factor(unit, game)
    middle, low, high = (_number(factor * value) for value in row.nash_conv)
    spread = "--" if row.nash_conv.single else f"{low} to {high}"
    seconds = _number(row.seconds.median)
    return [escaped(row.entry.name), middle, spread, seconds, count(row.iterations)]


def escaped(text: str) -> str:
    """Return text without characters that have a meaning in LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _number(value: float) -> str:
    """Return three significant digits, with a power of ten if it is far from 1."""
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    if -2 <= int(exponent) <= 2:
        return re.sub(r"\.$", "", f"{value:#.3g}") if value else "0"
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"
