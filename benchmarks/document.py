"""Tables and pictures of documents: entries, the marks around tables, curves.

Pictures need matplotlib.
"""

import pathlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from spiel_cr.eval.reporting.plots import picture

Column: TypeAlias = str | Callable[[Mapping[str, Any]], str]
# Points of curves, by the titles of panels and by labels.
Panels: TypeAlias = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]


class Marks(NamedTuple):
    """The two lines of a document between which a benchmark's tables stand."""

    begin: str
    end: str


def marks(name: str) -> Marks:
    """The marks of a benchmark's tables."""
    return Marks(f"<!-- {name} tables: begin -->", f"<!-- {name} tables: end -->")


def table(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Column], *, labels: int = 1
) -> str:
    """A Markdown table with a line for each row of facts.

    Args:
      rows: of a benchmark, or made from them.
      columns: title to a template of the row's facts, as "{seconds:.1f}", or to a
        function of the row. Facts that a row lacks, or that are None, give a dash.
      labels: columns of words, the first ones; the others hold numbers, to the right.
    """
    facts = [{k: v for k, v in row.items() if v is not None} for row in rows]
    body = [[_entry(row, column) for column in columns.values()] for row in facts]
    align = ["---"] * labels + ["---:"] * (len(columns) - labels)
    lines = [f"| {' | '.join(entries)} |" for entries in (list(columns), align, *body)]
    return "\n".join(lines) + "\n"


def _entry(row: Mapping[str, Any], column: Column) -> str:
    try:
        return column.format_map(row) if isinstance(column, str) else column(row)
    except KeyError:
        return "–"


def pivot(
    rows: Iterable[Mapping[str, Any]], by: Sequence[str], across: str, value: str
) -> list[dict[str, Any]]:
    """Lines for `over`: one for each group of rows, the newest row's facts.

    Args:
      rows: of a benchmark.
      by: names of what the rows of a line have in common.
      across: name of what tells its columns apart.
      value: name of what stands there.

    Returns:
      Rows whose `at` maps values of `across` to `value`.
    """
    return [
        {**runs[-1], "at": {run[across]: run[value] for run in runs}}
        for runs in _groups(rows, by)
    ]


def over(
    lines: Iterable[Mapping[str, Any]], spec: str, title: str = "{}"
) -> dict[str, Column]:
    """Columns for all values that lines of `pivot` have, ascending.

    Args:
      lines: as `pivot` makes them.
      spec: how a value is written, as ".1e".
      title: of a column, with a place for the value.
    """
    values = sorted({value for line in lines for value in line["at"]})

    def column(value: Any) -> Column:
        return lambda row: format(row["at"][value], spec)

    return {title.format(value): column(value) for value in values}


def over_seeds(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[Any]:
    """A line for each group of rows that differ in the seed alone.

    Args:
      rows: of a benchmark.
      by: names of what the rows of a line have in common.

    Returns:
      Rows with the medians of all numbers, and `seeds`, how many there are; `each` has
      all rows.
    """
    lines = []
    for runs in _groups(rows, by):
        line = {**runs[0], "seeds": len(runs), "each": runs}
        for name, value in runs[0].items():
            if isinstance(value, int | float) and name != "seed":
                values = [run[name] for run in runs]
                alike = len(set(values)) == 1
                line[name] = value if alike else statistics.median(values)
        lines.append(line)
    return lines


def _groups(
    rows: Iterable[Mapping[str, Any]], by: Sequence[str]
) -> Iterable[list[Mapping[str, Any]]]:
    """Rows that have these values in common, in the order in which they first come."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row.get(name)) for name in by), []).append(row)
    return groups.values()


def spaced(value: float) -> str:
    """A count or a rate: thousands apart, three digits of a small one."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def count(name: str) -> Column:
    """A column of a count or a rate."""
    return lambda row: spaced(row[name])


def rates(row: Mapping[str, Any]) -> str:
    """A rate, and the least and the most of its windows."""
    return f"{spaced(row['rate'])} ({spaced(row['least'])} to {spaced(row['most'])})"


def ratio(value: float, base: float | None) -> str:
    """How many times the base; a dash where there is none."""
    if base is None:
        return "–"
    quotient = value / base
    return f"{quotient:.0f}" if quotient >= 100 else f"{quotient:.3g}"


# Columns that several tables have: who, how fast, and what a process of its own took.
WHO: dict[str, Column] = {"game": "{game}", "algorithm": "`{algorithm}`"}
PEAK_GB: dict[str, Column] = {"peak, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}"}
PEAK: dict[str, Column] = {
    "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:,.0f}"
}


def check(path: pathlib.Path, marks: Marks) -> None:
    """Raises ValueError if a file exists but has no place for the tables."""
    if path.exists():
        _split(path, marks)


def write(path: pathlib.Path, text: str, marks: Marks) -> None:
    """Puts tables between a file's marks; a new file gets the marks too."""
    before, after = _split(path, marks) if path.exists() else ("", "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{marks.begin}\n\n{text}\n{marks.end}{after}")


def _split(path: pathlib.Path, marks: Marks) -> tuple[str, str]:
    """What stands before and after the marks."""
    before, begin, rest = path.read_text().partition(marks.begin)
    _, end, after = rest.partition(marks.end)
    if not begin or not end:
        raise ValueError(
            f"{path} has no lines {marks.begin} and {marks.end} to put tables between"
        )
    return before, after


def draw(path: pathlib.Path, panels: Panels, across: str) -> None:
    """Curves of NashConv on logarithmic axes, a panel beside the other.

    Args:
      path: of the picture.
      panels: points of curves, by titles and labels.
      across: what the horizontal axes show.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with picture(path, size=(1 + 5 * len(panels), 4), columns=len(panels)) as axes:
        for axis, (title, curves) in zip(axes, panels.items(), strict=True):
            for label, points in curves.items():
                axis.plot(*zip(*points, strict=True), marker=".", label=label)
            axis.set(title=title, xlabel=across, xscale="log", yscale="log")
        axes[0].set_ylabel("NashConv (game's units)")
        axes[-1].legend(fontsize="small")
