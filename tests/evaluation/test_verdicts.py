"""Top-level functions that evaluate players, and the text of their results."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.algorithms.best_response import BestResponsePolicy
from open_spiel.python.algorithms.expected_game_score import policy_value
from open_spiel.python.policy import UniformRandomPolicy

import game_defs  # noqa: F401  registers games
import spiel_cr
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.result import ResponseValue, from_independent
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.players.bots import PolicyBot, uniform_bot
from tests.support import games
from tests.support.solving import solve_with


@pytest.fixture(scope="module")
def solved():
    return spiel_cr.solve(games.compiled("kuhn"), "cfr+", 20)


def test_nash_conv_equals_openspiels(solved):
    """The policy is given as a result, an OpenSpiel policy or a string."""
    game = pyspiel.load_game("kuhn_poker")
    expected = exploitability.nash_conv(game, solved.average_policy())
    assert spiel_cr.nash_conv(game, solved) == pytest.approx(expected, abs=1e-12)
    found = spiel_cr.nash_conv("kuhn_poker", solved.average_policy())
    assert found == pytest.approx(expected, abs=1e-12)
    # 11/12 by hand: 1/2 for player 0, 5/12 for player 1.
    assert spiel_cr.nash_conv(game, "uniform") == pytest.approx(11 / 12, abs=1e-12)


@pytest.mark.slow
def test_nash_conv_of_a_public_tree_policy():
    game = "python_leduc_poker"
    result = solve_with(game, "cfr+", 3, form="public-tree", dtype="float32")
    found = spiel_cr.nash_conv(game, result.average_policy())
    assert found == pytest.approx(result.nash_conv(), rel=1e-5)


@pytest.mark.parametrize("player", [0, 1])
def test_best_response_equals_openspiels(solved, player):
    game, policy = pyspiel.load_game("kuhn_poker"), solved.average_policy()
    root = game.new_initial_state()
    expected = BestResponsePolicy(game, player, policy).value(root)
    found = spiel_cr.best_response(game, policy, player)
    assert found.is_exact and found.half_width == 0
    assert found.value == pytest.approx(expected, abs=1e-12)
    # The rows of the other player are those of the policy.
    mine = found.responses[0].to_dict()
    theirs = policy.to_dict()
    for infoset, keys in enumerate(games.compiled("kuhn").infosets):
        if infoset != player:
            assert all(
                dict(mine[k]) == pytest.approx(dict(theirs[k])) for k in keys.keys
            )
    assert spiel_cr.nash_conv(game, found.responses[0]) > 0


def make_bot(player, seed):
    return pyspiel.make_uniform_random_bot(player, seed)


def test_best_response_accepts_bots_functions_and_strings():
    """The opponent is a bot of one player, a function that makes bots, or a string."""
    expected = spiel_cr.best_response("kuhn_poker", "uniform", 1).value
    bot = uniform_bot("kuhn_poker", 0)
    for given in (bot, make_bot, "solved(iterations=1)"):
        found = spiel_cr.best_response("kuhn_poker", given, 1)
        # CFR+ has the uniform strategy for its first average.
        assert found.value == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="a PolicyBot for seat 0 was given for seat 1"):
        spiel_cr.best_response("kuhn_poker", bot, 0)
    with pytest.raises(ValueError, match="player=2: not a player; give the responder"):
        spiel_cr.best_response("kuhn_poker", bot, 2)


def of_three(first, second, third):
    return None


@pytest.mark.parametrize(
    "function",
    [
        lambda player: spiel_cr.nash_conv("kuhn_poker", player),
        lambda player: spiel_cr.differences("kuhn_poker", "uniform", player),
        lambda player: spiel_cr.evaluate("kuhn_poker", player),
        lambda player: spiel_cr.play_matches("kuhn_poker", [player, "uniform"], 2),
    ],
)
def test_functions_of_three_arguments_are_rejected_as_players(function):
    wanted = r"of_three.*: missing .*; give a function of \(player, seed\) that makes"
    with pytest.raises(ValueError, match=wanted):
        function(of_three)


@pytest.mark.slow
def test_searched_response_is_nearly_optimal():
    config = spiel_cr.ResponseConfig(search=SearchConfig(simulations=2000))
    found = spiel_cr.best_response("kuhn_poker", "uniform", 0, config)
    best = spiel_cr.best_response("kuhn_poker", "uniform", 0)
    assert found.is_exact and best.exact_value == best.value
    assert 0.9 * best.value < found.value <= best.value + 1e-12


def test_evaluate_accepts_results_and_rejects_bots_of_one_player(solved):
    found = spiel_cr.evaluate(games.compiled("kuhn"), solved)
    assert found.nash_conv == pytest.approx(solved.nash_conv(), abs=1e-9)
    assert found.statistics["moves"] == found.statistics["infosets"] == 12
    with pytest.raises(ValueError, match="a PolicyBot plays for one player"):
        spiel_cr.evaluate("kuhn_poker", uniform_bot("kuhn_poker", 0))
    with pytest.raises(ValueError, match="policy=3 is not a player; give a string"):
        spiel_cr.evaluate("kuhn_poker", 3)


@pytest.mark.parametrize("function", ["nash_conv", "evaluate", "best_response"])
def test_exchanged_arguments_are_rejected(solved, function):
    more = [0] if function == "best_response" else []
    for policy in ("uniform", solved):
        for game in ("kuhn_poker", games.compiled("kuhn")):
            with pytest.raises(
                ValueError, match=rf"game comes first: {function}\(game, "
            ):
                getattr(spiel_cr, function)(policy, game, *more)


def test_matches_swap_seats_and_are_reproducible(solved):
    players = [solved, make_bot]
    found = spiel_cr.play_matches("kuhn_poker", players, 399, seed=2)
    assert found.returns.shape == (200, 2)
    np.testing.assert_array_equal(
        found.returns, spiel_cr.play_matches("kuhn_poker", players, 400, seed=2).returns
    )
    game = pyspiel.load_game("kuhn_poker")
    mine, uniform = solved.average_policy(), UniformRandomPolicy(game)
    seats = [(mine, uniform), (uniform, mine)]
    exact = [policy_value(game.new_initial_state(), both) for both in seats]
    expected = (exact[0][0] + exact[1][1]) / 2
    # Two and a half half widths, five standard errors: false alarm 1e-6.
    assert abs(found.mean - expected) < 2.5 * found.half_width
    with pytest.raises(ValueError, match="players: 1 given; give two"):
        spiel_cr.play_matches("kuhn_poker", "uniform")
    bots = [solved, lambda player, seed: uniform_bot("kuhn_poker", 0)]
    with pytest.raises(ValueError, match=r"players\[1\]: a PolicyBot for seat 0 was"):
        spiel_cr.play_matches("kuhn_poker", bots, 2)


def test_both_matches_of_a_deal_have_the_same_cards():
    class Recorder(UniformRandomPolicy):
        """Records the cards whenever player 0 makes the first move."""

        def action_probabilities(self, state, player_id=None):
            if len(state.history()) == 2:
                deals.append(tuple(state.history()))
            return super().action_probabilities(state, player_id)

    deals = []
    players = [Recorder(pyspiel.load_game("kuhn_poker")) for _ in range(2)]
    bots = [lambda player, seed, p=p: PolicyBot(player, p, seed=seed) for p in players]
    spiel_cr.play_matches("kuhn_poker", bots, 80)
    # All six deals occur in 40 draws, but for a chance of 0.4%; the seed decides.
    assert deals[-80::2] == deals[-79::2] and len(set(deals[-80:])) == 6


def test_best_response_rejects_invalid_player_indices():
    for player in (True, False, 2, -1):
        with pytest.raises(ValueError, match=f"player={player}: not a player"):
            spiel_cr.best_response("kuhn_poker", "uniform", player)


def test_the_share_of_the_gain_does_not_depend_on_the_constant_sum():
    value = ResponseValue(
        *(0, "search", 2.0), half_width=0.25, matches=9, exact_value=3.0, on_policy=1.0
    )
    one, other = value, value._replace(player=1)
    for players in ((one,), (one, other)):
        shifted = [each.with_offset(0.5) for each in players]
        share = from_independent(players).share()
        assert share is not None and share[0] == pytest.approx(0.5)
        assert from_independent(shifted).share() == pytest.approx(share)


# About three lines of a terminal.
MOST_LETTERS = 300


def assert_short(results):
    for one in results:
        text = repr(one)
        assert text.startswith(type(one).__name__), text
        assert len(text) <= MOST_LETTERS, text
        assert " at 0x" not in text and "\n" not in text, text


def test_results_print_in_a_few_lines(solved):
    tree = games.compiled("kuhn")
    found = [solved, tree, tree.sequence_form, tree.histories, tree.infosets[0]]
    found += [
        tree.sequence_form.decisions[0],
        spiel_cr.best_response(tree, "uniform", 0),
    ]
    found += [spiel_cr.evaluate(tree, "uniform")]
    found += [spiel_cr.play_matches(tree, ["uniform", "uniform"], 2)]
    assert_short(found)
    assert repr(solved).startswith(
        "Result(game=kuhn_poker(), algorithm='cfr+', iterations=20, "
    )


@pytest.mark.slow
def test_other_results_print_in_a_few_lines():
    assert_short(
        [
            solve_with("python_leduc_poker", "lp", form="public-tree"),
            public_tree_game("python_leduc_poker"),
            solve_with("kuhn_poker", "os-mccfr(batch=4)", 1, form="simulator"),
            solve_with("kuhn_poker", "sd-cfr(hidden=4)", 1, form="simulator"),
        ]
    )


def test_public_names_exist_and_are_unique():
    for name in spiel_cr.__all__:
        assert getattr(spiel_cr, name) is not None
    assert sorted(set(spiel_cr.__all__)) == sorted(spiel_cr.__all__)


def test_nash_conv_accepts_results_of_simulated_games():
    options = spiel_cr.GameOptions("simulator")
    result = spiel_cr.solve("kuhn_poker", "os-mccfr(batch=64)", 20, options=options)
    found = spiel_cr.nash_conv("kuhn_poker", result)
    assert found == spiel_cr.nash_conv("kuhn_poker", result.average_policy())


def test_repr_of_an_evaluation_states_value_method_and_unit():
    """The value is that of both players or of one, and it is exact or estimated."""
    both = spiel_cr.exploit("kuhn_poker", "uniform", seconds=5)
    assert repr(both) == (
        "Evaluation(NashConv of uniform: 0.916667 (exact), in the payoffs of "
        "kuhn_poker(); player 0: 0.5 (exact) by 'exact'; player 1: 0.416667 (exact) by "
        "'exact')"
    )
    one = spiel_cr.best_response("kuhn_poker", "uniform", 0)
    assert repr(one) == (
        "Evaluation(best-response value by 'exact' for player 0 of uniform: 0.5 "
        "(exact), in the payoffs of kuhn_poker())"
    )
    sampled = ResponseValue(1, "lbr", 2.0, half_width=0.25, matches=9)
    assert repr(sampled) == (
        "ResponseValue(player 1: 2 ± 0.25 (95% interval), at least 1.75 by 'lbr')"
    )
    other = sampled._replace(player=0, value=0.0, half_width=0.0, matches=0)
    text = repr(from_independent([other, sampled]))
    assert text.startswith("Evaluation(lower bound of NashConv: 2 ± 0.25 (95%")
