"""Conversions between arrays and OpenSpiel policies."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.queries import query
from tests.support import games, reference
from tests.support.made_games import TERMINAL, MadeGame, Node
from tests.support.strategies import random_behaviours

every_small_game = pytest.mark.parametrize("case", games.SMALL, ids=lambda c: c.name)
PLAYERS = (0, 1)


@every_small_game
def test_tabular_policy_covers_every_infoset(case):
    game_tree = games.compiled(case.name)
    behaviours = random_behaviours(game_tree, 1)
    table = conversions.tabular_policy(game_tree, behaviours)
    own = openspiel_policy.TabularPolicy(game_tree.game)
    assert set(table.state_lookup) == set(own.state_lookup)
    np.testing.assert_array_equal(
        table.legal_actions_mask[[table.state_lookup[k] for k in own.state_lookup]],
        own.legal_actions_mask,
    )
    np.testing.assert_allclose(table.action_probability_array.sum(axis=1), 1)
    for p, infosets in enumerate(game_tree.infosets):
        first = infosets.decisions.first_sequence
        for i, key in enumerate(infosets.keys):
            at = slice(first[i], first[i] + infosets.decisions.num_actions[i])
            row = np.zeros(game_tree.game.num_distinct_actions())
            row[infosets.actions[at.start - 1 : at.stop - 1]] = behaviours[p][at]
            np.testing.assert_array_equal(table.policy_for_key(key), row)


@every_small_game
def test_conversion_to_openspiel_is_invertible(case):
    game_tree = games.compiled(case.name)
    behaviours = random_behaviours(game_tree, 2, zeros=True)
    table = conversions.tabular_policy(game_tree, behaviours)
    back = query(game_tree, table)
    for p in PLAYERS:
        np.testing.assert_array_equal(back[p], behaviours[p])


@every_small_game
def test_uniform_behaviour_equals_openspiels(case):
    game_tree = games.compiled(case.name)
    uniform = openspiel_policy.UniformRandomPolicy(game_tree.game)
    asked = query(game_tree, uniform)
    for p in PLAYERS:
        own = conversions.uniform_behaviour(game_tree.infosets[p].decisions)
        np.testing.assert_array_equal(asked[p], own)


@every_small_game
def test_reach_is_the_product_of_probabilities(case):
    game_tree = games.compiled(case.name)
    behaviours = random_behaviours(game_tree, 3, zeros=True)
    tree = reference.Tree(game_tree.game)
    table = conversions.tabular_policy(game_tree, behaviours)
    policy = reference.from_openspiel(tree, table)
    index_of = {node.path: i for i, node in enumerate(tree.nodes)}
    histories = game_tree.histories
    for p in PLAYERS:
        decisions = game_tree.infosets[p].decisions
        reach = conversions.reach_from_behaviour(decisions, behaviours[p])
        for h in range(len(histories)):
            at = index_of[tuple(histories.actions_to(h))]
            # Equal products, perhaps in another order.
            assert reach[histories.sequence[p, h]] == pytest.approx(
                tree.own_reach(at, p, policy), rel=1e-13
            )


@every_small_game
def test_behaviour_is_recovered_from_reach(case):
    """Behaviour is equal at reached infosets and uniform at the others."""
    game_tree = games.compiled(case.name)
    behaviours = random_behaviours(game_tree, 4, zeros=True)
    for p in PLAYERS:
        decisions = game_tree.infosets[p].decisions
        reach = conversions.reach_from_behaviour(decisions, behaviours[p])
        back = conversions.behaviour_from_reach(decisions, reach)
        owner = decisions.owner[1:]
        reached = reach[decisions.parent[owner]] > 0
        uniform = conversions.uniform_behaviour(decisions)
        expected = np.where(reached, behaviours[p][1:], uniform[1:])
        np.testing.assert_allclose(back[1:], expected, rtol=1e-12)
        assert back[0] == 1


def test_tiny_reach_is_not_treated_as_zero():
    """Reach near the smallest floats still gives the true proportions."""
    decisions = games.compiled("kuhn").infosets[0].decisions
    reach = np.zeros(decisions.num_sequences)
    reach[0] = 1
    first = decisions.first_sequence[0]
    reach[first : first + 2] = [3e-300, 1e-300]
    back = conversions.behaviour_from_reach(decisions, reach)
    np.testing.assert_allclose(back[first : first + 2], [0.75, 0.25], rtol=1e-12)


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        "python_ii_goofspiel(num_cards=3)",
        "battleship(board_width=2,board_height=2,ship_sizes=[1],"
        "ship_values=[1],num_shots=2)",
        "restricted_nash_response(game=kuhn_poker(),p=0.0)",
    ],
)
def test_states_of_a_table_are_created_lazily(game):
    """The rows equal those of OpenSpiel's table of the same states."""
    tree = spiel_cr.build_tree(game)
    uniform = [conversions.uniform_behaviour(i.decisions) for i in tree.infosets]
    table = conversions.tabular_policy(tree, uniform)
    assert "states" not in vars(table) and "state_in" not in vars(table)
    states = {
        table._state_key(state, state.current_player()): state for state in table.states
    }
    theirs = openspiel_policy.TabularPolicy(tree.game, states=states)
    assert table.state_lookup == theirs.state_lookup
    assert list(table.state_lookup) == list(theirs.state_lookup)
    assert table.states_per_player == theirs.states_per_player
    assert list(map(str, table.states)) == list(map(str, theirs.states))
    np.testing.assert_array_equal(table.legal_actions_mask, theirs.legal_actions_mask)
    assert (table.state_in is None) == (theirs.state_in is None)
    if theirs.state_in is not None:
        np.testing.assert_array_equal(table.state_in, theirs.state_in)
    copied = table.copy_with_noise(alpha=0.5)
    assert copied.states is table.states


