"""Inspecting a strategy: values compared with recursion, the command, the page."""

import json
import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.eval.cli import show
from spiel_cr.eval.inspection import infoset_view, tree_page
from spiel_cr.policies import conversions as policy_lib
from tests.support import browser, games
from tests.support.commands import outputs, rejection, report, run
from tests.support.strategies import random_behaviours


def recursive_value(state, policy, own, others, found):
    """Return player 0's value; record reach and values of every infoset in `found`.

    `own[p]` is the reach probability of player p, and `others[p]` is that of the
    opponent and chance.
    """
    if state.is_terminal():
        return state.player_return(0)
    if state.is_chance_node():
        return sum(
            share
            * recursive_value(
                state.child(a), policy, own, [o * share for o in others], found
            )
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
        worth = recursive_value(
            state.child(action), policy, next_own, next_others, found
        )
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
def test_infoset_values_and_reach_equal_recursion(name):
    tree = games.compiled(name)
    strategy = random_behaviours(tree, 1)
    policy = policy_lib.tabular_policy(tree, strategy)
    found = {}
    recursive_value(
        tree.game.new_initial_state(), policy, [1.0, 1.0], [1.0, 1.0], found
    )
    views = infoset_view.view_infosets(tree, strategy)
    assert len(found) == len(views[0]) + len(views[1])
    for view in (*views[0], *views[1]):
        slow = found[view.player, view.key]
        assert view.player_reach == pytest.approx(slow["own"], abs=1e-12)
        assert view.others_reach == pytest.approx(slow["others"], abs=1e-12)
        assert view.value == pytest.approx(slow["value"], abs=1e-11)
        assert view.gain >= -1e-11
        for action in view.actions:
            expected = slow["actions"][action.action]
            assert action.value == pytest.approx(expected, abs=1e-11)


def test_best_value_equals_the_best_action_at_last_infosets():
    """If the player does not act again, a best response plays the best action."""
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


def test_show_lists_the_infosets_of_a_policy(saved, capsys):
    words = ("--policy", saved, "--game", "kuhn_poker")
    found, text, _ = outputs(capsys, "show", *words)
    out = text.splitlines()
    assert len(found["infosets"]) == 12 and found["left_off"] == 0
    by_key = {i["key"]: i for i in found["infosets"]}
    # With the king the second player always bets after a pass; see Kuhn 1950.
    chosen = {a["name"]: a["probability"] for a in by_key["2p"]["actions"]}
    assert chosen == pytest.approx({"Pass": 0.0, "Bet": 1.0})
    assert all(abs(infoset["gain"]) < 1e-9 for infoset in found["infosets"])
    assert any("Bet 1.0000" in line for line in out)
    assert sum("6 of 6 information states" in line for line in out) == 2
    # JSON names information states as the page does.
    names = {i["key"]: i["name"] for i in found["infosets"]}
    assert (names["0"], names["0pb"]) == ("J, after the deal", "J, after Check, Bet")
    assert set(names.values()) <= {line[43:] for line in out}
    assert any("Fold 1.0000" in line for line in out)


def test_show_filters_by_player_name_and_limit(saved, capsys):
    game = ("show", "--policy", saved, "--game", "kuhn_poker")
    words = ("--player", 1, "--find", "B", "--sort", "reach")
    found = report(capsys, *game, *words)["infosets"]
    assert sorted(i["key"] for i in found) == ["0b", "1b", "2b"]
    by_name = report(capsys, *game, "--player", 1, "--find", "after bet")["infosets"]
    assert sorted(i["key"] for i in by_name) == ["0b", "1b", "2b"]
    reach = [i["player_reach"] * i["others_reach"] for i in found]
    assert reach == sorted(reach, reverse=True)
    found, out, _ = outputs(capsys, *game, "--limit", 2)
    assert "4 more; raise --limit" in out
    assert len(found["infosets"]) == 4 and found["left_off"] == 8


def test_gain_order_weights_gains_by_the_players_reach():
    """A gain at an infoset that the player rarely reaches comes late in the order."""
    tree = games.compiled("kuhn")
    strategy = random_behaviours(tree, 1)
    views = infoset_view.view_infosets(tree, strategy)[0]
    order = show.choose_infosets(tree, views, None, "gain")
    worth = [view.player_reach * view.gain for view in order]
    assert worth == sorted(worth, reverse=True)
    gains = [view.gain for view in order]
    assert gains != sorted(gains, reverse=True)


def data_of(page):
    (content,) = re.findall(
        r"<script id=data type=application/json>(.*?)</script>", page, re.DOTALL
    )
    return json.loads(content)


def page_of(tree, strategy, path):
    views = sum(infoset_view.view_infosets(tree, strategy), [])
    policy = policy_lib.tabular_policy(tree, strategy)
    path.write_text(tree_page.tree_page(tree.game, policy, views, "a </script>"))
    return views


@pytest.fixture(scope="module")
def leduc_page(tmp_path_factory):
    tree = games.compiled("leduc7")
    path = tmp_path_factory.mktemp("pages") / "tree.html"
    return path, page_of(tree, random_behaviours(tree, 4), path)


def test_page_contains_the_whole_tree(leduc_page):
    tree, (path, views) = games.compiled("leduc7"), leduc_page
    text = path.read_text("utf-8")
    data = data_of(text)
    nodes = data["nodes"]
    assert len(nodes) == len(tree.histories)
    assert list(map(len, data["infosets"])) == list(map(len, tree.infosets))
    # Probabilities below every node sum to one.
    below = np.zeros(len(nodes))
    for parent, _, share, *_ in nodes[1:]:
        below[parent] += share
    np.testing.assert_allclose(below[below > 0], 1, atol=1e-4)
    # Values of all histories, and reach of terminal ones.
    walked = policy_lib.history_values(tree, random_behaviours(tree, 4))
    values = sorted(node[6] for node in nodes)
    np.testing.assert_allclose(values, np.sort(walked), atol=1e-4)
    leaves = sum(node[5] for node in nodes if node[3] == pyspiel.PlayerId.TERMINAL)
    assert leaves == pytest.approx(1, abs=1e-4)
    # Private cards are shown by name.
    held = {view[2] for own in data["infosets"] for view in own}
    assert held == {"J", "Q", "K"}
    of = {(view.player, view.key): view for view in views}
    for player, own in enumerate(data["infosets"]):
        for key, _, _, public, _, reach, _, _, gain, actions in own:
            view = of[player, key]
            assert (public == "") == (" public - " in key)
            assert reach == pytest.approx(view.player_reach, abs=1e-5)
            assert gain == pytest.approx(view.gain, abs=1e-5)
            shares = [action.probability for action in view.actions]
            assert [a[1] for a in actions] == pytest.approx(shares, abs=1e-5)
    assert "a &lt;/script&gt;" in text and "all 895 histories" in text
    assert not re.search(r"https?://|src=|url\(", text)


def test_large_game_pages_show_the_likeliest_histories(monkeypatch):
    """Histories are sorted by probability, and unexpanded ones have no value."""
    monkeypatch.setattr(tree_page, "MOST_STEPPED", 500)
    game = pyspiel.load_game("phantom_ttt")
    policy = UniformRandomPolicy(game)
    text = tree_page.tree_page(game, policy, [], "b")
    data = data_of(text)
    nodes = data["nodes"]
    assert "the most likely 50" in text and 500 <= len(nodes) < 510
    asked = [node[5] for node in nodes if node[4] >= 0]
    assert asked == sorted(asked, reverse=True) and nodes[0][6] is None
    key, _, holds, _, board, reach, _, value, _, actions = data["infosets"][0][0]
    assert key == game.new_initial_state().information_state_string(0)
    assert (holds, reach, value) == ("x at –", 1, None)
    assert [a[1] for a in actions] == pytest.approx([1 / 9] * 9, abs=1e-6)
    assert [c["action"] for row in board["rows"] for c in row] == list(range(9))


def test_page_values_are_exact_if_all_descendants_are_expanded():
    """A small game is expanded completely, so its root has the exact value."""
    game = pyspiel.load_game("kuhn_poker")
    policy = UniformRandomPolicy(game)
    nodes = data_of(tree_page.tree_page(game, policy, [], "b"))["nodes"]
    value = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)[0]
    assert nodes[0][6] == pytest.approx(value, abs=1e-5)
    names = {node[1] for node in nodes}
    assert {"J (player 0 sees it)", "Check", "Bet", "Call", "Fold"} <= names


