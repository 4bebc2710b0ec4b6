"""Drawings of game trees: edges, probabilities, values, infosets and size limits."""

import collections
import re

import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score

import spiel_cr
from spiel_cr.eval.inspection import tree_drawing
from tests.support import games
from tests.support.commands import rejection, report

# Bob observes Ann's move, but not the chance outcome.
_EFG = """EFG 2 R "Signals" { "Ann" "Bob" }
""
c "" 1 "" { "strong" 0.75 "weak" 0.25 } 0
p "" 1 1 "" { "up" "down" } 0
p "" 2 1 "" { "left" "right" } 0
t "" 1 "" { 1, -1 }
t "" 2 "" { 2, -2 }
t "" 3 "" { 0, 0 }
p "" 1 2 "" { "up" "down" } 0
p "" 2 1 "" { "left" "right" } 0
t "" 4 "" { 5, -5 }
t "" 5 "" { -3, 3 }
t "" 6 "" { 0, 0 }
"""


def texts_of(drawn):
    (axis,) = drawn.figure.axes
    return [text.get_text() for text in axis.texts]


def links_of(drawn):
    (axis,) = drawn.figure.axes
    dashed = (line for line in axis.lines if line.get_linestyle() == "--")
    return sum(len(line.get_xdata()) == 4 for line in dashed)


def edges_of(drawn):
    (axis,) = drawn.figure.axes
    return [line for line in axis.lines if line.get_linestyle() == "-"]


def test_drawing_shows_the_whole_tree_of_kuhn_poker():
    tree = games.compiled("kuhn")
    drawn = tree_drawing.draw_tree(tree)
    texts = collections.Counter(texts_of(drawn))
    assert len(edges_of(drawn)) == len(tree.histories) - 1 == 57
    # Each infoset has two histories, and both show its number.
    assert links_of(drawn) == 12
    assert [texts[str(n)] for n in range(1, 7)] == [4] * 6
    # Without a policy, only chance has probabilities, and nodes have no values.
    assert texts["J to player 0  0.333"] == 1 and texts["K to player 1  0.5"] == 2
    assert texts["Check"] == texts["Bet"] == 12 and texts["Fold"] == texts["Call"]
    payoffs = [t for t in texts.elements() if re.fullmatch(r"[+−][12]", t)]
    assert len(payoffs) == 30 and sum(t[0] == "+" for t in payoffs) == 15


def test_drawing_shows_probabilities_and_values_of_the_policy():
    game = pyspiel.load_game("kuhn_poker")
    policy = spiel_cr.solve(game, "cfr+", 1000).average_policy()
    drawn = tree_drawing.draw_tree(game, policy)
    labels = collections.Counter(texts_of(drawn))
    expected = collections.Counter()

    def visit(state):
        value = expected_game_score.policy_value(state, [policy] * 2)[0]
        shown = f"{value:+.3g}".replace("-", "−")
        expected["0" if abs(value) < 1e-3 else shown] += 1
        if state.is_terminal():
            return
        for action in state.legal_actions():
            visit(state.child(action))

    visit(game.new_initial_state())
    assert expected <= labels
    bet = policy.policy_for_key("0")[1]
    assert 0.1 < bet < 0.34 and labels[f"Bet  {bet:.3g}"] == 2
    # Edges are as wide as their moves are likely.
    widths = {line.get_linewidth() for line in edges_of(drawn)}
    assert max(widths) == pytest.approx(2.9, abs=1e-3) and min(widths) < 0.71


def test_gambit_files_and_matrix_games_are_drawn(tmp_path):
    path = tmp_path / "signals.efg"
    path.write_text(_EFG)
    drawn = tree_drawing.draw_tree(str(path))
    assert {"strong  0.75", "weak  0.25", "up", "left", "+5"} <= set(texts_of(drawn))
    assert links_of(drawn) == 1 and len(edges_of(drawn)) == 10
    (axis,) = drawn.figure.axes
    assert axis.get_title().startswith("Signals\n")
    matrix = spiel_cr.matrix_game([[2, -1], [-1, 1]], ["heads", "tails"])
    drawn = tree_drawing.draw_tree(matrix, spiel_cr.solve(matrix, "lp"))
    assert {"heads  0.4", "tails  0.6", "+0.2"} <= set(texts_of(drawn))


def test_show_plot_draws_the_tree_with_and_without_a_policy(tmp_path, capsys):
    policy, picture = tmp_path / "kuhn.npz", tmp_path / "tree.svg"
    spiel_cr.solve(games.compiled("kuhn"), "lp").save(policy)
    words = ("show", "--game", "kuhn_poker", "--plot", picture)
    assert report(capsys, *words) == {"game": "kuhn_poker", "plot": str(picture)}
    alone = picture.read_text("utf-8")
    found = report(capsys, *words, "--policy", policy)
    assert found["plot"] == str(picture) and len(found["infosets"]) == 12
    assert "<svg" in alone and picture.read_text("utf-8") != alone


def test_larger_trees_are_rejected_with_their_size(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"895 histories.*smaller game"):
        tree_drawing.draw_tree(games.compiled("leduc7"))
    picture = tmp_path / "tree.png"
    for game, count in (("leduc_poker", "9,457"), ("phantom_ttt", "more than 100,000")):
        message = rejection(capsys, "show", "--game", game, "--plot", picture)
        assert f"has {count} histories, and a drawing at most 200" in message
    assert not picture.exists()


def test_show_options_other_than_plot_require_a_policy(tmp_path, capsys):
    words = ("show", "--game", "kuhn_poker")
    assert "--policy" in rejection(capsys, *words)
    picture = tmp_path / "tree.png"
    for option in (
        ("--find", "J"),
        ("--node", "check"),
        ("--html", tmp_path / "x.html"),
    ):
        assert "--policy" in rejection(capsys, *words, "--plot", picture, *option)
