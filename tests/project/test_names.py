"""Names in the product do not contain words that the style guide replaces."""

import collections
import fnmatch
import re

import pytest

from tests.project import sources
from tests.project.sources import ROOT

# Replaced words that some files may use: (words, path pattern, reason).
ALLOWED = (
    ("target targets", "spiel_cr/solvers/deep/*", "regression targets of networks"),
    ("target targets", "spiel_cr/common/*", "regression targets, targets of links"),
    ("hidden", "spiel_cr/solvers/deep/*", "hidden layers of networks"),
    ("hidden", "spiel_cr/evaluation/responses/*", "hidden layers of networks"),
    ("target", "spiel_cr/solvers/mccfr/*", "targeted sampling (Lisý et al. 2015)"),
    ("target", "spiel_cr/players/bots.py", "targeted sampling (Lisý et al. 2015)"),
    ("target", "spiel_cr/resolving/*", "targeted sampling (Lisý et al. 2015)"),
    ("gain gains", "spiel_cr/evaluation/differences.py", "gain of a second policy"),
    ("gain", "eval/inspection/*", "gain of a best response from an infoset on"),
    ("gain", "eval/cli/show.py", "gain of a best response from an infoset on"),
    ("signal signals", "spiel_cr/abstraction/gameshrink/*", "signals of GameShrink"),
    ("signal signals", "eval/cli/*", "signals of the operating system"),
    ("kernel kernels", "spiel_cr/common/jax_utils.py", "pieces of numerical code"),
    ("kernel", "spiel_cr/evaluation/responses/*", "pieces of numerical code"),
    ("kernel", "spiel_cr/common/networks.py", "weights of a layer, as in Flax"),
    ("compiler", "benchmarks/c_reference.py", "the C compiler"),
    ("plan plans planned", "spiel_cr/evaluation/*", "schedules of work"),
    ("plan plans planned", "eval/*", "schedules of work"),
    ("plan", "benchmarks/frame.py", "schedules of work"),
)
# Complete names with a replaced word, with the reason.
ALLOWED_NAMES = {
    "realisation_plan": "the term of the sequence form",
    "linear_program": "the term of optimisation",
    "layout": "the arrays of the sequence form",
}
# Words without a technical meaning, and the largest number of identifiers with them in
# all four folders together.
EMPTY_WORDS = set(
    "own mine ours theirs found given known said asked met worth odds laid who what "
    "why whole begun there here apart won made told came owed nobody".split()
)
MOST_EMPTY = 28


def replaced_words() -> dict[str, str]:
    """Return the replacements of the words in the table of the style guide."""
    text = (ROOT / "docs" / "development" / "style.md").read_text("utf-8")
    table = text.partition("## Replaced words")[2]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    return {word: use for cell, use in rows for word in re.findall("`(.*?)`", cell)}


def is_allowed(word: str, name: sources.Name) -> bool:
    path = name.place.partition(":")[0]
    return name.name in ALLOWED_NAMES or any(
        word in words.split() and fnmatch.fnmatch(path, pattern)
        for words, pattern, _ in ALLOWED
    )


@pytest.fixture(scope="module")
def replaced() -> dict[str, list[sources.Name]]:
    """Return the public names of the product by the replaced word in them."""
    found = collections.defaultdict(list)
    table = set(replaced_words())
    for path in sources.files():
        for name in sources.public_names(path):
            for word in sources.words(name.name) & table:
                found[word].append(name)
    return found


def test_public_names_contain_no_replaced_words(replaced):
    table = replaced_words()
    hints = [
        f"{name.place}: {name.name}: replace {word!r} by: {table[word]}"
        for word, names in replaced.items()
        for name in names
        if not is_allowed(word, name)
    ]
    assert not hints, "\n".join(sorted(hints))


def test_style_guide_lists_replaced_words():
    table = replaced_words()
    assert len(table) > 70
    assert table["promise"] == "constraint"
    assert all(re.fullmatch("[a-z]+", word) for word in table)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("class JudgedGame:\n  odds: float", {"JudgedGame", "odds"}),
        ("def f(promises, *, x): plan = 1", {"promises"}),
        ("class A:\n  def bank(self): pass\n  def _trust(self): pass", {"bank"}),
        ("x = {'gains': 1, 'a text of gains': 2}", {"gains"}),
        ("parser.add('--instruments', help='--instruments or so')", {"--instruments"}),
    ],
)
def test_replaced_words_are_detected(source, names, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(source)
    found = sources.public_names(path)
    table = set(replaced_words())
    assert {name.name for name in found if sources.words(name.name) & table} == names


def test_few_identifiers_contain_empty_words():
    names = [
        name
        for path in sources.files()
        for name in sources.identifiers(path)
        if sources.words(name.name) & EMPTY_WORDS
    ]
    files = collections.Counter(name.place.partition(":")[0] for name in names)
    assert len(names) <= MOST_EMPTY, files.most_common(20)
