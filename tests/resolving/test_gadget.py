"""Forests of gadget games: their values, and exact re-solving with them.

If linear programs solve every subgame exactly, the combined strategy is an equilibrium
(Burch, Johanson & Bowling 2014, theorem 1 with no error). Decomposition and gadgets are
thus tested without the error of an iterative solver.
"""

import numpy as np
import pytest
import scipy.optimize
from open_spiel.python.algorithms import exploitability

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import conversions
from spiel_cr.resolving import decomposition, gadget
from tests.resolving.test_decomposition import (
    PLAYERS,
    TOLERANCE,
    brute_of,
    cut,
    hidden_second_try,
    seen_and_forgotten,
)
from tests.support import games, made_games, reference
from tests.support.forests import forest_reach, forest_value
from tests.support.strategies import random_behaviours


def random_forest(name, player, layer, seed=5):
    """Build a forest from random reach probabilities and random opponent values."""
    d = cut(name, player)
    behaviours = random_behaviours(d.tree, seed)
    decisions = d.tree.infosets[player].decisions
    reach = conversions.reach_from_behaviour(decisions, behaviours[player])
    opponent_values = np.random.default_rng(seed).normal(size=len(d.augmented_layer))
    forest = gadget.build_forest(d, layer, reach, opponent_values)
    return d, behaviours, opponent_values, forest


FOREST_ROWS = [
    (name, player, layer)
    for name, layers in (
        ("kuhn", ((1, 2), (1,))),
        ("goofspiel4", ((1, 2, 3), (1, 2, 3))),
        ("leduc7", ((1, 2), (1, 2))),
        ("leduc", ((2,), (2, 3))),
        ("dark_hex", ((1, 2), (2,))),
        ("princess4", ((2, 3), (1, 4))),
    )
    for player in PLAYERS
    for layer in layers[player]
]


@pytest.mark.parametrize(("name", "player", "layer"), FOREST_ROWS)
def test_forest_value_equals_the_sum_over_its_roots(name, player, layer):
    """If o always follows, roots are weighted by i's and chance's reach.

    The weights exclude o's own reach, as in counterfactual values.
    """
    d, behaviours, _, forest = random_forest(name, player, layer)
    tree = reference.Tree(d.tree.game)
    policy = reference.from_openspiel(
        tree, conversions.tabular_policy(d.tree, behaviours)
    )
    brute = brute_of(name, player)
    reach = forest_reach(forest, d, behaviours, np.ones(len(forest.augmented)))
    found = forest_value(forest, reach)
    if layer == 1:
        expected = reference.value_at(tree, policy)
    else:
        expected = sum(
            tree.nodes[r].chance
            * tree.own_reach(r, player, policy)
            * reference.value_at(tree, policy, r)
            for r in brute.roots
            if brute.layer[r] == layer
        )
    assert found == pytest.approx(expected, abs=1e-12 * len(tree.nodes))


@pytest.mark.parametrize(
    ("name", "player", "layer"), [row for row in FOREST_ROWS if row[2] > 1]
)
def test_terminate_pays_the_opponent_values(name, player, layer):
    d, behaviours, opponent_values, forest = random_forest(name, player, layer)
    reach = forest_reach(forest, d, behaviours, np.zeros(len(forest.augmented)))
    own_view = forest_value(forest, reach) * (1 if player == 1 else -1)
    assert own_view == pytest.approx(
        opponent_values[forest.augmented].sum(), abs=TOLERANCE
    )
    assert len(forest.augmented) == (d.augmented_layer == layer).sum() > 0


