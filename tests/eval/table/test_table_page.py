"""Whole matches by clicks and by keys, in a real browser, at two widths."""

import random

import pytest

from spiel_cr.eval.table import table
from tests.support import browser, tables

_OPEN = "view && ['your turn', 'over', 'failed'].includes(view.phase) && view.phase"
_BUTTONS = (
    "[...document.querySelectorAll('button[data-action], g.go')]"
    ".map(e => e.dataset.action).filter(a => a !== undefined)"
)
# Kinds of drawings: cards, a hand of cards, a grid, hexagons, dice, a map, text.
_GAMES = [
    ("leduc_poker", "resolving(iterations=20)"),
    ("python_ii_goofspiel(num_cards=3)", "uniform"),
    ("python_princess_and_monster(horizon=4)", "uniform"),
    ("dark_hex(num_rows=2,num_cols=3)", "uniform"),
    ("liars_dice(numdice=1,dice_sides=6)", "uniform"),
    ("python_scotland_yard(rounds=2)", "uniform"),
    ("nim(pile_sizes=1;2)", "uniform"),
]


@pytest.fixture
def start_table():
    """Return a function that starts a table; close the table after the test."""
    with tables.laying(60) as lay:
        yield lambda game, bots: lay(game, bots, seed=3)[0]


def play_by_clicks(page, draw):
    """Play a match to its end; return the number of moves."""
    moves = 0
    while page.wait_for(_OPEN) == "your turn":
        version = page.value("view.version")
        action = draw.choice(page.value(_BUTTONS))
        page.click(f"button[data-action='{action}']")
        page.wait_for(f"view.version > {version}")
        moves += 1
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
    assert page.value("view.phase") == "over"
    return moves


def costliest_decisions(decisions):
    """Return the indices of the decisions with the largest loss at equilibrium.

    A decision without known values counts as a loss of 0.
    """
    costs = []
    for one in decisions:
        known = [m for m in one["moves"] if m.get("solution") is not None]
        played = [m["solution"] for m in known if m["chosen"]]
        costs.append(max(m["solution"] for m in known) - played[0] if played else 0)
    return [n for n, cost in enumerate(costs) if cost == max(costs)]


@pytest.mark.slow
@browser.needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("game", "bot"), _GAMES)
def test_two_matches_and_reviews_by_clicks(start_table, tmp_path, game, bot, width):
    """The seats alternate, and each review starts at a costliest decision."""
    serving = start_table(game, ["human", bot])
    with browser.LiveBrowser(tmp_path, width=width) as page:
        page.open(serving.address)
        for number in range(2):
            assert play_by_clicks(page, random.Random(number)) > 0
            page.wait_for(f"reviews.get({number}) && reviews.get({number}).review")
            decisions = page.value(f"reviews.get({number}).review.decisions")
            place = page.value("document.getElementById('place').textContent")
            assert int(place.split()[1]) - 1 in costliest_decisions(decisions)
            for _ in decisions[1:]:
                page.press("ArrowLeft")
            for step in range(len(decisions)):
                if step:
                    page.click("#forth")
                place = page.value("document.getElementById('place').textContent")
                assert place.startswith(f"turn {step + 1} of")
                assert page.value("document.querySelectorAll('#moves tbody tr').length")
                assert page.value("document.querySelectorAll('tr.chosen').length") == 1
                assert page.value("document.documentElement.scrollWidth") <= width
            result = page.value("document.getElementById('status').textContent")
            assert result.startswith(("You win", "You lose", "A draw"))
            if not number:
                page.click("#next")
                page.wait_for("view.match === 1")
        score = page.value("document.getElementById('score').textContent")
        assert score.startswith("Score after 2 matches")
        page.click("#leave")
        page.wait_for("view.phase === 'closed'")
        assert not page.console
        assert all(url.startswith((serving.address, "data:")) for url in page.requests)


@pytest.mark.slow
@browser.needs_browser
def test_match_by_keys_moves_the_focus(start_table, tmp_path):
    """Digits choose an action, and after the first key a button has the focus."""
    serving = start_table("kuhn_poker", ["human", "uniform"])
    with browser.LiveBrowser(tmp_path, width=390) as page:
        page.open(serving.address)
        while page.wait_for(_OPEN) == "your turn":
            version = page.value("view.version")
            page.press("2")
            page.wait_for(f"view.version > {version}")
        assert page.value("document.activeElement.id") == "next"
        page.press("Enter")
        page.wait_for("view.match === 1")
        assert page.wait_for(_OPEN) == "your turn"
        assert page.value("document.activeElement.dataset.action") in ("0", "1")
        assert not page.console


@browser.needs_browser
def test_move_does_not_shift_the_page(start_table, tmp_path, monkeypatch):
    # Reviews compile functions.
    found = {"decisions": [], "notes": ["none"]}
    monkeypatch.setattr(table.review.Reviewer, "review", lambda *_: found)
    serving = start_table("kuhn_poker", ["human", "uniform"])
    with browser.LiveBrowser(tmp_path, width=390, height=700) as page:
        page.open(serving.address)
        assert page.wait_for(_OPEN) == "your turn"
        top = "document.getElementById('end').getBoundingClientRect().top"
        before = page.value(top)
        page.click("button[data-action='1']")
        assert page.wait_for("view.phase === 'over'")
        # The layout has not shifted.
        assert page.value(top) == before
        page.picture(tmp_path / "page.png")
        count, commonest = browser.colours(tmp_path / "page.png", 390)
        assert count > 50 and commonest < 0.97
        assert not page.console
