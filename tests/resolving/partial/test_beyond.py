"""What the opponent gets beyond a partial tree: best responses of the whole game."""

import dataclasses

import numpy as np
import pytest

from spiel_cr import solve
from spiel_cr.policies.conversions import behaviour_from_policy
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.partial.blueprint import Blueprint
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.solved_tree import SolvedTree
from spiel_cr.resolving.plans import Responses
from tests.support import games

# Sums of hundreds of doubles of size 1.
TOLERANCE = 1e-12


def started(name, player, histories, walk, vectorised=True):
    """The start of a game in a tree of some histories, nothing solved."""
    policy = solve(games.compiled(name), "cfr+", 3).average_policy()
    start = PartialTree.start(
        games.compiled(name).game,
        histories,
        leaf=Rollouts(policy, 2, 1, seed=0),
        player=player,
        vectorised=vectorised,
    )
    blueprint = Blueprint(policy, start.simulator)
    start = dataclasses.replace(start, blueprint=blueprint)
    start.grow(histories)
    return SolvedTree.of(start, player, blueprint, walk=walk), policy


@pytest.mark.parametrize("vectorised", [True, False])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["leduc7", "goofspiel4", "liars_dice_1x4"])
def test_best_responses_are_those_of_the_whole_game(name, player, vectorised):
    tree = games.compiled(name)
    solved, policy = started(name, player, len(tree.histories) // 3, 10_000, vectorised)
    assert solved.exact and solved.snapshot.tree.frontier.any()
    behaviour = behaviour_from_policy(tree, policy)[player]
    d = decompose(tree, player)
    values = Responses(d).values(behaviour)
    np.testing.assert_allclose(solved.promised[-1], values[-1], atol=TOLERANCE)
    # Those of the first layer, all of whose roots the tree has.
    first, mine = d.augmented_layer == 1, solved.decomposition.augmented_layer == 1
    whole = np.sort(values[:-1][first])
    found = np.sort(solved.promised[:-1][mine])
    np.testing.assert_allclose(found, whole, atol=TOLERANCE)


def test_what_is_too_much_to_walk_ends_with_the_tree():
    solved, _ = started("leduc7", 0, 200, 200)
    assert not solved.exact
    labels = solved.partial.simulator.acting_labels
    known = [len(own) for own in labels]
    again = SolvedTree.of(solved.partial, 0, solved.partial.blueprint, walk=2000)
    # One rollout each: the opponent chooses what looks best, and is wrong.
    assert again.exact and abs(again.promised[-1] - solved.promised[-1]) > 0.01
    assert [len(own) for own in labels] == known
