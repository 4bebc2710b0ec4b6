"""What is promised in a lookahead tree, and what is taken for the plan there."""

import dataclasses
import functools
import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from spiel_cr import solve
from spiel_cr.policies.queries import query
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.node_table import NodeTable
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from tests.support import games, lookahead_trees
from tests.support.strategies import solver_of

PLAYERS = (0, 1)
# Sums of hundreds of doubles of size 1.
TOLERANCE = 1e-12
NAMES = {"kuhn": "kuhn_poker", "leduc7": None, "goofspiel4": None}


@functools.cache
def policy(name):
    return solve(games.compiled(name), "cfr+", 3).average_policy()


def beginning(name, player):
    """The first subgame of layer 2, nothing expanded below its roots.

    Returns:
      The tree; its roots; the decomposition of the whole game; int, the first infoset.
    """
    tree = games.compiled(name)
    leaf = Rollouts(policy(name), 2, 1, seed=0)
    start = LookaheadTree.start(
        tree.game, len(tree.histories), leaf=leaf, player=player
    )
    d = decompose(tree, player)
    second = int(np.flatnonzero(d.opens & (d.player_layer == 2))[0])
    first = int(d.decisions.owner[d.decisions.parent[second]])
    place, ids = start, start.table.id[:1]
    for number, infoset in enumerate((first, second)):
        key = tree.infosets[player].keys[infoset]
        place, ids, _ = place.next_public_state(
            ids, key, most=len(tree.histories), begins=number == 0
        )
    return place, ids, d, second


def ends(name, player):
    """The subgame of `beginning`, grown to the end, and the same in the whole game.

    Returns:
      The tree's plan, nothing solved; the decomposition of the whole game; int64 [n],
      its roots there.
    """
    place, ids, d, second = beginning(name, player)
    lookahead_trees.by_levels(place)
    blueprint = Blueprint(policy(name), place.simulator)
    solved = SolvedLookahead.of(place, player, blueprint, roots=ids)
    roots = d.roots[d.augmented_subgame[d.root_augmented] == d.player_subgame[second]]
    return solved, d, roots


@pytest.mark.parametrize("player", PLAYERS[:1])
@pytest.mark.parametrize("name", ["kuhn", "leduc7", "goofspiel4"])
def test_promises_of_a_tree_to_the_end_are_those_of_the_whole_game(name, player):
    solved, d, roots = ends(name, player)
    tree = games.compiled(name)
    behaviour = query(tree, policy(name))[player]
    values = OpponentResponses(d).values(behaviour)
    wanted = values[np.unique(d.root_augmented[np.searchsorted(d.roots, roots)])]
    mine = solved.decomposition.augmented_layer == solved.layer
    found = solved.constraints[:-1][mine]
    np.testing.assert_allclose(np.sort(found), np.sort(wanted), atol=TOLERANCE)
    assert len(solved.forest("cfrd").augmented) == len(wanted)


class Solver(SimpleNamespace):
    """One that found a given strategy."""

    def average_behaviour(self, player):
        return self.behaviour


def test_a_solution_is_the_plan_only_if_it_keeps_all_promises():
    solved, _, _ = ends("leduc7", 0)
    game = solved.forest("maxmargin")
    incumbent = solved.behaviour.copy()
    decisions = game.decisions[0]
    worst = np.zeros(decisions.num_sequences)
    worst[0] = 1.0
    worst[decisions.first_sequence + decisions.num_actions - 1] = 1.0
    solved.accept_if_safe(game, Solver(behaviour=worst))
    assert not solved.accepted
    np.testing.assert_array_equal(solved.behaviour, incumbent)
    solver = solver_of(game.form, "pcfr+", values=True, first=1)
    solver.run(300)
    solved.accept_if_safe(game, solver)
    assert solved.accepted and np.abs(solved.behaviour - incumbent).max() > 0.01
    after = solved.responses.values(solved.behaviour)
    inside = solved.decomposition.augmented_layer == solved.layer
    assert (after[:-1][inside] <= solved.constraints[:-1][inside] + 1e-9).all()
    assert after[:-1][inside].sum() < solved.constraints[:-1][inside].sum() - 0.01


