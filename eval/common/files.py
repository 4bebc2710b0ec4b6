"""Tables as text, and several files of one run, written one by one."""

import csv
import io
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from spiel_cr.common import atomic


def csv_text(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, end: str = "\n"
) -> str:
    """A table as CSV.

    Args:
      head: names of the columns.
      rows: of as many values.
      end: of a line.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows([head, *rows])
    return text.getvalue()


def write_all(
    folder: pathlib.Path,
    texts: Mapping[str, str],
    unwritten: Callable[[OSError], object] | None = None,
) -> None:
    """Writes files of a folder; one that cannot be written costs no other.

    Args:
      folder: of the files.
      texts: by name.
      unwritten: called for each file that cannot be written; None: the first such
        error is raised, when the others are written.

    Raises:
      OSError: a file could not be written, and nobody was to be called.
    """
    errors: list[OSError] = []
    for name, text in texts.items():
        try:
            atomic.write_text(folder / name, text)
        except OSError as error:
            (unwritten or errors.append)(error)
    if errors:
        raise errors[0]