def test_actions_that_a_policy_omits_have_probability_zero():
    class First(openspiel_policy.Policy):
        def action_probabilities(self, state, player_id=None):
            return {state.legal_actions()[0]: 1.0}

    game_tree = games.compiled("kuhn")
    policy = First(game_tree.game, list(PLAYERS))
    for p, behaviour in enumerate(query(game_tree, policy)):
        assert behaviour.sum() == 1 + len(game_tree.infosets[p])


def test_equal_information_states_of_both_players_are_rejected():
    def rules(path):
        if len(path) < 2:
            return Node(len(path), (0, 1), ("same", "same"))
        return Node(TERMINAL, utility=1.0)

    game_tree = tree_builder.build_tree(MadeGame(rules, "clash"))
    uniform = [conversions.uniform_behaviour(i.decisions) for i in game_tree.infosets]
    with pytest.raises(ValueError, match="both players.*'same'"):
        conversions.tabular_policy(game_tree, uniform)


@pytest.mark.parametrize(
    "game", ["go_fish(ranks=2,suits=2)", "checkers(rows=4,columns=4)"]
)
def test_a_game_without_decisions_is_solved(game):
    """Only chance acts, or the root is terminal; OpenSpiel's table has no states."""
    result = spiel_cr.solve(game, "lp")
    assert result.nash_conv() == 0
    policy = result.average_policy()
    assert policy.states == [] and len(policy.action_probability_array) == 0


@pytest.mark.parametrize("p", ["0.0", "1.0"])
def test_nash_conv_with_impossible_outcomes_equals_openspiels(p):
    """OpenSpiel's tools query states below such outcomes, which game trees omit."""
    game = pyspiel.load_game(f"restricted_nash_response(game=kuhn_poker(),p={p})")
    tree = spiel_cr.build_tree(game)
    assert tree.histories.dropped.tolist() == [0]
    assert (tree.histories.chance > 0).all()
    uniform = tuple(conversions.uniform_behaviour(i.decisions) for i in tree.infosets)
    reach = tuple(
        conversions.reach_from_behaviour(infosets.decisions, played)
        for infosets, played in zip(tree.infosets, uniform, strict=True)
    )
    ours = best_responses.nash_conv(tree.sequence_form, reach)
    policy = conversions.tabular_policy(tree, uniform)
    table = openspiel_policy.python_policy_to_pyspiel_policy(policy)
    assert np.isclose(ours, pyspiel.nash_conv(game, table), atol=1e-12)
    assert np.isclose(ours, exploitability.nash_conv(game, policy), atol=1e-12)
