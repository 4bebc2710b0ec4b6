"""Citations of results: every algorithm cites its papers, as in the bibliography."""

import re

import pytest

import spiel_cr
from spiel_cr.policies import result as result_module
from spiel_cr.policies.result import bibtex
from spiel_cr.solvers.algorithms import ALGORITHMS
from tests.project import pages

BIBLIOGRAPHY = (pages.ROOT / "docs/reference/bibliography.md").read_text("utf-8")
EVERYWHERE = {"spiel_cr", "Lanctot2019", "Bradbury2018"}


def keys(text):
    return re.findall(r"^@\w+\{(\w+),$", text, re.M)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_cites_its_papers(name):
    """`auto` is not a method: its results cite the algorithm that was chosen."""
    found = keys(bibtex(name))
    assert EVERYWHERE <= set(found) and len(found) == len(set(found))
    papers = set(found) - EVERYWHERE
    assert papers or name == "auto"
    # The algorithm reference names these papers, too.
    table = (pages.ROOT / "docs/reference/algorithms.md").read_text("utf-8")
    rows = [r.split("|") for r in table.splitlines() if r.startswith("| `")]
    row = next(cells for cells in rows if f"`{name}`" in cells[1])
    named = set(re.findall(r"bibliography.md#(\w+)", row[5]))
    assert named & {key.lower() for key in papers} or name == "auto"


def test_entries_agree_with_the_bibliography():
    """Keys, titles, years and authors agree, and all braces are closed."""
    text = result_module._CITATIONS.read_text("utf-8")
    entries = re.findall(r"^@\w+\{(\w+),\n(.*?)\n\}$", text, re.M | re.S)
    assert len(entries) == text.count("@") > 25
    for key, body in entries:
        assert body.count("{") == body.count("}")
        if key == "spiel_cr":
            continue
        fields = dict(re.findall(r"^  (\w+) = \{+(.*?)\}+,?$", body, re.M))
        section = BIBLIOGRAPHY.split(f"### {key}\n")[1].split("###")[0]
        words = " ".join(section.split())
        assert fields["title"] in words and fields["year"] in words
        for author in fields["author"].replace(" and others", "").split(" and "):
            assert author in words
        assert set(fields["algorithms"].split()) <= {*ALGORITHMS, "*", "resolve"}


def test_citations_of_results():
    result = spiel_cr.solve("kuhn_poker", "cfr+", 1)
    assert set(keys(result.citations())) == EVERYWHERE | {
        "Zinkevich2007",
        "Tammelin2014",
    }
    assert "algorithms" not in result.citations()
    assert "Moravcik2017" in keys(spiel_cr.resolve("kuhn_poker", "cfr+", 1).citations())
    assert set(keys(bibtex("mine:rule(gamma=5)"))) == EVERYWHERE | {"Zinkevich2007"}
    # The citation file has the version of the package.
    version = spiel_cr.__version__
    text = (pages.ROOT / "CITATION.cff").read_text("utf-8")
    fields = re.findall(r"^(\S+):", text, re.M)
    needed = "authors title version date-released license preferred-citation"
    assert set(needed.split()) <= set(fields)
    assert text.count(f"version: {version}\n") == 2
