"""Results, policies, locks and files of other games, and of simultaneous games.

Expected numbers come from OpenSpiel's tools.
"""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

import spiel_cr

_GOOFSPIEL = (
    "goofspiel(num_cards=4,imp_info=true,points_order=descending,returns_type={})"
)
WIN_LOSS, DIFFERENCE = map(_GOOFSPIEL.format, ("win_loss", "point_difference"))


@pytest.fixture(scope="module")
def kuhn():
    return spiel_cr.solve("kuhn_poker", "cfr+", 20)


@pytest.fixture(scope="module")
def win_loss():
    return spiel_cr.solve(WIN_LOSS, "cfr+", 20)


def _expected(game, policy):
    return exploitability.nash_conv(spiel_cr.load_game(game), policy)


def test_results_are_evaluated_in_the_game_that_is_passed(win_loss):
    for game in (WIN_LOSS, DIFFERENCE):
        expected = _expected(game, win_loss.average_policy())
        for policy in (win_loss, win_loss.average_policy()):
            assert spiel_cr.nash_conv(game, policy) == pytest.approx(expected, abs=1e-9)
        found = spiel_cr.evaluate(game, win_loss).nash_conv
        assert found == pytest.approx(expected, abs=1e-9)
    assert _expected(WIN_LOSS, win_loss.average_policy()) != pytest.approx(expected)


def test_policy_files_are_evaluated_in_the_game_that_is_passed(win_loss, tmp_path):
    path = str(tmp_path / "policy.npz")
    win_loss.save(path)
    expected = _expected(DIFFERENCE, win_loss.average_policy())
    assert spiel_cr.nash_conv(DIFFERENCE, path) == pytest.approx(expected, abs=1e-9)
    policy = spiel_cr.load_policy(path, DIFFERENCE)
    assert _expected(DIFFERENCE, policy) == pytest.approx(expected, abs=1e-9)


def test_results_of_another_phantom_game_are_rejected():
    one = "phantom_ttt(obstype=reveal-nothing)"
    small = "dark_hex(num_rows=2,num_cols=3)"
    result = spiel_cr.solve(small, "cfr+", 5)
    with pytest.raises(ValueError, match="dark_hex.* was given for phantom_ttt"):
        spiel_cr.nash_conv(one, result)


_CALLS = {
    "nash_conv": lambda game, policy: spiel_cr.nash_conv(game, policy),
    "evaluate": lambda game, policy: spiel_cr.evaluate(game, policy),
    "best_response": lambda game, policy: spiel_cr.best_response(game, policy, 0),
    "exploit": lambda game, policy: spiel_cr.exploit(game, policy, seconds=3),
    "differences": lambda game, policy: spiel_cr.differences(game, policy, "uniform"),
    "second of differences": lambda game, policy: spiel_cr.differences(
        game, "uniform", policy
    ),
    "play_matches": lambda game, policy: spiel_cr.play_matches(
        game, [policy, "uniform"], 4, seed=1
    ),
    "aivat": lambda game, policy: spiel_cr.play_matches(
        game, ["uniform", "uniform"], 4, seed=1, aivat=policy
    ),
    "locks": lambda game, policy: spiel_cr.solve(
        game, "cfr+", 3, options=spiel_cr.GameOptions(locks=(policy, None))
    ),
}


@pytest.mark.parametrize("call", _CALLS)
def test_results_of_another_game_are_rejected(call, kuhn, tmp_path):
    """The error names both games for a result, a policy, a file and a table."""
    path = str(tmp_path / "kuhn.npz")
    kuhn.save(path)
    for policy in (kuhn, kuhn.average_policy(), path):
        with pytest.raises(ValueError, match=r"kuhn_poker.* leduc_poker"):
            _CALLS[call]("leduc_poker", policy)
    with pytest.raises(ValueError, match=r"kuhn_poker.* leduc_poker"):
        _CALLS[call]("leduc_poker", openspiel_policy.TabularPolicy(kuhn.game))


def test_bots_of_another_game_are_rejected():
    bot = spiel_cr.load_bot("kuhn_poker", "resolving(iterations=5)", 1)
    with pytest.raises(ValueError, match="the bot was made for another game"):
        spiel_cr.best_response("leduc_poker", bot, 0)