@browser.needs_browser
def test_page_opens_with_all_hands_of_the_first_decision(tmp_path):
    """Decisions are listed below, sorted by the player's reach times the gain."""
    tree = games.compiled("leduc7")
    path = tmp_path / "tree.html"
    views = page_of(tree, random_behaviours(tree, 4), path)
    dom, *_ = browser.open_page(path, tmp_path, width=1280)
    tiles = re.findall(
        r'class="(tile(?: now)?)" type="button" title="(\w): ([^"]*)"', dom
    )
    assert [tile[:2] for tile in tiles] == [
        ("tile now", "K"),
        ("tile", "Q"),
        ("tile", "J"),
    ]
    first = next(v for v in views if v.key == "p0 card 2 public - bets dd")
    percent = [100 * action.probability for action in first.actions]
    shown = re.findall(r"\w+ ([\d.]+)%", tiles[0][2].replace("&nbsp;", "\u00a0"))
    assert list(map(float, shown)) == pytest.approx(percent, abs=0.006)
    # The game's information-state string comes last.
    assert re.search(r'id="state"[^>]*>p0 card 2 public - bets dd</pre></main>', dom)
    losses = re.findall(r"could gain ([\d.e+−-]+) per match", dom)
    expected = sorted((v.player_reach * v.gain for v in views), reverse=True)[:100]
    found = [float(loss.replace("−", "-")) for loss in losses]
    assert found == pytest.approx(expected, abs=1e-4) and len(found) == 100
    # The value is conditional on reaching the infoset, as for its actions.
    (worth,) = re.findall(
        r"Value of the information state for player \d: ([\d.e−]+);", dom
    )
    assert float(worth.replace("−", "-")) == pytest.approx(
        first.value / first.others_reach, abs=1e-3
    )


