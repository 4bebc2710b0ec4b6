"""What a report consists of, whatever it is written as."""

from collections.abc import Sequence
from typing import NamedTuple


class Paragraph(NamedTuple):
    """Sentences."""

    text: str


class Table(NamedTuple):
    """A table, whose first column names the rows.

    Attributes:
      caption: a sentence about it.
      heads: of the columns.
      rows: cells as text, one a column.
      is_spiel_cr: which rows are this project's.
      times: of each row, seconds of work and seconds of compiling; empty: of none.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_spiel_cr: Sequence[bool]
    times: Sequence[tuple[float, float]] = ()


class Terms(NamedTuple):
    """A list of terms with what is said of each.

    Attributes:
      title: above the list.
      pairs: (term, text).
      folded: long, and only shown to those who ask where that is possible.
      warning: about something that went wrong.
    """

    title: str
    pairs: Sequence[tuple[str, str]]
    folded: bool = False
    warning: bool = False


class Picture(NamedTuple):
    """A picture.

    Attributes:
      words: what it shows.
      svg: text of an SVG file.
    """

    words: str
    svg: str


class Command(NamedTuple):
    """A line for a shell, with a title above it."""

    title: str
    line: str


Block = Paragraph | Table | Terms | Picture | Command


class Section(NamedTuple):
    """A titled part of a document."""

    title: str
    blocks: Sequence[Block]


class Document(NamedTuple):
    """A report: a title, a sentence under it, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]
