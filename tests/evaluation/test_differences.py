"""Differences between policies, against OpenSpiel's values of whole policies."""

import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

import spiel_cr


def value(game, first, second):
    """Return player 0's expected utility, computed by OpenSpiel."""
    start = game.new_initial_state()
    return expected_game_score.policy_value(start, [first, second])[0]


@pytest.fixture(scope="module")
def policies():
    game = spiel_cr.load_game("leduc_poker")
    solved = spiel_cr.solve(game, "cfr+", 20).average_policy()
    return game, openspiel_policy.UniformRandomPolicy(game), solved


def test_gains_equal_openspiels(policies):
    game, first, second = policies
    found = spiel_cr.differences(game, first, second, most=10_000)
    whole = value(game, first, first)
    gains = value(game, second, first) - whole, whole - value(game, first, second)
    assert found.gains == pytest.approx(gains, abs=1e-9)
    for player in range(2):
        listed = [row.gain for row in found.rows if row.player == player]
        assert sum(listed) == pytest.approx(gains[player], abs=1e-9)
    expected = [exploitability.nash_conv(game, one) for one in (first, second)]
    assert found.nash_conv == pytest.approx(expected, abs=1e-9)
    assert found.infosets <= 936 and len(found.rows) <= found.infosets
    sizes = [abs(row.gain) for row in found.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert min(gains) > 0.1, "the solution wins against uniform play"


def test_gain_at_one_infoset_equals_that_of_changing_only_it(policies):
    game, first, _ = policies
    tree = spiel_cr.build_tree(game, observations=True)
    state = game.new_initial_state()
    for action in (5, 0, 1, 2):  # player 0 has the best card, calls, faces a raise
        state.apply_action(action)
    changed = first.to_tabular()
    changed.policy_for_key(state.information_state_string())[:] = 0, 0, 1
    found = spiel_cr.differences(tree, first, changed, sort="disagreement")
    (row,) = found.rows
    assert (row.player, found.infosets, found.gains[1]) == (0, 1, 0.0)
    assert (row.actions, row.second) == (("Fold", "Call", "Raise"), (0, 0, 1))
    gain = value(game, changed, first) - value(game, first, first)
    assert row.gain == found.gains[0] == pytest.approx(gain, abs=1e-12)
    # One card of six, a call of two moves, a raise of two, and two thirds of the
    # probability at the infoset.
    assert row.disagreement == pytest.approx(1 / 6 / 2 / 2 * 2 / 3)
    assert "disagreement 2.78%" in str(found)
    assert "1 infosets differ, 1 in more than 1% of matches; " in str(found)
    changed.policy_for_key(state.information_state_string())[:] = 0.3, 0.3, 0.4
    little = spiel_cr.differences(tree, first, changed)
    assert "1 infosets differ, 0 in more than 1% of matches; " in str(little)
    assert "Fold 33% → 0%" in str(found) and "Fold 33% → 0%" in found._repr_html_()


def test_exchanged_game_and_policy_are_rejected():
    with pytest.raises(ValueError, match=r"first: differences\(game.*exchange"):
        spiel_cr.differences("uniform", "leduc_poker", "uniform")
    with pytest.raises(ValueError, match=r"first: exploit\(game.*exchange"):
        spiel_cr.exploit("uniform", "leduc_poker")
    with pytest.raises(ValueError, match=r"first: play_matches\(game.*exchange"):
        spiel_cr.play_matches(["uniform", "uniform"], "leduc_poker")