def test_checkpoints_of_games_with_other_payoffs_are_rejected(tmp_path):
    """Games that differ only in payoffs share policies, but not checkpoints."""
    path = str(tmp_path / "c.npz")
    spiel_cr.solve(WIN_LOSS, "cfr+", 5, checkpoint=path)
    with pytest.raises(ValueError, match="c.npz"):
        spiel_cr.solve(DIFFERENCE, "cfr+", 10, checkpoint=path)


def test_unregistered_games_with_equal_strings_keep_their_payoffs():
    """A policy of one game is evaluated with the payoffs of the other game."""

    def matching(payoff):
        text = f"""EFG 2 R "x" {{ "a" "b" }}
p "" 1 1 "" {{ "l" "r" }} 0
p "" 2 1 "" {{ "l" "r" }} 0
t "" 1 "" {{ {payoff} -{payoff} }}
t "" 2 "" {{ -1 1 }}
p "" 2 1 "" {{ "l" "r" }} 0
t "" 3 "" {{ -1 1 }}
t "" 4 "" {{ 1 -1 }}
"""
        return pyspiel.load_efg_game(text)

    one, other = matching(1), matching(7)
    assert str(one) == str(other)
    result = spiel_cr.solve(one, "lp")
    assert result.nash_conv() == pytest.approx(0, abs=1e-9)
    # Player 0 gains 4 - 2 by its first action against (1/2, 1/2); player 1 nothing.
    found = spiel_cr.nash_conv(other, result)
    expected = exploitability.nash_conv(other, result.average_policy())
    assert found == pytest.approx(expected, abs=1e-9) and found > 1


def test_policies_of_simultaneous_games_are_evaluated(win_loss):
    game = pyspiel.load_game(WIN_LOSS)
    turns = spiel_cr.load_game(WIN_LOSS)
    table = openspiel_policy.TabularPolicy(game)
    random = np.random.default_rng(0)
    for row, mask in zip(
        table.action_probability_array, table.legal_actions_mask, strict=True
    ):
        row[:] = mask * random.random(len(mask))
        row /= row.sum()

    class Turned(openspiel_policy.Policy):
        """The same table, read at states of the turn-based form."""

        def action_probabilities(self, state, player_id=None):
            player = state.current_player()
            text = state.information_state_string(player).partition("\n")[2]
            row = table.policy_for_key(text)
            return {action: row[action] for action in state.legal_actions()}

    expected = exploitability.nash_conv(turns, Turned(turns, [0, 1]))
    for given in (WIN_LOSS, game, turns):
        assert spiel_cr.nash_conv(given, table) == pytest.approx(expected, abs=1e-9)
    played = spiel_cr.play_matches(WIN_LOSS, [table, "uniform"], 10, seed=1)
    assert -1 <= played.mean <= 1
    uniform = pyspiel.UniformRandomPolicy(turns)
    assert spiel_cr.nash_conv(WIN_LOSS, uniform) == pytest.approx(
        spiel_cr.nash_conv(WIN_LOSS, "uniform"), abs=1e-12
    )


@pytest.mark.parametrize("algorithm", ["cfr+", "os-mccfr"])
def test_result_policies_accept_states_of_the_simultaneous_game(algorithm):
    game = pyspiel.load_game(WIN_LOSS)
    form = "auto" if algorithm == "cfr+" else "simulator"
    result = spiel_cr.solve(
        WIN_LOSS, algorithm, 50, options=spiel_cr.GameOptions(form=form)
    )
    policy = result.average_policy()
    # The value by OpenSpiel's tool on the simultaneous game and on the turn-based one.
    first = expected_game_score.policy_value(game.new_initial_state(), policy)
    turns = spiel_cr.load_game(WIN_LOSS).new_initial_state()
    second = expected_game_score.policy_value(turns, [policy] * 2)
    assert first == pytest.approx(second, abs=1e-9)
    state = game.new_initial_state()
    with pytest.raises(ValueError, match="both players move"):
        policy.action_probabilities(state)


def test_policies_of_one_player_can_be_locked():
    """Only the locked player's rows are needed."""
    game = pyspiel.load_game("kuhn_poker")
    table = openspiel_policy.TabularPolicy(game, [0])
    pair = (table, openspiel_policy.UniformRandomPolicy(game))
    by_table, by_pair = (
        spiel_cr.solve(game, "cfr+", 200, options=spiel_cr.GameOptions(locks=locks))
        for locks in ((table, None), {0: pair, 1: None})
    )
    assert by_table.game_value() == by_pair.game_value()