def test_the_plan_is_what_was_solved_before():
    """Also where the next tree ends elsewhere; the blueprint is the plan beyond it."""
    solved, _, _ = ends("leduc7", 0)
    blueprint = Blueprint(policy("leduc7"), solved.lookahead.simulator)
    changed = np.linspace(0.1, 0.9, len(solved.behaviour))
    solved.behaviour = changed
    old, root = solved.lookahead.table, solved.lookahead.simulator.root()
    table = NodeTable(old.capacity, old.ids, root)
    small = dataclasses.replace(solved.lookahead, table=table)
    lookahead_trees.by_levels(small, 200)
    after = SolvedLookahead.of(small, 0, solved)
    keys = solved.snapshot.tree.infosets[0].keys
    known = 0
    for number, key in enumerate(after.snapshot.tree.infosets[0].keys):
        place = slice(*(after._sequences(np.array([number]))[[0, -1]] + [0, 1]))
        if key in keys:
            old = solved.find(key)
            source = solved._sequences(np.array([old]))
            np.testing.assert_array_equal(after.behaviour[place], changed[source])
            known += 1
        else:
            odds = SolvedLookahead.of(small, 0, blueprint).behaviour[place]
            np.testing.assert_array_equal(after.behaviour[place], odds)
    assert 0 < known < len(after.snapshot.tree.infosets[0].keys)


def test_roots_that_are_not_all_expanded_are_not_resolved():
    solved, _, _ = ends("leduc7", 0)
    ids = solved.snapshot.ids[solved.decomposition.roots]
    inside = solved.decomposition.layer[solved.decomposition.roots] == solved.layer
    blueprint = Blueprint(policy("leduc7"), solved.lookahead.simulator)
    tree, roots, _, _ = beginning("leduc7", 0)
    blank = Blueprint(policy("leduc7"), tree.simulator)
    assert SolvedLookahead.of(tree, 0, blank, roots=roots) is None
    assert (
        SolvedLookahead.of(solved.lookahead, 0, blueprint, roots=ids[inside][1:])
        is None
    )


def test_the_plan_goes_on_beyond_a_smaller_tree():
    """As it was solved in a larger one, in what is promised and in what is played."""
    place, ids, _, _ = beginning("leduc7", 0)
    small = place.focus(ids)
    lookahead_trees.by_levels(place)
    solved = SolvedLookahead.of(
        place, 0, Blueprint(policy("leduc7"), place.simulator), ids
    )
    game = solved.forest("maxmargin")
    solver = solver_of(game.form, "pcfr+", values=True, first=1)
    solver.run(300)
    blueprint = solved.constraints
    solved.accept_if_safe(game, solver)
    assert solved.accepted
    lookahead_trees.by_levels(small, len(small) + 40)
    after = SolvedLookahead.of(small, 0, solved, ids, walk=10_000)
    assert after.exact and small.table.frontier().size

    def of_roots(tree, values):
        return np.sort(values[:-1][tree.decomposition.augmented_layer == tree.layer])

    kept = of_roots(solved, solved.responses.values(solved.behaviour))
    np.testing.assert_allclose(of_roots(after, after.constraints), kept, atol=TOLERANCE)
    assert np.abs(kept - of_roots(solved, blueprint)).max() > 0.003
    own = solved.snapshot.tree.infosets[0]
    nodes = place.nodes(solved.snapshot.ids[own.history])
    np.testing.assert_array_equal(after.play(nodes, 0), solved.behaviour[1:])


def test_what_is_forgotten_is_freed():
    """By counts of references: players under a clock search for little garbage."""
    solved, _, _ = ends("leduc7", 0)
    below = dataclasses.replace(solved, incumbent=solved, after={})
    last = dataclasses.replace(solved, incumbent=below, after={1: None})
    solved.after[0], below.after[0] = below, last
    freed = [weakref.ref(below), weakref.ref(last)]
    del below, last
    gc.disable()
    try:
        solved.reset()
        assert [ref() for ref in freed] == [None, None]
    finally:
        gc.enable()