def test_deals_are_named_by_cards():
    """OpenSpiel numbers the deals of Leduc poker; the page shows cards."""
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    names = [name for _, name, _ in tree_page.outcomes_of(state)]
    cards = [rank + suit for rank in "JQK" for suit in "♠♥"]
    assert names == [f"{card} (player 0 sees it)" for card in cards]
    state.apply_action(0)
    state.apply_action(1)
    state.apply_action(1)
    state.apply_action(1)
    assert [name for _, name, _ in tree_page.outcomes_of(state)] == cards[2:]


def test_show_html_prints_nothing_on_stdout(saved, tmp_path, capsys):
    page = tmp_path / "kuhn.html"
    run("show", "--policy", saved, "--game", "kuhn_poker", "--html", page)
    out, err = capsys.readouterr()
    assert not out and f"page: {page}" in err and page.exists()


def test_pages_of_public_tree_and_simulator_policies(tmp_path, capsys):
    """Pages support the public-tree form, and sampling without a game tree."""
    page = tmp_path / "page.html"
    for game, algorithm in (
        ("python_leduc_poker", ("--form", "public-tree", "--iterations", 5)),
        (
            "kuhn_poker",
            ("--algorithm", "es-mccfr", "--form", "simulator", "--seconds", 1),
        ),
    ):
        saved = tmp_path / f"{game}.npz"
        run("solve", "--game", game, *algorithm, "--save", saved)
        capsys.readouterr()
        words = ("show", "--policy", saved, "--game", game, "--html", page)
        assert report(capsys, *words)["html"] == str(page)
        # The tree of a small game is built for the page, which then shows values.
        infosets = data_of(page.read_text("utf-8"))["infosets"]
        assert all(view[7] is not None for own in infosets for view in own)


def test_policies_without_a_game_tree_have_a_page_but_no_list(tmp_path, capsys):
    """Such a policy cannot be listed, and its page has no gains."""
    saved, page = tmp_path / "phantom.npz", tmp_path / "page.html"
    words = ("--form", "simulator", "--iterations", 2, "--save", saved)
    run("solve", "--game", "phantom_ttt", "--algorithm", "es-mccfr", *words)
    capsys.readouterr()
    words = ("show", "--policy", saved, "--game", "phantom_ttt")
    assert "--html FILE" in rejection(capsys, *words)
    assert "--sort reach" in rejection(capsys, *words, "--html", page, "--sort", "gain")
    assert not page.exists()
    run(*words, "--html", page, "--sort", "reach", "--player", 1, "--limit", 3)
    start = data_of(page.read_text("utf-8"))["start"]
    assert start == {"find": None, "player": 1, "sort": "reach", "limit": 3}


@browser.needs_browser
def test_page_list_starts_with_the_filters_of_the_command(saved, tmp_path):
    page = tmp_path / "kuhn.html"
    words = ("--player", 1, "--find", "B", "--sort", "game", "--limit", 2)
    run("show", "--policy", saved, "--game", "kuhn_poker", "--html", page, *words)
    dom, _, console, _ = browser.open_page(page, tmp_path, width=1280)
    assert not console and "3 decisions, the first 2 are shown" in dom
    listed = dom.partition('id="found"')[2]
    assert len(re.findall(r">[JQK], after Bet\b", listed)) == 2


@browser.needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_page_search_works_in_a_browser(leduc_page, tmp_path, width):
    """A search lists decisions, and a click on the first one opens it."""
    acts = """
    const find = document.getElementById("find");
    find.value = "1";
    find.dispatchEvent(new Event("input"));
    document.querySelector("#found button").click();
    """
    dom, picture, console, (wide, window) = browser.open_page(
        leduc_page[0], tmp_path, width=width, script=acts
    )
    assert not console
    assert (wide, window) == (width, width)
    count, commonest = browser.colours(picture, width)
    assert count > 100 and commonest < 0.97
    assert re.search(r'id="count"[^>]*>\d+ decisions', dom)
    assert "gain of a best response from here on" in dom and 'class="row now' in dom
