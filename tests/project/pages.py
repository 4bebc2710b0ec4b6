"""Pages of the documentation, and their blocks of code.

A comment on the line before a block, which readers do not see, shortens the block for
tests: `<!-- tests: 600 as 5; a as b -->` replaces these words. Commands are in blocks
of the kind "sh", or follow "$ " in blocks that also show their output. Blocks of the
kind "py" need libraries that are not installed here; other tests run them, if possible.
A comment `<!-- tests before: NAME -->` names a preparation that the blocks of a page
need (see `test_blocks.py`). The front matter of a page declares its kind: `kind:
how-to`.
"""

import pathlib
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"
# All pages of the documentation.
MANUAL = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [README, *MANUAL]
# Kinds of pages, which the front matter of a page declares.
KINDS = ("tutorial", "how-to", "reference", "explanation", "benchmark", "development")

_BLOCK = re.compile(
    r"(?:^<!-- tests: (?P<shorter>.*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)

_PROMPT = "$ "
# Such as "GLIBC_TUNABLES=...", before a command.
_VARIABLE = re.compile(r"[A-Z_]+=")


def name_of(page: pathlib.Path) -> str:
    """Return the path below `docs`, such as "how-to/solve.md"; "README.md" itself."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


class Block(NamedTuple):
    """A block of code.

    Attributes:
      page: Page that contains the block.
      line: Number of the first line of the block.
      kind: One of "python", "py", "sh", or "" for the output of programs.
      text: Text for readers.
      short: Text that tests run.
    """

    page: pathlib.Path
    line: int
    kind: str
    text: str
    short: str


def kind_of(page: pathlib.Path) -> str | None:
    """Return the kind that the front matter of a page declares; None without one."""
    match = re.match(
        r"---\n(?:.*\n)*?kind: (\S+)\n(?:.*\n)*?---\n", page.read_text("utf-8")
    )
    return match and match[1]


def preparations(page: pathlib.Path) -> list[str]:
    """Return the names of the preparations that the blocks of a page need."""
    return re.findall(r"^<!-- tests before: (\S+) -->$", page.read_text("utf-8"), re.M)


def blocks(page: pathlib.Path, kind: str) -> Iterator[Block]:
    """Yield the blocks of one kind on a page, in order.

    Raises:
      ValueError: If a comment names words that the block does not contain.
    """
    text = page.read_text("utf-8")
    for match in _BLOCK.finditer(text):
        line = text[: match.start("text")].count("\n") + 1
        short = match["text"]
        for pair in (match["shorter"] or "").split(";"):
            if pair:
                old, new = pair.strip().split(" as ")
                if old not in short:
                    raise ValueError(f"{name_of(page)}:{line}: no {old!r} in the block")
                short = short.replace(old, new)
        if match["kind"] == kind:
            yield Block(page, line, kind, match["text"], short)


def _lines(block: Block, short: bool) -> Iterator[str]:
    """Yield the commands of a block, with continuation lines joined."""
    text = (block.short if short else block.text).replace("\\\n", " ")
    for line in text.splitlines():
        if block.kind == "sh":
            yield line
        elif line.startswith(_PROMPT):
            yield line.removeprefix(_PROMPT)


def commands(page: pathlib.Path, *, short: bool = False) -> Iterator[list[str]]:
    """Yield the words of each command on a page, without variables set for it.

    Args:
      page: Page to read.
      short: Whether to return the shortened commands that tests run.
    """
    found = [*blocks(page, "sh"), *blocks(page, "")]
    for block in sorted(found, key=lambda block: block.line):
        for line in _lines(block, short):
            for part in line.split(" && "):
                words = shlex.split(part, comments=True)
                while words and _VARIABLE.match(words[0]):
                    del words[0]
                if words:
                    yield words
