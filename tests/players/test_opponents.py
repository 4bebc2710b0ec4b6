"""Opponents: fixed policies, bots without probabilities, and opponents by name."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import expected_game_score

from spiel_cr import build_tree, solve
from spiel_cr.games.opening.opened import load_game
from spiel_cr.players.fixed_policies import FIXED_POLICIES, FixedPolicy
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.resolving.continual import resolve
from spiel_cr.solvers.algorithms import find
from tests.support import games
from tests.support.learner import Learner
from tests.support.named_opponents import load_opponent
from tests.support.scripted import Scripted, drawing
from tests.support.states import after

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=2 1,firstPlayer=2 1,"
    "numSuits=2,numRanks=4,numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,"
    "maxRaises=2 2,bettingAbstraction=fcpa)"
)


def nash_conv(game, opponent):
    """Compute NashConv with OpenSpiel's exact best response."""
    game = pyspiel.load_game(game) if isinstance(game, str) else game
    table = opponent.to_tabular()
    return pyspiel.nash_conv(game, policy_lib.python_policy_to_pyspiel_policy(table))


def probabilities(table):
    """Return the rows of a tabular policy by information state."""
    return {
        key: table.action_probability_array[row]
        for key, row in table.state_lookup.items()
    }


def assert_same(table, other, tolerance):
    first, second = probabilities(table), probabilities(other)
    assert first.keys() == second.keys()
    for key, row in first.items():
        assert np.abs(row - second[key]).max() <= tolerance, key


