"""The table of functions and the papers that they implement, from docstrings.

Call `make papers` after a change of citations. A docstring cites a work as in
"Zinkevich et al. 2007" or "Brown & Sandholm (2019, eq. 5)", and describes deviations in
a paragraph, or in sentences, that begin with "Deviation" or "There is one deviation".
"""

import ast
import pathlib
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_BIBLIOGRAPHY = _ROOT / "docs" / "reference" / "bibliography.md"
PAGE = _ROOT / "docs" / "reference" / "papers.md"
_RULE = "|---|---|---|---|\n"
_NAME = r"[A-Z][\w'’-]+"
_CITATION = re.compile(
    rf"({_NAME}(?:(?:, | & | and |, and ){_NAME})*)( et al\.)?(?:'s)?[ ,]*\(?"
    r"((?:19|20)\d\d)(?!\d)"
)
_EQUATION = re.compile(
    r"(?:eqs?\.|[Ee]quations?|[Tt]heorem|[Aa]lgorithms?|[Ss]ection|[Ff]igure) "
    r"\d+(?:\.\d+)*(?:(?: and | to |–|-)\d+)?"
)
_DEVIATION = re.compile(r"(?:^|(?<=[.!?] ))(?:Deviations?\b|There (?:is|are) \w+ dev)")
_HEADINGS = re.compile(r"^(?:Args|Attributes|Returns|Raises|Example|Legend).*:$", re.M)


class Work(NamedTuple):
    """A work of the bibliography.

    Attributes:
      key: Heading of the bibliography.
      authors: Family names of all authors, without accents.
      years: Years that its entry names.
    """

    key: str
    authors: list[str]
    years: set[str]


def _plain(text: str) -> str:
    """Return a text without accents."""
    text = text.replace("ı", "i").replace("ø", "o")
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


def works() -> list[Work]:
    """Return the works of the bibliography."""
    text = _plain(_BIBLIOGRAPHY.read_text("utf-8"))
    found = []
    for section in text.split("\n### ")[1:]:
        key, entry = section.split("\n", 1)
        names = " ".join(entry.split()).split('. "' if '"' in entry else ".")[0]
        people = re.split(r", | and ", names.removesuffix(" et al"))
        authors = [name.split()[-1] for name in people]
        authors += ["et al"] * (2 * names.endswith(" et al"))
        found.append(Work(key, authors, set(re.findall(r"\b(?:19|20)\d\d\b", entry))))
    return found


def cited(text: str, known: list[Work]) -> Iterator[tuple[str, Work | None]]:
    """Yield each citation of a text, and its work; None if it is unknown."""
    for names, others, year in _CITATION.findall(_plain(text)):
        # Abbreviations of algorithms and conferences are not names.
        family = re.split(r", and |, | & | and ", names)
        family = [name for name in family if not name.isupper()]
        works = [w for w in known if year in w.years and w.authors[0] in family]
        works = [w for w in works if {*family} <= {*w.authors}]
        if others:
            works = [w for w in works if len(w.authors) > 2]
        works.sort(key=lambda w: (abs(len(w.authors) - len(family)), year not in w.key))
        yield f"{names}{others} {year}", works[0] if works else None


def _deviation(doc: str) -> str:
    """Return the deviations that a docstring describes."""
    for paragraph in re.split(r"\n\n", _HEADINGS.split(doc)[0]):
        text = " ".join(paragraph.split())
        if match := _DEVIATION.search(text):
            return text[match.start() :]
    return ""


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of modules, classes and functions."""
    for path in sorted((_ROOT / "spiel_cr").rglob("*.py")):
        module = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        stack: list[tuple[str, ast.AST]] = [
            (module, ast.parse(path.read_text("utf-8")))
        ]
        while stack:
            name, node = stack.pop(0)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                if doc := ast.get_docstring(node):
                    yield name.removesuffix(".__init__"), doc
                stack += [
                    (f"{name}.{getattr(child, 'name', '')}", child)
                    for child in node.body
                ]


def page() -> str:
    """Return the page, with the table after its head."""
    known, rows = works(), []
    for name, text in docstrings():
        doc = text.split("\nExample:")[0]
        keys = [work.key for _, work in cited(" ".join(doc.split()), known) if work]
        if not keys:
            continue
        links = [
            f"[{key}](bibliography.md#{key.lower()})" for key in dict.fromkeys(keys)
        ]
        equations = dict.fromkeys(_EQUATION.findall(" ".join(doc.split())))
        cells = f"`{name}`", ", ".join(links), ", ".join(equations), _deviation(doc)
        rows.append(" | ".join(cell.replace("|", "\\|") for cell in cells))
    head, _ = PAGE.read_text("utf-8").split(_RULE)
    return head + _RULE + "".join(f"| {row} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
