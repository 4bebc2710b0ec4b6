"""The page of a spot: its values, and its behaviour in a browser."""

import json
import re

import numpy as np
import pytest

import spiel_cr
from spiel_cr import poker
from spiel_cr.eval.inspection import spot_page
from spiel_cr.poker.answers import NodeValues
from spiel_cr.solvers.cfr import board_values
from tests.support.browser import needs_browser, open_page
from tests.support.commands import report
from tests.support.strategies import random_spot_policy

BOARD = "5c9dJs2h3c"


@pytest.fixture(scope="module")
def solved():
    ranges = "QQ+,AKs,A5s:0.5,65s", "22+,AT+"
    game = poker.spot(BOARD, 200, 900, ranges=ranges, bets="50%,allin")
    return spiel_cr.solve(
        game, "dcfr", 100, options=spiel_cr.GameOptions("public-tree")
    )


@pytest.fixture(scope="module")
def page(solved, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "spot.html"
    policy = solved.average_policy()
    path.write_text(spot_page.spot_page(policy, solved.form, "a <lead>"), "utf-8")
    return path


def data_of(page):
    text = page.read_text("utf-8")
    assert "http" not in text
    return json.loads(re.search(r"application/json>(.*?)</script>", text, re.S)[1])


def test_page_has_the_values_of_every_node(solved, page):
    assert "a &lt;lead&gt;" in page.read_text("utf-8")
    data = data_of(page)
    nodes = data["nodes"]
    policy = solved.average_policy()
    assert len(nodes) == int((policy.form.betting.player >= 0).sum())
    for entry in nodes:
        found = poker.answers(policy, " ".join(entry["path"]), form=solved.form)
        numbers = np.array(entry["numbers"], float)
        count = len(entry["actions"])
        assert numbers.shape == (len(data["hands"][str(found.player)]), 4 + 2 * count)
        assert numbers[:, 3] == pytest.approx(found.ev, rel=1e-3, nan_ok=True)
        assert numbers[:, 4 : 4 + count] == pytest.approx(found.played, rel=1e-3)
        # An action's EV is minus the EV of the opponent at the next node.
        mixed = (found.played * found.action_ev).sum(axis=1)
        assert mixed == pytest.approx(found.ev, abs=1e-9, nan_ok=True)
        for place, child in enumerate(entry["next"]):
            if child < 0:
                continue
            assert nodes[child]["path"] == [*entry["path"], entry["actions"][place]]
            taken = found.likelihood * found.played[:, place]
            after = poker.answers(policy, " ".join(nodes[child]["path"]))
            ours = taken @ found.action_ev[:, place]
            assert ours == pytest.approx(-after.likelihood @ after.ev, abs=1e-9)


@needs_browser
@pytest.mark.parametrize("width", [390, 1200])
def test_page_of_a_spot_works_in_a_browser(page, tmp_path, width):
    acts = """document.querySelectorAll('#actions button')[0].click();
    document.querySelector('[value=ev]').click();
    document.querySelector('[title^="AKo"]').click();"""
    inside, _, console, (wide, inner) = open_page(
        page, tmp_path, width=width, script=acts
    )
    assert not console and wide <= inner
    assert "after check" in inside and "player 1" in inside
    assert len(re.findall('<button class="cell[ "]', inside)) == 169
    rows = re.search(r'<table id="combos">(.*?)</table>', inside, re.S)[1]
    assert rows.count("<tr>") == 13 and "A♣" in rows and "K♠" in rows
    assert re.search(r'<button class="now"[^>]*>.*?check', inside)


def test_rejects_a_spot_that_is_too_large_for_a_page(solved, monkeypatch):
    monkeypatch.setattr(spot_page, "MOST_NUMBERS", 1000)
    with pytest.raises(ValueError, match="a page has room for 1,000; omit --html"):
        spot_page.last_round(solved.average_policy())


def test_spot_command_writes_the_page(capsys, tmp_path):
    path = tmp_path / "spot.html"
    words = f"spot --board {BOARD} --pot 20 --stack 20 --bets pot --iterations 5"
    ranges = "--ranges", "AA,KQs;QQ,JJ"
    found = report(capsys, *words.split(), *ranges, "--html", path)
    assert found["html"] == str(path) and len(found["hands"][0]["action_evs"]) == 2
    assert data_of(path)["board"] == BOARD


def test_later_streets_are_averaged_over_cards(tmp_path, monkeypatch):
    made, make = [], NodeValues._make_operator
    monkeypatch.setattr(
        NodeValues,
        "_make_operator",
        lambda self, *key: made.append(key) or make(self, *key),
    )
    # Without numba, values are computed by operators.
    monkeypatch.setattr(board_values, "is_available", lambda: False)
    policy = random_spot_policy(
        "5c9cJc2c", "50%; cap 1", "AhAd:0.5,KhQh,KdQd;KhKd,7c6c:0.25"
    )
    page = tmp_path / "turn.html"
    page.write_text(
        spot_page.spot_page(policy, policy.form.sequence_form, "lead"), "utf-8"
    )
    # Although players alternate, no operator is made twice.
    assert made and len(set(made)) == len(made)
    nodes = data_of(page)["nodes"]
    assert len(nodes) == int((policy.form.betting.player >= 0).sum())
    assert {node["street"] for node in nodes} == {0, 1}
    for entry in nodes:
        if entry["street"] == 0:
            continue
        found = poker.answers(policy, " ".join(entry["path"]))
        numbers = np.array(entry["numbers"], float)
        share = found.likelihood / found.likelihood.sum()
        first = [name.partition(" | ")[0] for name in found.names]
        hands = data_of(page)["hands"][str(found.player)]
        assert numbers[:, 1].sum() == pytest.approx(1, abs=1e-3)
        every = (2, found.equity), (3, found.ev), (4, found.played[:, 0])
        for column, values in every:
            mean = numbers[:, 1] @ numbers[:, column]
            assert mean == pytest.approx(share @ values, abs=2e-3 * abs(mean) + 2e-3)
        if found.player == 1:  # Suits of its hands do not depend on the board.
            here = np.array([name == "7c6c" for name in first])
            row = numbers[hands.index("7c6c")]
            mean = share[here] @ found.ev[here] / share[here].sum()
            assert row[3] == pytest.approx(mean, rel=1e-3)
            assert row[1] == pytest.approx(share[here].sum(), rel=1e-3)


def test_page_has_hands_of_a_player_that_first_acts_on_the_river():
    policy = random_spot_policy("5c9cJc2c", "none; river pot; cap 1", "AhAd;KhKd", "ip")
    page = spot_page.spot_page(policy, policy.form.sequence_form, "lead")
    assert "AhAd" in page.replace("AdAh", "AhAd")


def test_streets_beyond_the_size_limit_are_omitted(monkeypatch):
    policy = random_spot_policy("5c9cJc2c", "50%; cap 1", "AhAd;KhKd")
    assert spot_page.last_round(policy) == 1
    monkeypatch.setattr(spot_page, "MOST_STATES", 10)
    assert spot_page.last_round(policy) == 0
