"""The words are those of the literature: what we once called things is gone.

Identifiers are read word by word (`gate_values` has the words gate and values), texts
of code and pages as they stand. A word that also has an ordinary meaning is looked for
in identifiers only, and `EXCEPTIONS` says where it is one of those.
"""

import fnmatch
import functools
import io
import pathlib
import re
import subprocess
import tokenize
from collections.abc import Collection

ROOT = pathlib.Path(__file__).parents[2]

# No more of these, in identifiers, texts and what programs print.
NOWHERE = {
    "gate": "augmented infoset",
    "stencil": "padded shape, capacity",
    "lattice": "Sobol points, randomised quasi-Monte Carlo",
    "lane": "trajectory",
    "emphasis": "iteration weight",
    "arena": "game instance",
    "contestant": "solver adapter",
    "playout": "rollout",
    "situation": "solved partial tree",
}
# No more of these in identifiers of the files where they had a meaning of our own.
_RESOLVING = "spiel_cr/resolving/* spiel_cr/players/* "
_TESTS = "tests/resolving/* tests/players/*"
_PLAY = _RESOLVING + _TESTS
IN_IDENTIFIERS = {
    "piece": ("subgame", _PLAY),
    "room": (
        "capacity",
        _PLAY + " spiel_cr/games/sequence_form/* spiel_cr/solvers/mccfr/*",
    ),
    "part": ("partial tree", _PLAY),
    "growing": ("partial", "*"),
    "edge": ("frontier, leaf", _PLAY + " spiel_cr/policies/* spiel_cr/games/tree/*"),
    "possible": ("root with its range", _PLAY),
    "neighbour": ("knowledge set", _PLAY),
    "mind": ("resolver, agent", "*"),
    "told": ("observation of the player who does not act", "spiel_cr/* eval/*"),
    "observed": ("observation of the player who does not act", _PLAY),
    "expansion": ("batched rules", "spiel_cr/* game_defs/* eval/* benchmarks/*"),
    "sharing": ("shared regrets", "*"),
    "guide": ("prior and value", "*"),
    "cell": ("run", "eval/comparison/* eval/contestants/* benchmarks/*"),
}
# (words, files, reason)
EXCEPTIONS = (
    ("contestant", "*", "the package eval/contestants is called that"),
    (
        "gate lattice emphasis playout",
        "CHANGELOG.md",
        "it says what things were called before",
    ),
    ("part", "*resolving/leaves/*", "of what is computed at a time"),
    (
        "expansion",
        "spiel_cr/resolving/lookahead/*",
        "`EXPANSION_SHARE`: of time, to expand nodes",
    ),
)
_STAGE = re.compile(r"\b(first|second|third|fourth) stage:", re.IGNORECASE)
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    kinds = (".py", ".md", ".ipynb", ".toml", "Makefile")
    return [
        name
        for name in listed
        if name.endswith(kinds)
        and (ROOT / name).is_file()
        and name != "tests/project/test_words.py"
    ]


def singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and word[:-1] in WORDS else word


WORDS = {**NOWHERE, **{word: row[0] for word, row in IN_IDENTIFIERS.items()}}


@functools.cache
def found_in(name: str, text: str) -> set[tuple[str, int]]:
    """Words of the tables in a file, with the lines where they stand."""
    found = set()
    here = {
        word
        for word, (_, files) in IN_IDENTIFIERS.items()
        if any(fnmatch.fnmatch(name, pattern) for pattern in files.split())
    }

    def look(line: int, candidates: list[str], table: Collection[str]) -> None:
        for word in {singular(c.lower()) for c in candidates} & set(table):
            found.add((word, line))

    if not name.endswith(".py"):
        for number, line in enumerate(text.splitlines(), 1):
            look(number, re.findall(r"[A-Za-z]+", line), NOWHERE)
        return found
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.NAME:
            look(line, _PIECES.findall(token.string), here | set(NOWHERE))
        elif (
            token.type in (tokenize.STRING, tokenize.COMMENT)
            or "FSTRING" in (tokenize.tok_name[token.type])
        ):
            look(line, re.findall(r"[A-Za-z]+", token.string), NOWHERE)
            if _STAGE.search(token.string):
                found.add(("stage:", line))
    return found


def excused(word: str, name: str) -> bool:
    return any(
        word in words.split() and fnmatch.fnmatch(name, pattern)
        for words, pattern, _ in EXCEPTIONS
    )


def test_words():
    """One test for all files: one each would take as long again."""
    names = files()
    assert len(names) > 500
    hints = [
        f"{name}:{line}: {word} → {WORDS.get(word, 'leave it out')}"
        for name in names
        for word, line in sorted(found_in(name, (ROOT / name).read_text("utf-8")))
        if not excused(word, name)
    ]
    assert not hints, "\n".join(hints)


def test_exceptions_are_needed():
    """One that nothing needs any more goes."""
    every = {name: found_in(name, (ROOT / name).read_text("utf-8")) for name in files()}
    for words, pattern, _ in EXCEPTIONS:
        for word in words.split():
            assert any(
                fnmatch.fnmatch(name, pattern) and word in {w for w, _ in found}
                for name, found in every.items()
            ), (word, pattern)


def test_the_search_finds_what_it_should():
    text = "gates_of = Gate(1)  # playouts\n'''Third stage: x'''\nobserved = 1\n"
    always = {("gate", 1), ("playout", 1), ("stage:", 2)}
    assert found_in("game_defs/a.py", text) == always
    assert found_in("spiel_cr/resolving/lookahead/a.py", text) == {
        *always,
        ("observed", 3),
    }
    assert found_in("a.md", "An arena, observed.") == {("arena", 1)}
