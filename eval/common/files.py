"""Tables as text, and several files of one run, written one by one."""

import csv
import io
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from spiel_cr.common import atomic


def csv_text(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, end: str = "\n"
) -> str:
    """Return a table as CSV.

    Args:
      head: Names of the columns.
      rows: Rows with a value for each column.
      end: End of a line.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows([head, *rows])
    return text.getvalue()


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], labels: int | None = None
) -> str:
    """Return a table as Markdown.

    Args:
      heads: Titles of the columns.
      rows: Rows with a text for each column.
      labels: Number of leading columns that are left-aligned; None: all.
    """
    count = len(heads) if labels is None else labels
    align = ["---"] * count + ["---:"] * (len(heads) - count)
    lines = [
        [each.replace("|", "\\|") for each in row] for row in (heads, align, *rows)
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def around_table(path: pathlib.Path, name: str) -> tuple[str, str]:
    """Return the text before and after the table of a page, with its marks.

    Args:
      path: Markdown file, which need not exist.
      name: Name of the table, which the marks contain.

    Raises:
      ValueError: If the file exists and has no marks.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = "", "", f"{end}\n"
    if path.exists():
        before, _, rest = path.read_text("utf-8").partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"{path}: the lines {begin} and {end} are missing; add them")
    return f"{before}{begin}\n\n", f"\n{end}{after}"


def write_all(
    folder: pathlib.Path,
    texts: Mapping[str, str],
    unwritten: Callable[[OSError], object] | None = None,
) -> None:
    """Write several files of a folder, the others even if one cannot be written.

    Args:
      folder: Folder of the files.
      texts: Texts by file name.
      unwritten: Function that is called with the error for each file that cannot be
        written. If None, the first such error is raised after the last file.

    Raises:
      OSError: If a file cannot be written and `unwritten` is None.
    """
    errors: list[OSError] = []
    for name, text in texts.items():
        try:
            atomic.write_text(folder / name, text)
        except OSError as error:
            (unwritten or errors.append)(error)
    if errors:
        raise errors[0]
