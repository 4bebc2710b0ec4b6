"""Elements of a report, independent of its format."""

from collections.abc import Sequence
from typing import NamedTuple


class DocumentTable(NamedTuple):
    """A table whose first column contains the names of the rows.

    Attributes:
      caption: Sentence about the table.
      heads: Titles of the columns.
      rows: Cells as text, one for each column.
      is_spiel_cr: Whether each row is of this project.
      times: Seconds of work and seconds of compilation of each row; empty if unknown.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_spiel_cr: Sequence[bool]
    times: Sequence[tuple[float, float]] = ()


class DocumentTerms(NamedTuple):
    """A list of terms and their descriptions.

    Attributes:
      title: Title above the list.
      pairs: Pairs (term, text).
      folded: Whether the list is collapsed, if the format supports it.
      warning: Whether the list describes failures.
    """

    title: str
    pairs: Sequence[tuple[str, str]]
    folded: bool = False
    warning: bool = False


class DocumentFigure(NamedTuple):
    """A figure.

    Attributes:
      words: Description of the picture.
      svg: Text of an SVG file.
    """

    words: str
    svg: str


class Command(NamedTuple):
    """A shell command with a title."""

    title: str
    line: str


# A string is a paragraph of text.
Block = str | DocumentTable | DocumentTerms | DocumentFigure | Command


class Section(NamedTuple):
    """A titled part of a document."""

    title: str
    blocks: Sequence[Block]


class Document(NamedTuple):
    """A report: a title, a lead sentence, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]
