"""The check of the project's language, and declarations and links of pages."""

import re

import pytest

from tests.project import pages, prose

_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Terms that a page links to the glossary where it first uses them.
CORE_TERMS = (
    "infoset",
    "history",
    "information-state",
    "policy",
    "bot",
    "nashconv",
    "exploitability",
    "best-response",
    "counterfactual-value",
    "regret",
    "average-strategy",
    "reach-probability",
    "sequence-form",
    "game-tree",
    "public-tree",
    "phantom-game",
    "simulator",
    "subgame",
    "blueprint",
    "node-lock",
)
each_page = pytest.mark.parametrize("page", pages.MANUAL, ids=pages.name_of)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Who names no algorithm gets CODE.", "clause as subject"),
        ("Read it. What is larger is sampled.", "clause as subject"),
        ("It returns what is left.", "clause as object"),
        ("Refused are more than two players.", "inverted sentence"),
        ("The game is asked for its moves.", "speaking code"),
        ("The error is told once.", "speaking code"),
        ("Larger games are refused.", "refuse"),
        ("The run goes on.", "go on"),
        ("The file is read anew.", "anew, begun"),
        ("The option is gone.", "gone, went"),
        ("The table stands beside it.", "beside"),
        ("The table stands there.", "stand, lie"),
        ("This is no number.", "is no, are none"),
        ("Nobody acts there, and nobody wins.", "nobody"),
        ("Take the tree, else sample.", "else"),
        ("Each has a name of its own.", "of its own"),
        ("Both are kept apart.", "apart"),
        ("The game is laid out.", "lay out"),
        ("Both give the same bits.", "same bits"),
        ("Players forget their cards.", "forget"),
    ],
)
def test_forms_to_avoid_are_detected(text, name):
    assert any(found.startswith(name) for found, _ in prose.findings(text))


@pytest.mark.parametrize(
    "text",
    [
        "If you do not name an algorithm, spiel_cr uses CODE.",
        "What is NashConv?",
        "The option is no longer needed.",
        "Samples are taken from separate streams.",
    ],
)
def test_plain_sentences_pass(text):
    assert not list(prose.findings(text))


def test_argument_entries_must_begin_with_a_noun():
    text = (
        "Solve.\n\nArgs:\n  seed: of chance.\n  game: Game to solve.\n\nReturns:\n  x."
    )
    found = dict(prose.entries(text))
    assert found == {"seed": "of chance.", "game": "Game to solve."}
    assert not prose.begins_with_noun(found["seed"])
    assert prose.begins_with_noun(found["game"])


def test_summaries_must_not_begin_with_what_or_a_dtype():
    assert not prose.begins_well("What a user gives.")
    assert not prose.begins_well("int64 [n], the rows.")
    assert prose.begins_well("Return the rows.")


@each_page
def test_pages_declare_their_kind(page):
    assert pages.kind_of(page) in pages.KINDS


@each_page
def test_terms_are_linked_once(page):
    links = _LINK.findall(page.read_text("utf-8"))
    terms = [
        link.partition("glossary.md#")[2] for link in links if "glossary.md#" in link
    ]
    repeated = {term for term in terms if term in CORE_TERMS and terms.count(term) > 1}
    assert not repeated


def test_core_terms_are_in_the_glossary():
    text = (pages.ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(CORE_TERMS) <= anchors
    assert len(headings) >= 60


def test_entries_of_the_bibliography_have_links():
    text = (pages.ROOT / "docs" / "reference" / "bibliography.md").read_text("utf-8")
    parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    without = [
        part.splitlines()[0]
        for part in parts
        if "](https://" not in part and "<https://" not in part
    ]
    assert len(parts) > 40 and not without
