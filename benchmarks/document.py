"""Tables and pictures of documents: entries, the marks around tables, bands of curves.

Pictures need matplotlib.
"""

import argparse
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Column: TypeAlias = str | Callable[[Mapping[str, Any]], str]


class Marks(NamedTuple):
    """The two lines of a document between which a benchmark's tables stand."""

    begin: str
    end: str


def marks(name: str) -> Marks:
    """The marks of a benchmark's tables."""
    return Marks(f"<!-- {name} tables: begin -->", f"<!-- {name} tables: end -->")


def grid(head: Sequence[str], body: Sequence[Sequence[str]], *, labels: int = 1) -> str:
    """A Markdown table.

    Args:
      head: titles of the columns.
      body: entries, line by line.
      labels: columns of words, the first ones; the others hold numbers, to the right.
    """
    align = ["---"] * labels + ["---:"] * (len(head) - labels)
    lines = [f"| {' | '.join(entries)} |" for entries in (head, align, *body)]
    return "\n".join(lines) + "\n"


def table(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Column], *, labels: int = 1
) -> str:
    """A Markdown table with a line for each row of facts.

    Args:
      rows: of a benchmark, or made from them.
      columns: title to a template of the row's facts, as "{seconds:.1f}", or to a
        function of the row. Facts that a row lacks, or that are None, give a dash.
      labels: columns of words, see `grid`.
    """
    known = [{k: v for k, v in row.items() if v is not None} for row in rows]
    body = [[_entry(row, column) for column in columns.values()] for row in known]
    return grid(list(columns), body, labels=labels)


def _entry(row: Mapping[str, Any], column: Column) -> str:
    try:
        return column.format_map(row) if isinstance(column, str) else column(row)
    except KeyError:
        return "–"


def spaced(value: float) -> str:
    """A count or a rate: thousands apart, three digits of a small one."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def interval(mean: float, half_width: float | None) -> str:
    """A mean, and half of its interval where there is one."""
    spread = "" if half_width is None else f" ± {half_width:.2f}"
    return f"{mean:+.2f}{spread}"


def ratio(value: float, base: float | None) -> str:
    """How many times the base; a dash where there is none."""
    if base is None:
        return "–"
    quotient = value / base
    return f"{quotient:.0f}" if quotient >= 100 else f"{quotient:.3g}"


# Columns of what a process of its own took.
MEMORY: dict[str, Column] = {
    "peak memory, MB": lambda row: f"{row['peak_bytes'] / 1e6:,.0f}",
    "at start, MB": lambda row: f"{row['start_bytes'] / 1e6:,.0f}",
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


def image_path(options: argparse.Namespace, name: str) -> pathlib.Path:
    """Where a picture of the document of `--markdown` goes."""
    return options.markdown.parent / "img" / name


def draw_band(
    axis: Any,
    across: Sequence[float],
    found: Sequence[Sequence[float]],
    middle: Callable[[Sequence[float]], float],
    label: str,
) -> None:
    """A line through the middle of what was found at each place, and its range."""
    (line,) = axis.plot(across, list(map(middle, found)), marker=".", label=label)
    least, most = list(map(min, found)), list(map(max, found))
    axis.fill_between(across, least, most, alpha=0.2, color=line.get_color())
