"""Exact values on game trees, compared with OpenSpiel and with a plain recursion."""

import functools

import numpy as np
import pytest
from open_spiel.python.algorithms import best_response as openspiel_best_response
from open_spiel.python.algorithms import expected_game_score, exploitability

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import best_response_value, nash_conv, reach_of
from spiel_cr.solvers.solve import solve
from tests.support import games, lp_reference, reference
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node, random_game
from tests.support.strategies import random_behaviours

# Both sides sum thousands of doubles of size 10 at most.
TOLERANCE = 1e-9
PLAYERS = (0, 1)
EVALUATED = [case for case in games.CASES if case.histories <= 10000]
# All kinds of strategies on two games, and only "pure" on the others, because XLA takes
# long to compile the functions of each game.
QUICK = ("kuhn", "goofspiel4", "leduc", "dark_hex", "princess4")
ROWS = [
    pytest.param(
        case,
        kind,
        id=f"{case.name}-{kind}",
        marks=[pytest.mark.slow] * (case.name not in QUICK),
    )
    for case in EVALUATED
    for kind in ("uniform", "random", "pure", "solved")
    if kind == "pure" or case.name in ("kuhn", "goofspiel4")
]


@functools.cache
def behaviours_of(name, kind):
    game_tree = games.compiled(name)
    if kind == "uniform":
        return tuple(
            conversions.uniform_behaviour(i.decisions) for i in game_tree.infosets
        )
    if kind == "solved":
        return solve(game_tree, "cfr", 30).average
    return random_behaviours(game_tree, 7, zeros=kind == "pure")


@pytest.mark.parametrize(("case", "kind"), ROWS)
def test_values_equal_openspiels(case, kind):
    game_tree = games.compiled(case.name)
    behaviours = behaviours_of(case.name, kind)
    form = game_tree.sequence_form
    reach = reach_of(form, behaviours)
    table = conversions.tabular_policy(game_tree, behaviours)
    game, start = game_tree.game, game_tree.game.new_initial_state()
    score = expected_game_score.policy_value(start, [table, table])[0]
    assert best_responses.expected_value(form, reach) == pytest.approx(
        score, abs=TOLERANCE
    )
    for p in PLAYERS:
        responder = openspiel_best_response.BestResponsePolicy(game, p, table)
        assert best_response_value(form, p, reach[1 - p]) == pytest.approx(
            responder.value(start), abs=TOLERANCE
        )
        # The pure best response has the same value.
        pure = best_responses.best_response(form, p, reach[1 - p])
        assert set(np.unique(pure)) <= {0.0, 1.0}
        both = list(reach)
        both[p] = conversions.reach_from_behaviour(form.decisions[p], pure)
        won = best_responses.expected_value(form, tuple(both)) * (1 - 2 * p)
        assert won == pytest.approx(responder.value(start), abs=TOLERANCE)
        # Evaluating both players' own behaviour gives the expected value again.
        values = best_responses.infoset_values(form, p, reach[1 - p], behaviours[p])
        assert values[-1] == pytest.approx(score * (1 - 2 * p), abs=TOLERANCE)
    assert nash_conv(form, reach) == pytest.approx(
        exploitability.nash_conv(game, table), abs=TOLERANCE
    )


@pytest.mark.parametrize("case", games.CASES, ids=lambda c: c.name)
def test_uniform_nash_conv_of_the_catalogue(case):
    """Values in the catalogue have six decimals."""
    form = games.compiled(case.name).sequence_form
    reach = reach_of(form, behaviours_of(case.name, "uniform"))
    assert nash_conv(form, reach) == pytest.approx(case.uniform, abs=1e-6)


@pytest.mark.parametrize("case", EVALUATED, ids=lambda c: c.name)
def test_values_of_the_catalogue(case):
    """Values in the catalogue equal those of a linear program without spiel_cr."""
    # HiGHS keeps constraints to 1e-7 relative; values are far more exact in practice.
    assert lp_reference.game_value(games.compiled(case.name).game) == pytest.approx(
        case.value, abs=case.tolerance + 1e-8
    )


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("name", ["kuhn", "leduc7", "goofspiel4", "dark_hex"])
def test_infoset_values_by_recursion(name, best):
    """The counterfactual value of an infoset equals the sum over its histories."""
    game_tree = games.compiled(name)
    behaviours = behaviours_of(name, "random")
    tree = reference.Tree(game_tree.game)
    table = conversions.tabular_policy(game_tree, behaviours)
    policy = reference.from_openspiel(tree, table)
    reach = reach_of(game_tree.sequence_form, behaviours)
    for p in PLAYERS:
        values = best_responses.infoset_values(
            game_tree.sequence_form, p, reach[1 - p], None if best else behaviours[p]
        )
        if best:
            # Make a policy of the first action that attains the best value, bottom up.
            answered = dict(policy)
            for key in sorted(
                (k for k in tree.infosets if k[0] == p),
                key=lambda k: -len(tree.nodes[tree.infosets[k][0]].sequences[p]),
            ):
                options = {}
                for action in tree.actions(key):
                    pure = {a: float(a == action) for a in tree.actions(key)}
                    answered[key] = pure
                    options[action] = counterfactual(tree, answered, key)
                chosen = max(options, key=options.__getitem__)
                answered[key] = {a: float(a == chosen) for a in tree.actions(key)}
        else:
            answered = policy
        for i, key in enumerate(game_tree.infosets[p].keys):
            expected = counterfactual(tree, answered, (p, key))
            assert values[i] == pytest.approx(expected, abs=TOLERANCE)


