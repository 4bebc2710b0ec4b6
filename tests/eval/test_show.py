"""Looking inside a strategy: numbers against a slow walk, the command, the page."""

import json
import re

import numpy as np
import pytest

import spiel_cr
from spiel_cr.eval.inspection import infoset_view, tree_page
from spiel_cr.policies import conversions as policy_lib
from tests.support import browser, games
from tests.support.commands import refused, report, run, told
from tests.support.strategies import random_behaviours


def walk(state, policy, own, others, found):
    """Player 0's value by recursion; notes reach and values at every infoset.

    `own[p]` is player p's own reach, `others[p]` that of the opponent and chance.
    """
    if state.is_terminal():
        return state.player_return(0)
    if state.is_chance_node():
        return sum(
            share
            * walk(state.child(a), policy, own, [o * share for o in others], found)
            for a, share in state.chance_outcomes()
        )
    player = state.current_player()
    probabilities = policy.action_probabilities(state)
    total, worths = 0.0, {}
    for action in state.legal_actions():
        share = probabilities[action]
        next_own, next_others = list(own), list(others)
        next_own[player] *= share
        next_others[1 - player] *= share
        worth = walk(state.child(action), policy, next_own, next_others, found)
        worths[action] = worth
        total += share * worth
    sign = 1 - 2 * player
    entry = found.setdefault(
        (player, state.information_state_string()),
        {"own": own[player], "others": 0.0, "value": 0.0, "actions": {}},
    )
    entry["others"] += others[player]
    entry["value"] += sign * others[player] * total
    for action, worth in worths.items():
        before = entry["actions"].get(action, 0.0)
        entry["actions"][action] = before + sign * others[player] * worth
    return total


@pytest.mark.parametrize("name", ["leduc7", "goofspiel3_simultaneous"])
def test_numbers_agree_with_a_slow_walk(name):
    tree = games.compiled(name)
    strategy = random_behaviours(tree, 1)
    policy = policy_lib.tabular_policy(tree, strategy)
    found = {}
    walk(tree.game.new_initial_state(), policy, [1.0, 1.0], [1.0, 1.0], found)
    views = infoset_view.view_infosets(tree, strategy)
    assert len(found) == len(views[0]) + len(views[1])
    for view in (*views[0], *views[1]):
        slow = found[view.player, view.key]
        assert view.own_reach == pytest.approx(slow["own"], abs=1e-12)
        assert view.others_reach == pytest.approx(slow["others"], abs=1e-12)
        assert view.value == pytest.approx(slow["value"], abs=1e-11)
        assert view.gain >= -1e-11
        for action in view.actions:
            expected = slow["actions"][action.action]
            assert action.value == pytest.approx(expected, abs=1e-11)


def test_best_values_are_those_of_a_best_response():
    """At infosets where the player never acts again, the best action's value."""
    tree = games.compiled("kuhn")
    views = infoset_view.view_infosets(tree, random_behaviours(tree, 2))
    last = [v for v in (*views[0], *views[1]) if len(v.key) == 3 or v.player == 1]
    assert len(last) == 9
    for view in last:
        best = max(action.value for action in view.actions)
        assert view.best_value == pytest.approx(best, abs=1e-12)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "kuhn.npz"
    spiel_cr.solve(games.compiled("kuhn"), "lp").save(path)
    return path


def test_the_command(saved, capsys):
    words = ("--policy", saved, "--game", "kuhn_poker")
    found, text, _ = told(capsys, "show", *words)
    out = text.splitlines()
    assert len(found["infosets"]) == 12 and found["left_off"] == 0
    by_key = {i["key"]: i for i in found["infosets"]}
    # With the king the second player always bets after a pass; see Kuhn 1950.
    chosen = {a["name"]: a["probability"] for a in by_key["2p"]["actions"]}
    assert chosen == pytest.approx({"Pass": 0.0, "Bet": 1.0})
    assert all(abs(infoset["gain"]) < 1e-9 for infoset in found["infosets"])
    assert any("Bet 1.0000" in line for line in out)
    assert sum("6 of 6 information states" in line for line in out) == 2


def test_filters(saved, capsys):
    game = ("show", "--policy", saved, "--game", "kuhn_poker")
    words = ("--player", 1, "--find", "B", "--sort", "reach")
    found = report(capsys, *game, *words)["infosets"]
    assert sorted(i["key"] for i in found) == ["0b", "1b", "2b"]
    reach = [i["own_reach"] * i["others_reach"] for i in found]
    assert reach == sorted(reach, reverse=True)
    found, out, _ = told(capsys, *game, "--limit", 2)
    assert "4 more; raise --limit" in out
    assert len(found["infosets"]) == 4 and found["left_off"] == 8


def data_of(page):
    (content,) = re.findall(
        r"<script id=data type=application/json>(.*?)</script>", page, re.DOTALL
    )
    return json.loads(content)


