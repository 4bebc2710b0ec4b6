"""Elements of a report, independent of the output format."""

from collections.abc import Sequence
from typing import NamedTuple


class Paragraph(NamedTuple):
    """A paragraph of text."""

    text: str


class Table(NamedTuple):
    """A table whose first column contains the names of the rows.

    Attributes:
      caption: Sentence about the table.
      heads: Heads of the columns.
      rows: Text of the cells, one per column.
      is_spiel_cr: Flag of each row: it belongs to this project's algorithms.
      times: Seconds of work and of compilation of each row; empty: not shown.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_spiel_cr: Sequence[bool]
    times: Sequence[tuple[float, float]] = ()


class Terms(NamedTuple):
    """A list of terms with descriptions.

    Attributes:
      title: Title of the list.
      pairs: Pairs of a term and a text.
      folded: True: the list is long, and is collapsed if the format supports it.
      warning: True: the list reports a problem.
    """

    title: str
    pairs: Sequence[tuple[str, str]]
    folded: bool = False
    warning: bool = False


class Picture(NamedTuple):
    """A figure.

    Attributes:
      words: Description of the figure.
      svg: Text of an SVG file.
    """

    words: str
    svg: str


class Command(NamedTuple):
    """A shell command with a title."""

    title: str
    line: str


Block = Paragraph | Table | Terms | Picture | Command


class Section(NamedTuple):
    """A titled part of a document."""

    title: str
    blocks: Sequence[Block]


class Document(NamedTuple):
    """A report: a title, a lead sentence, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]
