"""README.md and docs/: examples, links, tables, and the site."""

import inspect
import re
import runpy
import subprocess
import sys

import pyspiel
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from tests.project import pages
from tests.project.pages import README, ROOT, blocks

GAMES = ROOT / "docs" / "reference" / "games.md"
each_page = pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_OWN_GAME = re.compile(r"^\| `(python_\w+)` \| (.*) \|$", re.MULTILINE)
_EMPTY_MARKS = re.compile(r"<!--[^>]*-->\s*<!--[^>]*-->")


def anchor(heading):
    """Return GitHub's anchor for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_python_of_the_readme_runs(capsys):
    (block,) = blocks(README, "python")
    exec(compile(block.text, "README.md", "exec"), {"__name__": "readme"})
    first, second, *_ = capsys.readouterr().out.splitlines()
    solved, resolved, value = map(float, first.split())
    assert 0 < solved < 0.01
    assert 0 < resolved < 0.1
    assert abs(value - -0.085606424) < 1e-8  # Southey et al. 2005, and OpenSpiel
    assert "infosets differ" in second


def test_card_game_example_has_the_known_equilibrium(capsys):
    """Bluffs and calls are indifferent: a third of each (Chen & Ankenman 2006)."""
    runpy.run_path(str(ROOT / "examples" / "card_game.py"), run_name="__main__")
    numbers = re.findall(r"[\d.]*\d", capsys.readouterr().out)
    value, _, bets, _, calls = map(float, numbers)
    assert abs(value - 1 / 18) < 1e-4
    assert abs(bets - 1 / 3) < 1e-6 and abs(calls - 1 / 3) < 1e-6


@each_page
def test_links_have_existing_targets(page):
    for link in _LINK.findall(page.read_text("utf-8")):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if fragment:
            headings = _HEADING.findall(target.read_text("utf-8"))
            assert fragment in map(anchor, headings), link


def test_site_navigation_lists_each_page_once():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(map(pages.name_of, pages.MANUAL))


@pytest.mark.slow
def test_site_builds_in_strict_mode(tmp_path):
    """Broken links and invalid docstrings are errors."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    subprocess.run(["make", "linked"], cwd=ROOT, check=True)
    build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True)
    for page in tmp_path.rglob("*.html"):
        assert 'src="http' not in page.read_text("utf-8"), (
            "the page loads an external resource"
        )
    page = (tmp_path / "reference" / "python-api.html").read_text("utf-8")
    for name in spiel_cr.__all__:
        item = getattr(spiel_cr, name)
        if isinstance(item, type) or inspect.isfunction(item):
            assert f'id="spiel_cr.{name}"' in page, name


@each_page
def test_pages_have_no_placeholders(page):
    text = page.read_text("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    assert "DEMO" not in lines
    for word in ("Not measured", "TODO", "TBD", "FIXME"):
        assert word not in text
    assert not _EMPTY_MARKS.search(text), "an empty table between marks"


def test_table_of_games_is_complete():
    listed = [name for name, _ in _OWN_GAME.findall(GAMES.read_text("utf-8"))]
    modules = (ROOT / "game_defs").rglob("*.py")
    source = "\n".join(module.read_text("utf-8") for module in modules)
    ours = set(re.findall(r"\"(python_\w+)\"", source))
    assert sorted(listed) == sorted(ours)
    assert len(listed) == 8


@pytest.mark.parametrize("row", _OWN_GAME.findall(GAMES.read_text("utf-8")))
def test_table_of_games_gives_the_defaults(row):
    name, cell = row
    written = dict(pair.split("=") for pair in cell.split("`")[1].split(", "))
    defaults = pyspiel.load_game(name).get_parameters()
    assert written == {key: str(value) for key, value in defaults.items()}


def test_papers_table_is_current():
    """`make papers` writes it; the bibliography has every work that docstrings cite."""
    papers = runpy.run_path(str(ROOT / "docs" / "site" / "papers.py"))
    assert papers["PAGE"].read_text("utf-8") == papers["page"](), "run `make papers`"
    known, unknown, count = papers["works"](), [], 0
    for name, doc in papers["docstrings"]():
        for citation, work in papers["cited"](" ".join(doc.split()), known):
            count += 1
            unknown += [] if work else [f"{name}: {citation}"]
    assert count > 100 and not unknown


def test_citations_are_distinguished_by_authors_and_year():
    """The table also has the deviations and equations of docstrings."""
    papers = runpy.run_path(str(ROOT / "docs" / "site" / "papers.py"))
    text = "Brown & Sandholm 2019; Brown et al. (2019, eq. 4); Nobody & Else 1999"
    found = [work and work.key for _, work in papers["cited"](text, papers["works"]())]
    assert found == ["Brown2019", "BrownLerer2019", None]
    rows = papers["PAGE"].read_text("utf-8").splitlines()
    (row,) = (row for row in rows if "`spiel_cr.evaluation.aivat`" in row)
    assert "[Burch2018](bibliography.md#burch2018)" in row
    assert "Deviation: the paper also averages over the hands" in row
    (row,) = (row for row in rows if "self_play_network.loss`" in row)
    assert "[Sokota2023]" in row and "| eq. 4 |" in row
