"""Exact search by update equivalence, compared with recursion over OpenSpiel states."""

import math
from collections import defaultdict

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.games.phantom.game import phantom_game
from spiel_cr.policies.best_responses import behaviour_value, value_bounds
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.resolving.update_equivalence import damping, mirror_step
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS
from tests.support.exact_search import search_everywhere
from tests.support.own_blueprint import Gains

HEX = "dark_hex(num_rows=2,num_cols=2)"


def _random_behaviour(laid, seed):
    random = np.random.default_rng(seed)
    found = []
    for decisions in laid.sequence_form.decisions:
        odds = random.random(decisions.num_sequences - 1)
        owner = decisions.owner[1:]
        odds /= np.bincount(owner, odds)[owner]
        found.append(np.append(1.0, odds))
    return found[0], found[1]


def _policy(laid, behaviour):
    make = tabular_policy if hasattr(laid, "infosets") else FormPolicy
    return make(laid, behaviour)


def _key(state, told):
    """Return the acting player's infoset; `told` is None except in phantom games."""
    player = state.current_player()
    known = state.information_state_string(player) if told is None else told[player]
    return player, known


def _after(state, action, told):
    """Return `told` after an action, with whether the player moves again."""
    if told is None or state.is_chance_node():
        return told
    player, child = state.current_player(), state.child(action)
    after = list(told)
    after[player] = (*told[player], action, child.current_player() == player)
    return tuple(after)


def _by_recursion(game, policy, eta, told):
    """Return the searched policy at every infoset, computed by recursion."""
    worth, mass = defaultdict(lambda: defaultdict(float)), defaultdict(float)
    uniform = defaultdict(float)
    blueprint, scale = {}, max(-game.min_utility(), game.max_utility())

    def walk(state, reach, even, told):
        """Return player 0's value.

        `reach` belongs to player 0, player 1 and chance; `even` belongs to players that
        play uniformly.
        """
        if state.is_terminal():
            return state.returns()[0]
        if state.is_chance_node():
            return sum(
                p * walk(state.child(a), (reach[0], reach[1], reach[2] * p), even, told)
                for a, p in state.chance_outcomes()
            )
        player = state.current_player()
        odds = policy.action_probabilities(state, player)
        key = _key(state, told)
        blueprint[key] = odds
        others = reach[2] * reach[1 - player]
        mass[key] += others
        uniform[key] += reach[2] * even[1 - player]
        total = 0.0
        for action, p in odds.items():
            after = [*reach]
            after[player] *= p
            same = [*even]
            same[player] /= len(odds)
            told_there = _after(state, action, told)
            value = walk(state.child(action), tuple(after), tuple(same), told_there)
            worth[key][action] += others * value * (1 - 2 * player) / scale
            total += p * value
        return total

    walk(game.new_initial_state(), (1.0, 1.0, 1.0), (1.0, 1.0), told)
    searched = {}
    for key, odds in blueprint.items():
        length = eta * min(1, mass[key] / uniform[key])
        weights = {
            a: p * math.exp(length * worth[key][a] / mass[key]) for a, p in odds.items()
        }
        total = sum(weights.values())
        searched[key] = {a: weight / total for a, weight in weights.items()}
    return searched


def _decisions(state, told):
    """Yield all decision nodes of a game."""
    if state.is_terminal():
        return
    if not state.is_chance_node():
        yield state, told
    for action in state.legal_actions():
        yield from _decisions(state.child(action), _after(state, action, told))


@pytest.mark.parametrize(
    ("lay_out", "name", "eta"),
    [
        (spiel_cr.build_tree, "kuhn_poker", 1.0),
        (spiel_cr.build_tree, "leduc_poker", 3.0),
        (spiel_cr.build_tree, HEX, 0.3),
        (phantom_game, HEX, 1.0),
        (phantom_game, HEX, 10.0),
    ],
)
def test_search_everywhere_equals_recursion_at_every_decision(lay_out, name, eta):
    laid = lay_out(name)
    behaviour = _random_behaviour(laid, seed=3)
    told = ((), ()) if lay_out is phantom_game else None
    expected = _by_recursion(laid.game, _policy(laid, behaviour), eta, told)
    searched = search_everywhere(laid, behaviour, eta=eta)
    policy = _policy(laid, searched)
    met = set()
    for state, told_there in _decisions(laid.game.new_initial_state(), told):
        key = _key(state, told_there)
        if key in met:
            continue
        met.add(key)
        got = policy.action_probabilities(state, key[0])
        for action, probability in expected[key].items():
            assert got[action] == pytest.approx(probability, abs=1e-9)
    assert met == set(expected)