def counterfactual(tree, policy, key):
    """Return an infoset's utility, weighted by the reach of the opponent and chance."""
    sign = 1 - 2 * key[0]
    return sum(
        sign
        * tree.nodes[i].chance
        * tree.own_reach(i, 1 - key[0], policy)
        * reference.value_at(tree, policy, i)
        for i in tree.infosets[key]
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 12))]
)
def test_values_in_random_games_equal_recursion(seed):
    """Trees are uneven: numbers of actions vary, and players may move repeatedly."""
    depth = 5 if seed else 4
    game = random_game(seed, turns="by history", max_actions=4, depth=depth)
    game_tree = tree_builder.build_tree(game)
    behaviours = random_behaviours(game_tree, seed)
    tree = reference.Tree(game)
    table = conversions.tabular_policy(game_tree, behaviours)
    policy = reference.from_openspiel(tree, table)
    reach = reach_of(game_tree.sequence_form, behaviours)
    assert best_responses.expected_value(
        game_tree.sequence_form, reach
    ) == pytest.approx(reference.value_at(tree, policy), abs=TOLERANCE)
    for p in PLAYERS:
        assert best_response_value(
            game_tree.sequence_form, p, reach[1 - p]
        ) == pytest.approx(
            reference.best_response_value(tree, policy, p), abs=TOLERANCE
        )


def nobody_acts(path):
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.25, 0.75))
    return Node(TERMINAL, utility=4.0 * path[0])


def one_acts(path):
    if not path:
        return Node(1, (0, 1), ("a", "b"))
    return Node(TERMINAL, utility=[2.0, -3.0][path[0]])


@pytest.mark.parametrize(
    ("rules", "value", "best"),
    [(nobody_acts, 3.0, (3.0, -3.0)), (one_acts, -0.5, (-0.5, 3.0))],
)
def test_games_in_which_a_player_never_acts(rules, value, best):
    game_tree = tree_builder.build_tree(MadeGame(rules, rules.__name__))
    uniform = [conversions.uniform_behaviour(i.decisions) for i in game_tree.infosets]
    reach = reach_of(game_tree.sequence_form, tuple(uniform))
    assert best_responses.expected_value(game_tree.sequence_form, reach) == value
    found = tuple(
        best_response_value(game_tree.sequence_form, p, reach[1 - p]) for p in PLAYERS
    )
    assert found == best


@pytest.mark.parametrize(("gain", "chosen"), [(5e-13, 0), (5e-12, 1)])
def test_ties_are_relative_to_the_largest_payoff(gain, chosen):
    """The second action is better by `gain` times the game's largest payoff, 1000."""

    def rules(path):
        if not path:
            return Node(0, (0, 1, 2), ("a", "b"))
        return Node(TERMINAL, utility=[0.0, 1000 * gain, -1000.0][path[0]])

    game_tree = tree_builder.build_tree(MadeGame(rules, "nearly_equal"))
    found = best_responses.best_response(game_tree.sequence_form, 0, np.ones(1))
    assert np.flatnonzero(found[1:]).tolist() == [chosen]


def test_solved_policies_are_near_equilibrium():
    """The strategies that are evaluated above include good ones."""
    game_tree = games.compiled("kuhn")
    reach = reach_of(game_tree.sequence_form, behaviours_of("kuhn", "solved"))
    assert nash_conv(game_tree.sequence_form, reach) < 0.2
    assert np.isfinite(reach[0]).all()


@pytest.mark.slow
def test_nash_conv_of_latent_tic_tac_toe_equals_openspiels():
    """4.85 million histories: OpenSpiel takes minutes and five gigabytes."""
    result = solve("python_latent_tic_tac_toe(conflict=keep)", "cfr+", 20)
    theirs = exploitability.nash_conv(result.tree.game, result.average_policy())
    assert result.nash_conv() == pytest.approx(theirs, abs=TOLERANCE)
    assert 0.01 < theirs < 1.7
