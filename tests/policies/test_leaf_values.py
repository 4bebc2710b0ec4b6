"""Leaf values: exact values, rollouts, user-defined functions, and strings."""

import functools

import numpy as np
import pytest
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.policies import conversions
from spiel_cr.policies.leaf_values import LeafValue, UniformValue, leaf_utilities
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.leaf_strings import parse_leaf
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import games, reference
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node
from tests.support.strategies import random_behaviours
from tests.support.tabled import Tabled

# The form, the number of seeds, and the step between evaluated histories.
FEW_ARRAYS, FEW_STATES = ("batched_rules", 400, 5), ("states", 60, 20)


@functools.cache
def walked(name):
    """Return the game by `reference.py`, and the node of each history."""
    brute = reference.Tree(games.compiled(name).game)
    return brute, reference.node_numbers(brute, games.compiled(name))


@pytest.mark.parametrize("name", ["kuhn", "leduc7"])
@pytest.mark.parametrize("uniform", [True, False])
def test_exact_values_of_a_policy(name, uniform):
    tree = games.compiled(name)
    brute, numbers = walked(name)
    behaviours = random_behaviours(tree, 2)
    policy = brute.uniform()
    if not uniform:
        policy = reference.from_behaviours(tree, behaviours)
    value = UniformValue() if uniform else Continuations(behaviours, 1)
    at = np.arange(len(tree.histories))[::17]
    expected = [reference.value_at(brute, policy, numbers[h]) for h in at]
    # Sums of hundreds of doubles of size 10.
    found = np.asarray(value(tree, at)).reshape(-1)
    np.testing.assert_allclose(found, expected, atol=1e-11)


def biased(path):
    """Rules of a game: chance draws 1 with probability 0.1, then an idle decision."""
    if not path:
        return Node(CHANCE, (0, 1), ("", ""), chance=(0.9, 0.1))
    if len(path) == 1:
        return Node(0, (0, 1), ("x", "x"))
    return Node(TERMINAL, utility=float(path[0]))


def in_form(form, game, paths):
    """Return batched rules, or None for states, and the histories at some paths."""
    if form == "batched_rules":
        brute = reference.Tree(game)
        number = {node.path: i for i, node in enumerate(brute.nodes)}
        return Tabled(brute), np.array([number[path] for path in paths])
    states = np.empty(len(paths), object)
    for k, path in enumerate(paths):
        states[k] = game.new_initial_state()
        for action in path:
            states[k].apply_action(action)
    return None, states


def uniform_moments(tree):
    """Return means of player 0's utility and its square under uniform play, [2, N]."""
    histories = tree.histories
    uniform = [conversions.uniform_behaviour(own.decisions) for own in tree.infosets]
    odds = conversions.move_probabilities(tree, uniform)
    moments = np.stack([histories.utility, histories.utility**2])
    for h in range(len(histories) - 1, 0, -1):
        moments[:, histories.parent[h]] += odds[h - 1] * moments[:, h]
    return moments


class Uniform(UniformRandomPolicy):
    """The uniform policy, which supports batched rules."""

    def array_probabilities(self, rules, states, player):
        legal = rules.legal_actions_mask(states)
        return legal / legal.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("form", "seeds", "step"), [FEW_ARRAYS, FEW_STATES])
def test_rollouts_of_a_history_are_unbiased_and_do_not_repeat(form, seeds, step):
    """Rollouts vary less than independent ones, and are exact if they cover all lines.

    Means over seeds are compared with exact ones: 5.5 standard errors for each of some
    dozen histories (false alarm: 1e-6).
    """
    tree = games.compiled("leduc7")
    at = np.flatnonzero(tree.histories.player == 0)[5::step]
    paths = [tuple(tree.histories.actions_to(int(h))) for h in at]
    held = in_form(form, tree.game, paths)
    exact, squares = uniform_moments(tree)[:, at]
    policy = Uniform(tree.game)

    def rollouts(n, seed):
        return Rollouts(policy, 1, n, seed)(*held)[:, 0]

    found = np.array([rollouts(2, seed) for seed in range(seeds)])
    error = found.std(axis=0) / np.sqrt(seeds)
    assert np.count_nonzero(error) > 3
    assert (np.abs(found.mean(axis=0) - exact) <= 5.5 * error + 1e-12).all()
    apart = np.sqrt((squares - exact**2) / 2)
    assert np.mean(found.std(axis=0)) < 0.9 * np.mean(apart)
    # There are never more than 300 lines, so all of them are played.
    np.testing.assert_allclose(rollouts(300, 0), exact, rtol=0, atol=1e-12)


def test_rollouts_do_not_modify_states():
    game = MadeGame(biased, "biased")
    _, states = in_form("states", game, [(), (0,)])
    before = [state.history() for state in states]
    Rollouts(UniformRandomPolicy(game), 2, 2, 0)(None, states)
    assert [state.history() for state in states] == before


def uniform_value(state):
    """Return player 0's expected utility under uniform play, by recursion."""
    if state.is_terminal():
        return state.returns()[0]
    odds = {a: 1 / len(state.legal_actions()) for a in state.legal_actions()}
    if state.is_chance_node():
        odds = dict(state.chance_outcomes())
    return sum(p * uniform_value(state.child(a)) for a, p in odds.items())


def test_functions_of_states_can_be_leaf_values():
    """Re-solving gives the same strategies as the equal built-in leaf value."""
    tree = games.compiled("kuhn")
    given = []

    def function(states):
        given.append(len(states))
        return [uniform_value(state) for state in states]

    mine = LeafValue(function)
    found = spiel_cr.resolve(tree, ResolvingConfig("cfr+", 20, depth=1, leaf=mine))
    expected = spiel_cr.resolve(
        tree, ResolvingConfig("cfr+", 20, depth=1, leaf="uniform")
    )
    for one, other in zip(found.average, expected.average, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert max(given) > 1
    assert repr(mine) == "LeafValue(function, sees='states')"


def test_leaf_values_from_strings():
    tree, at = games.compiled("kuhn"), np.arange(5)
    np.testing.assert_array_equal(
        parse_leaf("uniform")(tree, at), UniformValue()(tree, at)
    )
    mine = UniformValue()
    assert parse_leaf(mine) is mine


@pytest.mark.parametrize(
    "bad", [lambda t, h: np.full(len(h), np.nan), lambda t, h: np.zeros(1)]
)
def test_invalid_leaf_values_are_rejected(bad):
    with pytest.raises(ValueError, match="leaf: returned an array of shape"):
        leaf = LeafValue(bad, "histories")
        leaf_utilities(leaf, games.compiled("kuhn"), np.arange(5))
