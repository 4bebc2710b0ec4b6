"""Check of the project's language: `python -m tests.project.prose --list`.

The check counts forms that `docs/development/style.md` advises against, separately in
Markdown, docstrings, error messages and help pages. It finds only a part of what a
reader would edit, so a text that passes is not automatically clear.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tests.project import pages, sources

# Most findings per 1,000 words, in each kind of text.
MOST_FINDINGS = 1.0
# Largest share of entries of `Args` and `Attributes` that do not begin with a noun.
MOST_WITHOUT_NOUN = 0.03

_START = r"(?:^|(?<=[.:] )|(?<=\n))(?:[-*] )?"
# Forms to avoid, with the remedy that is printed.
FORMS = {
    name: (re.compile(pattern, re.MULTILINE), remedy)
    for name, pattern, remedy in [
        (
            "clause as subject",
            _START + r"(?:Who(?:ever)?|Whatever|What) (?!is\b[^.?]*\?)[a-z]+ [^?\n]*$",
            "name the subject: you, spiel_cr, or a thing",
        ),
        (
            "clause as object",
            r"\b[Ww]hat (?:is|was|are|were|it|they|comes|goes|has|can)\b(?![^.]*\?)",
            "use a noun",
        ),
        (
            "inverted sentence",
            _START
            + r"(?:Refused|Known|Printed|Left out|Not \w+ed|Checked) (?:is|are)\b",
            "begin with the subject",
        ),
        (
            "speaking code",
            r"(?<!frequently )\b(?:ask|tell)(?:s|ed|ing)?\b|\btold\b",
            "query, report",
        ),
        ("refuse", r"\brefus(?:e[sd]?|al|als|ing)\b", "raise, reject, do not support"),
        ("go on", r"\b(?:go|goes|going|went|gone) on\b", "continue, resume"),
        ("anew, begun", r"\b(?:anew|begun)\b", "again, started"),
        ("gone, went", r"\b(?:is|are|was|were) gone\b|\bwent\b", "removed"),
        ("beside", r"\bbeside\b", "next to, compared with"),
        ("stand, lie", r"\b(?:stands|lies)\b", "appear, be located"),
        (
            "is no, are none",
            r"(?<![Tt]here )\b(?:is|are|was|were) (?:no|none)\b(?! longer)",
            "is not",
        ),
        ("nobody", r"\b(?:nobody|somebody|anybody)\b", "no player, the caller"),
        ("else", r"[,;] else\b|" + _START + r"Else\b", "otherwise"),
        ("of its own", r"\bof (?:its|their|one's|our|your) own\b", "separate, its own"),
        ("apart", r"\bapart\b(?! from)", "separately"),
        ("lay out", r"\b(?:lays?|laid|laying) (?:it |them )?out\b", "build, represent"),
        ("same bits", r"\bthe same bits\b", "bitwise identical"),
        ("forget", r"\bforg[eo]t\w*\b", "imperfect recall, reset"),
    ]
}
_NO_NOUN = re.compile(
    r"(?:of|to|as|in|so|what|who|whose|where|how|which|see|by|for|from|at|on|with|if)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"(?:What|How|Who|Where)\b|(?:bool|int|float)\d* \[")


class Text(NamedTuple):
    """A piece of prose.

    Attributes:
      kind: "pages", "docstrings", "errors" or "help".
      place: File and line, for messages.
      text: The prose, with code replaced by the word CODE.
    """

    kind: str
    place: str
    text: str


def page_prose(text: str) -> str:
    """Return the prose of a page: without code, tables, headings and link targets."""
    text = re.sub(r"\A---\n.*?\n---\n|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *\|.*$|^#+ .*$|^ *!\[.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "CODE", text)


def _page_texts() -> Iterator[Text]:
    extra = [pages.ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")]
    for page in [*pages.PAGES, *extra]:
        # The style guide and the glossary quote the forms that they advise against.
        if page.name not in ("style.md", "glossary.md"):
            yield Text("pages", str(page), page_prose(page.read_text("utf-8")))


def _strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            values = [
                str(value.value) if isinstance(value, ast.Constant) else "CODE"
                for value in part.values
            ]
            yield "".join(values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _code_texts() -> Iterator[Text]:
    for path in sources.files():
        name = sources.relative(path)
        for node in sources.nodes(path):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                text = ast.get_docstring(node) or ""
                line = getattr(node, "lineno", 1)
                text = re.sub(r"`[^`]*`", "CODE", text)
                yield Text("docstrings", f"{name}:{line}", text)
            elif isinstance(node, ast.Raise) and node.exc:
                text = "\n".join(text for text in _strings(node.exc) if " " in text)
                yield Text("errors", f"{name}:{node.lineno}", text)


def _help_texts() -> Iterator[Text]:
    path = pages.ROOT / "eval" / "common" / "help_pages.json"
    for name, text in json.loads(path.read_text("utf-8")).items():
        if isinstance(text, str):
            yield Text("help", name, re.sub(r"\n +", " ", text))


def texts() -> list[Text]:
    """Return all prose of the project."""
    return [*_page_texts(), *_code_texts(), *_help_texts()]


def findings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the forms to avoid in a text, each with its surroundings."""
    for name, (pattern, remedy) in FORMS.items():
        for match in pattern.finditer(text):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            yield f"{name} ({remedy})", around.replace("\n", " ")


def entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions of `Args` and `Attributes` of a docstring."""
    pattern = r"^(?:Args|Attributes):\n((?:  .*\n?|\n)+)"
    for block in re.finditer(pattern, docstring, re.MULTILINE):
        yield from re.findall(r"^  (\w[\w, *]*): (.*)$", block[1], re.MULTILINE)


def begins_with_noun(description: str) -> bool:
    """Return whether the description of an argument begins as a phrase with a noun."""
    return not _NO_NOUN.match(description)


def begins_well(docstring: str) -> bool:
    """Return whether a summary does not begin with a question word or a dtype."""
    return not _SUMMARY.match(docstring)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the language of the project.")
    parser.add_argument("--list", action="store_true", help="print each finding")
    parser.add_argument("paths", nargs="*", help="beginnings of paths to check")
    arguments = parser.parse_args()
    failed = False
    checked = [
        text
        for text in texts()
        if not arguments.paths or any(path in text.place for path in arguments.paths)
    ]
    for kind in ("pages", "docstrings", "errors", "help"):
        found, words = [], 0
        for text in checked:
            if text.kind == kind:
                words += len(text.text.split())
                found += [f"{text.place}: {n}: {a}" for n, a in findings(text.text)]
        rate = 1000 * len(found) / max(words, 1)
        failed |= rate > MOST_FINDINGS
        print(f"{kind}: {len(found)} in {words:,} words, {rate:.2f} per 1,000")
        if arguments.list:
            print(*found, sep="\n")
    without, count, summaries = [], 0, []
    for text in checked:
        if text.kind != "docstrings":
            continue
        if not begins_well(text.text):
            summaries.append(f"{text.place}: {text.text.splitlines()[0]}")
        for name, description in entries(text.text):
            count += 1
            if not begins_with_noun(description):
                without.append(f"{text.place}: {name}: {description}")
    share = len(without) / max(count, 1)
    failed |= share > MOST_WITHOUT_NOUN
    print(f"arguments without a noun: {len(without)} of {count:,} ({share:.1%})")
    print(f"summaries that begin with a question word or a dtype: {len(summaries)}")
    if arguments.list:
        print(*without, *summaries, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
