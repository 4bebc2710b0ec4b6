"""Opponents: chumps, bots known by their moves, and what strings name."""

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
    """By OpenSpiel's exact best response."""
    game = pyspiel.load_game(game) if isinstance(game, str) else game
    table = opponent.to_tabular()
    return pyspiel.nash_conv(game, policy_lib.python_policy_to_pyspiel_policy(table))


def probabilities(table):
    """Of a tabular policy, by information state."""
    return {
        key: table.action_probability_array[row]
        for key, row in table.state_lookup.items()
    }


def assert_same(table, other, tolerance):
    first, second = probabilities(table), probabilities(other)
    assert first.keys() == second.keys()
    for key, row in first.items():
        assert np.abs(row - second[key]).max() <= tolerance, key


# By hand: against always fold a raise wins the ante, 1, from either seat, and in
# bundled leduc_poker nobody folds unless there is a bet. Against a player of Kuhn poker
# who calls (or bets) whatever it holds: bet or call with the high card, +2 where -1 and
# 1 would be, check and fold the low one: (1 * 2 + 0 + 1 * -1) / 3 = 1/3 from each seat.
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
def test_chumps_lose_what_they_must(game, kind, expected):
    loaded = load_game(game)
    found = nash_conv(loaded, FixedPolicy(loaded, kind))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("game", "path", "expected"),
    [
        # (always_fold, always_call, always_raise, call_raise) where both can be chosen.
        ("kuhn_poker", (0, 1), ({0: 1}, {0: 1}, {1: 1}, {0: 0.5, 1: 0.5})),
        ("kuhn_poker", (0, 1, 1), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        ("kuhn_poker", (0, 1, 0, 1), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        # No bet yet: nothing to fold. Then a raise; then two raises, and no third.
        ("leduc_poker", (0, 2), ({1: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        ("leduc_poker", (0, 2, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        ("leduc_poker", (0, 2, 2, 2), ({0: 1}, {1: 1}, {1: 1}, {1: 1})),
        # Here a fold is always legal.
        ("python_leduc_poker", (0, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        (HOLDEM, (0, 2), ({0: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
        (HOLDEM, (0, 2, 1), ({1: 1}, {1: 1}, {2: 1}, {1: 0.5, 2: 0.5})),
    ],
)
def test_what_chumps_do(game, path, expected):
    state = after(game, *path)
    for kind, probabilities in zip(FIXED_POLICIES, expected, strict=True):
        given = FixedPolicy(load_game(game), kind).action_probabilities(state)
        assert sorted(given) == sorted(state.legal_actions())
        assert {a: p for a, p in given.items() if p} == probabilities, kind


def test_chumps_need_poker():
    for game in ("liars_dice", "tic_tac_toe", games.BY_NAME["goofspiel4"].string):
        with pytest.raises(ValueError, match="not a game of poker"):
            FixedPolicy(load_game(game), "always_fold")
    with pytest.raises(ValueError, match="must be one of always_fold"):
        FixedPolicy(load_game("kuhn_poker"), "maniac")


def test_an_algorithm_stopped_early():
    tree = games.compiled("kuhn")
    given = load_opponent("cfr+(iterations=10)", tree)
    solver = pyspiel.CFRPlusSolver(tree.game)
    for _ in range(10):
        solver.evaluate_and_update_policy()
    expected = pyspiel.nash_conv(tree.game, solver.average_policy())
    assert nash_conv(tree.game, given) == pytest.approx(expected, abs=1e-9)


def test_the_exact_algorithm():
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


def test_a_file(tmp_path):
    tree = games.compiled("kuhn")
    solution = solve(tree, "cfr+", 5)
    solution.save(tmp_path / "kuhn.npz")
    given = load_opponent(str(tmp_path / "kuhn.npz"), tree)
    assert_same(given, solution.average_policy(), 0)


def test_a_bot_is_asked_at_each_information_state():
    tree = games.compiled("kuhn")
    given = load_opponent("resolving(iterations=5)", tree)
    asked = given.to_tabular()
    assert_same(asked, resolve(tree, "auto", 5).average_policy(), 1e-12)
    # Once for each of Kuhn poker's information states, however often they come.
    assert given.queries == 12
    given.to_tabular()
    assert given.queries == 12


def test_uniform():
    given = load_opponent("uniform", "kuhn_poker")
    assert type(given) is policy_lib.UniformRandomPolicy


class SilentBot(Scripted):
    """Draws from a policy, and does not tell which."""

    def restart_at(self, state):
        self.at = str(state)

    def step(self, state):
        assert self.at == str(state), "every query begins with restart_at"
        return super().step(state)


def test_a_silent_bot_is_estimated():
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


def test_a_bot_that_cheats_at_the_rules():
    given = BotPolicy(
        load_game("kuhn_poker"), lambda player, seed: SilentBot(lambda state: 7)
    )
    with pytest.raises(ValueError, match="chose the illegal action 7"):
        given.action_probabilities(after("kuhn_poker", 0, 1))


def test_openspiels_own_bots_can_be_opponents():
    given = BotPolicy(load_game("leduc_poker"), pyspiel.make_uniform_random_bot)
    game = pyspiel.load_game("leduc_poker")
    uniform = policy_lib.UniformRandomPolicy(game)
    state = after("leduc_poker", 0, 2, 2)
    assert given.action_probabilities(state) == pytest.approx(
        uniform.action_probabilities(state)
    )


def test_chumps_meet_each_other():
    """Always fold gives up its ante wherever it has to pay; nobody else ever folds."""
    game = pyspiel.load_game("leduc_poker")
    folds, raises = (FixedPolicy(game, k) for k in ("always_fold", "always_raise"))
    state = game.new_initial_state()
    assert expected_game_score.policy_value(state, [folds, raises])[0] == pytest.approx(
        -1
    )


def test_a_bot_that_learns_is_asked_as_in_its_first_match():
    """At the decisions that lead there and nowhere else, in whatever order."""
    tree = build_tree("kuhn_poker")
    estimates = []
    for order in (1, -1):
        found = BotPolicy(tree.game, lambda player, _: Learner(player))
        states = [tree.state_at(h) for h in tree.infosets[0].history[::order]]
        estimates.append([found.action_probabilities(s, 0)[0] for s in states][::order])
    decisions = [1 + (len(state.history()) > 2) for state in states[::-1]]
    assert set(decisions) == {1, 2}
    assert estimates[0] == estimates[1] == [1 / (1 + n) for n in decisions]
