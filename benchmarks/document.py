"""Markdown tables of benchmark rows."""

import pathlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from spiel_cr.eval.common.files import around_table, markdown_table

Column: TypeAlias = str | Callable[[Mapping[str, Any]], str]


def table(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Column], *, labels: int = 1
) -> str:
    """Return a Markdown table with a line for each row.

    Args:
      rows: Rows of a benchmark, or lines made from them.
      columns: Contents of each column by its title: a template of the row's facts, such
        as "{seconds:.1f}", or a function of the row. A fact that is missing or None
        gives a dash.
      labels: Number of leading columns that contain text; numbers are right-aligned.
    """
    facts = [{k: v for k, v in row.items() if v is not None} for row in rows]
    body = [[_entry(row, column) for column in columns.values()] for row in facts]
    return markdown_table(list(columns), body, labels=labels)


def _entry(row: Mapping[str, Any], column: Column) -> str:
    try:
        return column.format_map(row) if isinstance(column, str) else column(row)
    except KeyError:
        return "–"


def over_seeds(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[Any]:
    """Return a line for each group of rows that differ only in the seed.

    Args:
      rows: Rows of a benchmark.
      by: Names of the values that the rows of a line have in common.

    Returns:
      Rows with the medians of all numbers; `each` contains the group's rows.
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row.get(name)) for name in by), []).append(row)
    lines = []
    for runs in groups.values():
        line = {**runs[0], "each": runs}
        for name, value in runs[0].items():
            if isinstance(value, int | float) and name != "seed":
                values = [run[name] for run in runs if name in run]
                is_constant = len(set(values)) == 1
                line[name] = value if is_constant else statistics.median(values)
        lines.append(line)
    return lines


def spaced(value: float) -> str:
    """Format a count or a rate: spaces between thousands, three digits if small."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def ratio(value: float, base: float | None) -> str:
    """Format a quotient; a dash if the base is None."""
    if base is None:
        return "–"
    quotient = value / base
    return f"{quotient:.0f}" if quotient >= 100 else f"{quotient:.3g}"


# Columns of several tables.
RUN: dict[str, Column] = {"game": "{game}", "algorithm": "`{algorithm}`"}
PEAK: dict[str, Column] = {
    "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:,.0f}"
}


def write(path: pathlib.Path, text: str, name: str) -> None:
    """Write a benchmark's tables between a file's marks, which a new file gets, too."""
    before, after = around_table(path, f"{name} tables")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{text}{after}")
