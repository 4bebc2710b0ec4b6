"""A game as public tree and as game tree: equal values and iterates of CFR+."""

import numpy as np
import pytest

from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from tests.support import detection, games, public_tree_walks
from tests.support.strategies import random_behaviours, solver_of


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "nim"])
def test_values_equal_those_of_the_game_tree(name):
    """Use random strategies, which `sequences` maps between the forms."""
    tree = games.compiled(name)
    detected = detection.locate(tree)
    behaviours = random_behaviours(tree, 3)
    moved = []
    for behaviour, sequences in zip(behaviours, detected.sequences, strict=True):
        assert (np.sort(sequences) == np.arange(len(behaviour))).all()
        other = np.empty_like(behaviour)
        other[sequences] = behaviour
        moved.append(other)
    reach = tuple(
        reach_from_behaviour(own.decisions, behaviour)
        for own, behaviour in zip(tree.infosets, behaviours, strict=True)
    )
    expected = best_responses.expected_value(tree.sequence_form, reach)
    policy = {}
    for player, behaviour in enumerate(moved):
        decisions = detected.game.public_decisions[player]
        for node in decisions.node.tolist():
            policy[node] = decisions.block(behaviour, node)
    found = public_tree_walks.value_of_form(detected.game, policy)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("string", "products"),
    [
        *(("kuhn_poker", products) for products in (False, True)),
        ("liars_dice(numdice=1,dice_sides=3)", True),
        pytest.param("leduc_poker", True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, False, marks=pytest.mark.slow),
        pytest.param("liars_dice", True, marks=pytest.mark.slow),
    ],
)
def test_cfr_plus_iterates_equal_those_of_the_game_tree(string, products):
    """Twenty iterations agree up to rounding, which is far below 1e-9."""
    tree = build_tree(string)
    detected = detection.locate(tree)
    public_form = detected.game.build_sequence_form(products=products)
    compiled, ours = (solver_of(f, "cfr+") for f in (tree.sequence_form, public_form))
    compiled.run(20)
    ours.run(20)
    for player, sequences in enumerate(detected.sequences):
        for one, other in (
            (compiled.average(player), ours.average(player)[sequences]),
            (
                compiled.current_behaviour(player),
                ours.current_behaviour(player)[sequences],
            ),
        ):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        assert ours.average(player)[1:].std() > 0