def maximin(form, player):
    """Compute a maximin strategy in sequence form with a dense linear program."""
    payoff = np.zeros([d.num_sequences for d in form.decisions])
    payoff[form.payoffs.rows, form.payoffs.columns] = form.payoffs.values
    payoff = -payoff.T if player else payoff

    def flow(decisions):
        matrix = np.zeros((1 + len(decisions), decisions.num_sequences))
        matrix[0, 0] = 1
        matrix[1 + np.arange(len(decisions)), decisions.parent] = -1
        sequences = np.arange(1, decisions.num_sequences)
        matrix[1 + decisions.owner[1:], sequences] += 1
        return matrix

    own, other = flow(form.decisions[player]), flow(form.decisions[1 - player])
    count, duals = own.shape[1], other.shape[0]
    objective = np.zeros(count + duals)
    objective[count] = -1
    program = scipy.optimize.linprog(
        objective,
        A_ub=np.hstack([-payoff.T, other.T]),
        b_ub=np.zeros(payoff.shape[1]),
        A_eq=np.hstack([own, np.zeros((own.shape[0], duals))]),
        b_eq=np.eye(1, own.shape[0])[0],
        bounds=[(0, None)] * count + [(None, None)] * duals,
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    assert program.success, program.message
    return np.maximum(program.x[:count], 0.0)


def best_values(form, player, other_reach):
    """Compute counterfactual values of all infosets under a best response."""
    rows, columns, values = form.payoffs
    if player:
        rows, columns, values = columns, rows, -values
    decisions = form.decisions[player]
    sequence_values = np.zeros(decisions.num_sequences)
    np.add.at(sequence_values, rows, values * other_reach[columns])
    first, result = decisions.first_sequence, np.zeros(len(decisions))
    for i in np.argsort(-decisions.levels(), kind="stable"):
        at = slice(first[i], first[i] + decisions.num_actions[i])
        result[i] = sequence_values[at].max()
        sequence_values[decisions.parent[i]] += result[i]
    return result


def resolve_exactly(d: decomposition.Decomposition) -> np.ndarray:
    """Run continual re-solving with linear programs and return the strategy."""
    decisions = d.tree.infosets[d.player].decisions
    behaviour = conversions.uniform_behaviour(decisions)
    opponent_values = np.zeros(len(d.augmented_layer))
    first = decisions.first_sequence
    for layer in range(1, d.num_layers + 1):
        reach = conversions.reach_from_behaviour(decisions, behaviour)
        forest = gadget.build_forest(d, layer, reach, opponent_values)
        own = forest.form.decisions[d.player]
        plan = maximin(forest.form, d.player)
        resolved = conversions.behaviour_from_reach(own, plan)
        for k, i in enumerate(forest.infosets):
            if d.player_layer[i] == layer:
                there = own.first_sequence[k]
                count = decisions.num_actions[i]
                behaviour[first[i] : first[i] + count] = resolved[there:][:count]
        values = best_values(forest.form, 1 - d.player, plan)
        opponent_values = np.zeros(len(d.augmented_layer))
        opponent_values[forest.next_augmented] = values[
            len(values) - len(forest.next_augmented) :
        ]
    return behaviour


def exact_nash_conv(compiled) -> float:
    behaviours = [
        resolve_exactly(decomposition.decompose(compiled, p)) for p in PLAYERS
    ]
    table = conversions.tabular_policy(compiled, behaviours)
    return exploitability.nash_conv(compiled.game, table)


# HiGHS has tolerance 1e-10; values sum dozens of such errors.
EXACT = 1e-7


@pytest.mark.parametrize("name", ["kuhn", "goofspiel4", "leduc7", "dark_hex", "nim"])
@pytest.mark.parametrize("observations", [False, True])
def test_exact_resolving_gives_an_equilibrium(name, observations):
    assert exact_nash_conv(games.compiled(name, observations)) < EXACT


RANDOM_KINDS = {
    "plain": {},
    "observes more": {"transient": 0.5, "remembered": 0.3},
    "uncounted": {"turns": "by history", "transient": 0.3},
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow] if kind != "observes more" else [])
        for kind in RANDOM_KINDS
    ],
)
def test_exact_resolving_gives_an_equilibrium_of_random_games(kind):
    """Games in which the opponent cannot count turns raise an error instead."""
    cuts = {"by decisions": 0, "by turns": 0, "refused": 0}
    for seed in range(12):
        game = made_games.random_game(seed, **RANDOM_KINDS[kind])
        for observations in (False, True):
            compiled = tree_builder.build_tree(game, observations=observations)
            try:
                roles = [decomposition.decompose(compiled, p) for p in PLAYERS]
            except ValueError as error:
                assert "cannot tell" in str(error)
                cuts["refused"] += 1
                continue
            by_turns = not all(role.opens.all() for role in roles)
            cuts["by turns" if by_turns else "by decisions"] += 1
            assert exact_nash_conv(compiled) < EXACT, seed
    assert cuts["by decisions"] > 0
    if kind == "uncounted":
        assert min(cuts.values()) > 0
    else:
        assert cuts["refused"] == cuts["by turns"] == 0


def test_shifted_terminate_values_change_the_solution():
    """High terminate values make the opponent terminate, low ones make it follow."""
    d = cut("kuhn", 0)
    decisions = d.tree.infosets[0].decisions
    behaviour = conversions.uniform_behaviour(decisions)
    reach = conversions.reach_from_behaviour(decisions, behaviour)
    results = []
    for shift in (0.0, 10.0, -10.0):
        opponent_values = np.full(len(d.augmented_layer), shift)
        forest = gadget.build_forest(d, 2, reach, opponent_values)
        plan = maximin(forest.form, 0)
        other = best_values(forest.form, 1, plan)[: len(forest.augmented)]
        results.append((other >= opponent_values[forest.augmented] - TOLERANCE).all())
        follow = best_values(forest.form, 1, plan)[: len(forest.augmented)].sum()
        results.append(follow)
    assert results[0] and results[2] and results[4]
    # At 10 it terminates everywhere, at -10 it follows everywhere.
    assert results[3] == pytest.approx(30.0)
    assert -10 < results[5] < results[1] + 1e-9 < 10


@pytest.mark.parametrize("rules", [hidden_second_try, seen_and_forgotten])
def test_exact_resolving_gives_an_equilibrium_of_synthetic_games(rules):
    game = made_games.MadeGame(rules, rules.__name__)
    compiled = tree_builder.build_tree(game, observations=True)
    assert exact_nash_conv(compiled) < EXACT