@pytest.fixture(scope="module")
def leduc_page(tmp_path_factory):
    tree = games.compiled("leduc7")
    strategy = random_behaviours(tree, 4)
    views = infoset_view.view_infosets(tree, strategy)
    # Whatever a game's strings hold.
    views[0][0] = views[0][0]._replace(key="1 </script><b>")
    text = tree_page.tree_page(tree, strategy, views, title="a </script>", lead="b")
    path = tmp_path_factory.mktemp("pages") / "tree.html"
    path.write_text(text, "utf-8")
    return path


def test_the_page_holds_the_whole_tree(leduc_page):
    tree = games.compiled("leduc7")
    text = leduc_page.read_text("utf-8")
    data = data_of(text)
    assert len(data["nodes"]) == len(tree.histories)
    assert list(map(len, data["infosets"])) == list(map(len, tree.infosets))
    # Probabilities below every node sum to one; values are their means.
    below, mean = np.zeros(len(tree.histories)), np.zeros(len(tree.histories))
    for parent, _, share, _, _, _, value in data["nodes"][1:]:
        below[parent] += share
        mean[parent] += share * value
    inner = below > 0
    np.testing.assert_allclose(below[inner], 1, atol=1e-4)
    values = np.array([node[6] for node in data["nodes"]])
    np.testing.assert_allclose(mean[inner], values[inner], atol=1e-3)
    assert "<title>a &lt;/script&gt;</title>" in text
    assert not re.search(r"https?://|src=|url\(", text)


def test_large_games_have_no_page(monkeypatch):
    monkeypatch.setattr(tree_page, "MOST_HISTORIES", 50)
    tree = games.compiled("kuhn")
    strategy = random_behaviours(tree, 0)
    with pytest.raises(ValueError, match="leave out --html"):
        tree_page.tree_page(tree, strategy, ([], []), title="", lead="")


def test_large_games_are_refused_before_their_tables(
    saved, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(tree_page, "MOST_HISTORIES", 50)
    page = tmp_path / "page.html"
    words = ("--policy", saved, "--game", "kuhn_poker", "--html", page)
    assert "a page has room for 50" in refused(capsys, "show", *words)


@browser.needs_browser
def test_the_page_opens_where_most_is_lost(tmp_path):
    """In order of own reach x gain; and what is played there with all hands."""
    tree = games.compiled("leduc7")
    strategy = random_behaviours(tree, 4)
    views = infoset_view.view_infosets(tree, strategy)
    path = tmp_path / "tree.html"
    path.write_text(tree_page.tree_page(tree, strategy, views, title="a", lead="b"))
    dom, *_ = browser.open_page(path, tmp_path, width=1280)
    every = [view for own in views for view in own]
    worst = max(every, key=lambda view: view.own_reach * view.gain)
    (shown,) = re.findall(r'<pre class="state">(.*?)</pre>', dom, re.DOTALL)
    assert shown == worst.key
    losses = re.findall(r"could gain ([\d.e+-]+) per match", dom)
    assert len(losses) == 100
    assert float(losses[0]) == pytest.approx(worst.own_reach * worst.gain, abs=1e-4)
    assert [float(x) for x in losses] == sorted(map(float, losses), reverse=True)
    # Worth on the average of matches that come here, as its actions are.
    (worth,) = re.findall(r"worth ([\d.e+-]+) to player", dom)
    expected = worst.value / worst.others_reach
    assert float(worth) == pytest.approx(expected, abs=1e-3)
    assert "All hands here" in dom
    assert len(re.findall(r'class="hand[ "]', dom)) >= 3
    assert len(re.findall(r'class="hand now', dom)) == 1


def test_outcomes_have_the_games_own_words():
    """OpenSpiel's Leduc poker numbers the deals; its players' strings name them."""
    names = set(tree_page._chance_names(spiel_cr.compile_game("leduc_poker")).values())
    assert "Private: 0 (player 0 sees it)" in names
    assert "Private: 5 (player 1 sees it)" in names
    assert {name for name in names if "sees" not in name} == {
        f"Public: {card}" for card in range(6)
    }


def test_the_page_is_all_that_the_command_says(saved, tmp_path, capsys):
    page = tmp_path / "kuhn.html"
    run("show", "--policy", saved, "--game", "kuhn_poker", "--html", page)
    out, err = capsys.readouterr()
    assert not out and f"page: {page}" in err and page.exists()


@browser.needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_real_browser(leduc_page, tmp_path, width):
    """Search, and click the first result."""
    acts = """
    const find = document.getElementById("find");
    find.value = "1";
    find.dispatchEvent(new Event("input"));
    document.querySelector("#found button").click();
    """
    dom, picture, console, (wide, window) = browser.open_page(
        leduc_page, tmp_path, width=width, script=acts
    )
    assert not console
    assert (wide, window) == (width, width)
    count, commonest = browser.colours(picture, width)
    assert count > 100 and commonest < 0.97
    assert re.search(r'id="count"[^>]*>\d+ information states', dom)
    assert "a best response from here on gains" in dom and 'class="row now' in dom