# By hand: against always fold, a raise wins the ante of 1 for either player, because in
# OpenSpiel's leduc_poker a player cannot fold before a bet. Against a player of Kuhn
# poker that calls (or bets) with every card, a best response bets or calls with the
# high card and checks or folds the low one: (1 * 2 + 0 + 1 * -1) / 3 = 1/3 for each
# player.
@pytest.mark.parametrize(
    ("game", "kind", "expected"),
    [
        ("kuhn_poker", "always_fold", 2),
        ("kuhn_poker", "always_call", 2 / 3),
        ("kuhn_poker", "always_raise", 2 / 3),
        ("leduc_poker", "always_fold", 2),
        ("python_leduc_poker", "always_fold", 2),
    ],
)
def test_nash_conv_of_fixed_policies_by_hand(game, kind, expected):
    loaded = load_game(game)
    found = nash_conv(loaded, FixedPolicy(loaded, kind))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("game", "path", "expected"),
    [
        # The policies are always_fold, always_call, always_raise and call_raise.
        ("kuhn_poker", (0, 1), ({0: 1}, {0: 1}, {1: 1}, {0: 0.5, 1: 0.5})),
        ("kuhn_poker", (0, 1, 1), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        ("kuhn_poker", (0, 1, 0, 1), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        # No bet, so no fold; one raise; two raises, so no third one.
        ("leduc_poker", (0, 2), ({1: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        ("leduc_poker", (0, 2, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        ("leduc_poker", (0, 2, 2, 2), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        # In this game a fold is always legal.
        ("python_leduc_poker", (0, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        (HOLDEM, (0, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        (HOLDEM, (0, 2, 1), ({1: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
    ],
)
def test_actions_of_fixed_policies(game, path, expected):
    state = after(game, *path)
    for kind, probabilities in zip(FIXED_POLICIES, expected, strict=True):
        given = FixedPolicy(load_game(game), kind).action_probabilities(state)
        assert sorted(given) == sorted(state.legal_actions())
        assert {a: p for a, p in given.items() if p} == probabilities, kind


def test_fixed_policies_reject_games_other_than_poker():
    for game in ("liars_dice", "tic_tac_toe", games.BY_NAME["goofspiel4"].string):
        with pytest.raises(ValueError, match="not a game of poker"):
            FixedPolicy(load_game(game), "always_fold")
    with pytest.raises(ValueError, match="must be one of always_fold"):
        FixedPolicy(load_game("kuhn_poker"), "maniac")


def test_early_cfr_plus_policy_equals_openspiels():
    tree = games.compiled("kuhn")
    given = load_opponent("cfr+(iterations=10)", tree)
    solver = pyspiel.CFRPlusSolver(tree.game)
    for _ in range(10):
        solver.evaluate_and_update_policy()
    expected = pyspiel.nash_conv(tree.game, solver.average_policy())
    assert nash_conv(tree.game, given) == pytest.approx(expected, abs=1e-9)


def test_lp_opponent_is_an_equilibrium():
    tree = games.compiled("kuhn")
    given = load_opponent("lp", tree)
    assert nash_conv(tree.game, given) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("cfr+(iterations=4)", "cfr+"),
        ("dcfr(alpha=1.5,beta=0,iterations=4)", "dcfr(alpha=1.5,beta=0)"),
        ("pcfr+(iterations=4,alternating=false)", "pcfr+(alternating=false)"),
        ("evr-mccfr(batch=16,iterations=4)", "evr-mccfr(batch=16)"),
    ],
)
def test_parameters_of_algorithms_are_passed_on(text, algorithm, monkeypatch):
    asked = []

    class Solution:
        def average_policy(self):
            return "the policy"

    def solve(game, name, goal, *, seed):
        asked.append((str(game.game), find(name).config, goal.iterations, seed))
        return Solution()

    monkeypatch.setattr("spiel_cr.players.player_strings.solve", solve)
    assert load_opponent(text, "kuhn_poker", seed=5) == "the policy"
    assert asked == [("kuhn_poker()", find(algorithm).config, 4, 5)]


def test_loads_an_opponent_from_a_policy_file(tmp_path):
    tree = games.compiled("kuhn")
    solution = solve(tree, "cfr+", 5)
    solution.save(tmp_path / "kuhn.npz")
    given = load_opponent(str(tmp_path / "kuhn.npz"), tree)
    assert_same(given, solution.average_policy(), 0)


def test_bots_are_queried_once_at_each_information_state():
    tree = games.compiled("kuhn")
    given = load_opponent("resolving(iterations=5)", tree)
    asked = given.to_tabular()
    assert_same(asked, resolve(tree, "auto", 5).average_policy(), 1e-12)
    # Each information state of Kuhn poker is queried once, however often it occurs.
    assert given.queries == 12
    given.to_tabular()
    assert given.queries == 12


def test_uniform_is_openspiels_uniform_policy():
    given = load_opponent("uniform", "kuhn_poker")
    assert type(given) is policy_lib.UniformRandomPolicy


class SilentBot(Scripted):
    """A bot that draws actions from a policy and does not provide its probabilities."""

    def restart_at(self, state):
        self.at = str(state)

    def step(self, state):
        assert self.at == str(state), "every query begins with restart_at"
        return super().step(state)


def test_policies_of_bots_without_probabilities_are_estimated():
    game = pyspiel.load_game("kuhn_poker")
    truth = policy_lib.TabularPolicy(game)
    truth.action_probability_array[:, 0] = np.linspace(0, 1, 12)
    truth.action_probability_array[:, 1] = np.linspace(1, 0, 12)
    seeds = []

    def make(player, seed):
        seeds.append(seed)
        return SilentBot(drawing(truth, seed))

    given = BotPolicy(game, make, queries=400, seed=3)
    found = given.to_tabular()
    assert given.queries == 12 * 400 and len(set(seeds)) == 2
    # Five standard errors at most: 0.5 / 20 * 5; twelve such, a false alarm in 1e5.
    assert_same(found, truth, 0.125)
    assert np.allclose(found.action_probability_array.sum(axis=1), 1)
    again = BotPolicy(game, make, queries=400, seed=3)
    assert_same(found, again.to_tabular(), 0)


def test_bots_with_illegal_actions_are_rejected():
    given = BotPolicy(
        load_game("kuhn_poker"), lambda player, seed: SilentBot(lambda state: 7)
    )
    with pytest.raises(ValueError, match="chose the illegal action 7"):
        given.action_probabilities(after("kuhn_poker", 0, 1))


def test_openspiels_bots_can_be_opponents():
    given = BotPolicy(load_game("leduc_poker"), pyspiel.make_uniform_random_bot)
    game = pyspiel.load_game("leduc_poker")
    uniform = policy_lib.UniformRandomPolicy(game)
    state = after("leduc_poker", 0, 2, 2)
    assert given.action_probabilities(state) == pytest.approx(
        uniform.action_probabilities(state)
    )


def test_value_of_fixed_policies_against_each_other():
    """Always fold loses its ante as soon as it has to pay."""
    game = pyspiel.load_game("leduc_poker")
    folds, raises = (FixedPolicy(game, k) for k in ("always_fold", "always_raise"))
    state = game.new_initial_state()
    assert expected_game_score.policy_value(state, [folds, raises])[0] == pytest.approx(
        -1
    )


def test_learning_bots_are_queried_as_in_their_first_match():
    """Before a query, the bot plays only decisions on its path, in any order."""
    tree = build_tree("kuhn_poker")
    estimates = []
    for order in (1, -1):
        found = BotPolicy(tree.game, lambda player, _: Learner(player))
        states = [tree.state_at(h) for h in tree.infosets[0].history[::order]]
        estimates.append([found.action_probabilities(s, 0)[0] for s in states][::order])
    decisions = [1 + (len(state.history()) > 2) for state in states[::-1]]
    assert set(decisions) == {1, 2}
    assert estimates[0] == estimates[1] == [1 / (1 + n) for n in decisions]