def test_unreachable_infosets_keep_the_blueprint():
    tree = spiel_cr.build_tree("kuhn_poker")
    decisions = tree.sequence_form.decisions
    behaviour = _random_behaviour(tree, seed=1)
    for own, other in ((0, 1), (1, 0)):
        # The other player always takes its first action: some infosets are unreached.
        pure = np.zeros(decisions[other].num_sequences)
        pure[0] = pure[decisions[other].first_sequence] = 1.0
        both = (behaviour[own], pure) if own == 0 else (pure, behaviour[own])
        searched = search_everywhere(tree, both, eta=5.0)
        assert np.isfinite(searched[own]).all()
        np.testing.assert_array_equal(searched[other], pure)
        unmet = np.isclose(searched[own], behaviour[own], atol=1e-15)
        assert unmet[1:].any() and not unmet[1:].all()


@pytest.mark.parametrize(
    ("name", "iterations", "most"),
    [
        ("python_ii_goofspiel(num_cards=4)", 3, 0.9),
        ("python_ii_goofspiel(num_cards=4)", 50, 1.05),
        ("leduc_poker", 200, 1.01),
        ("liars_dice(numdice=1,dice_sides=3)", 50, 1.0),
    ],
)
def test_search_improves_poor_blueprints_and_preserves_good_ones(
    name, iterations, most
):
    """Without damping, the second row would be 19 times as exploitable."""
    tree = spiel_cr.build_tree(name)
    solver = cfr.make_solver(tree.sequence_form, config=PRESETS["pcfr+"])
    solver.run(iterations)
    blueprint = solver.average_behaviour(0), solver.average_behaviour(1)
    gaps = []
    for behaviours in (blueprint, search_everywhere(tree, blueprint)):
        low, high = value_bounds(tree.sequence_form, behaviours)
        gaps.append(high - low)
    assert gaps[1] < most * gaps[0]


@pytest.mark.parametrize("player", [0, 1])
def test_gains_sum_to_the_difference_of_values(player):
    worlds = phantom_game(HEX)
    blueprint = FormPolicy(worlds, _random_behaviour(worlds, seed=4))
    searched = list(blueprint.behaviour)
    searched[player] = _random_behaviour(worlds, seed=5)[player]
    both = FormPolicy(worlds, searched)
    gains = Gains(blueprint, player)

    def expected(state):
        """Return the expected gains and the expected utility from here on."""
        if state.is_terminal():
            return np.array([0.0, state.returns()[player]])
        odds = both.action_probabilities(state)
        mean = sum(odds[action] * expected(state.child(action)) for action in odds)
        own = state.current_player() == player
        return mean + [gains.of(state, odds) if own else 0.0, 0.0]

    gained, paid = expected(worlds.game.new_initial_state())
    before = behaviour_value(worlds.sequence_form, blueprint.behaviour)
    assert gained == pytest.approx(paid - (1 - 2 * player) * before, abs=1e-12)
    assert abs(gained) > 0.01


def test_damping_is_a_ratio_of_probabilities():
    assert damping(math.log(0.02), math.log(0.08)) == pytest.approx(0.25)
    assert damping(math.log(0.3), math.log(0.1)) == 1
    assert damping(-5000.0, -4998.0) == pytest.approx(math.exp(-2))
    assert damping(-9.0, -math.inf) == 1
    assert damping(-math.inf, -math.inf) == damping(-math.inf, -3.0) == 0


def test_mirror_step_reweights_actions_by_their_values():
    owner = np.array([0, 0, 1, 1, 1])
    blueprint = np.array([0.25, 0.75, 0.0, 0.4, 0.6])
    values = np.array([1.0, -1.0, 1.0, 0.5, 0.2])
    np.testing.assert_allclose(
        mirror_step(blueprint, values, owner, eta=0.0), blueprint, atol=1e-15
    )
    moved = mirror_step(blueprint, values, owner, eta=2.0)
    assert moved[0] / moved[1] == pytest.approx(0.25 / 0.75 * math.exp(4))
    assert moved[2] == 0
    assert moved[3] / moved[4] == pytest.approx(0.4 / 0.6 * math.exp(0.6))
    np.testing.assert_allclose([moved[:2].sum(), moved[2:].sum()], 1)


def test_values_are_divided_by_the_largest_utility():
    assert pyspiel.load_game("leduc_poker").max_utility() == 13
    tree = spiel_cr.build_tree("leduc_poker")
    behaviour = _random_behaviour(tree, seed=0)
    searched = search_everywhere(tree, behaviour, eta=13.0)
    # A step of 13 in scaled values is a step of 1 in chips; values are at most 13.
    assert np.abs(np.log(searched[0] / behaviour[0])).max() < 2 * 13
