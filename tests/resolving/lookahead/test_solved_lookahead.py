"""Constraints and the incumbent strategy in a lookahead tree."""

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


def second_layer_start(name, player):
    """Return the first subgame of layer 2, whose roots are not expanded.

    Returns:
      The lookahead tree, its roots, the decomposition of the whole game, and the index
      of the subgame's first infoset.
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


def second_layer_subgame(name, player):
    """Expand the subgame of `second_layer_start` to the end of the game.

    Returns:
      The unsolved lookahead tree, the decomposition of the whole game, and int64 [n],
      the subgame's roots in the whole game.
    """
    place, ids, d, second = second_layer_start(name, player)
    lookahead_trees.by_levels(place)
    blueprint = Blueprint(policy(name), place.simulator.source.rules)
    solved = SolvedLookahead.of(place, player, blueprint, roots=ids)
    roots = d.roots[d.augmented_subgame[d.root_augmented] == d.player_subgame[second]]
    return solved, d, roots


@pytest.mark.parametrize("player", PLAYERS[:1])
@pytest.mark.parametrize("name", ["kuhn", "leduc7", "goofspiel4"])
def test_constraints_of_a_complete_subgame_equal_those_of_the_game(name, player):
    solved, d, roots = second_layer_subgame(name, player)
    tree = games.compiled(name)
    behaviour = query(tree, policy(name))[player]
    values = OpponentResponses(d).values(behaviour)
    wanted = values[np.unique(d.root_augmented[np.searchsorted(d.roots, roots)])]
    mine = solved.decomposition.augmented_layer == solved.layer
    found = solved.constraints[:-1][mine]
    np.testing.assert_allclose(np.sort(found), np.sort(wanted), atol=TOLERANCE)
    assert len(solved.forest("cfrd").augmented) == len(wanted)


class Solver(SimpleNamespace):
    """A solver that returns a given strategy."""

    def average_behaviour(self, player):
        return self.behaviour


def test_solutions_are_accepted_only_within_all_constraints():
    solved, _, _ = second_layer_subgame("leduc7", 0)
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


def test_incumbent_strategy_is_the_previous_solution():
    """At infosets that the previous tree did not contain, it is the blueprint."""
    solved, _, _ = second_layer_subgame("leduc7", 0)
    blueprint = Blueprint(policy("leduc7"), solved.lookahead.simulator.source.rules)
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
        place = slice(
            *(
                after.decomposition.decisions.sequences_of(np.array([number]))[[0, -1]]
                + [0, 1]
            )
        )
        if key in keys:
            old = solved.find(key)
            source = solved.decomposition.decisions.sequences_of(np.array([old]))
            np.testing.assert_array_equal(after.behaviour[place], changed[source])
            known += 1
        else:
            odds = SolvedLookahead.of(small, 0, blueprint).behaviour[place]
            np.testing.assert_array_equal(after.behaviour[place], odds)
    assert 0 < known < len(after.snapshot.tree.infosets[0].keys)


def test_subgames_with_unexpanded_or_missing_roots_are_not_resolved():
    solved, _, _ = second_layer_subgame("leduc7", 0)
    ids = solved.snapshot.ids[solved.decomposition.roots]
    inside = solved.decomposition.layer[solved.decomposition.roots] == solved.layer
    blueprint = Blueprint(policy("leduc7"), solved.lookahead.simulator.source.rules)
    tree, roots, _, _ = second_layer_start("leduc7", 0)
    blank = Blueprint(policy("leduc7"), tree.simulator.source.rules)
    assert SolvedLookahead.of(tree, 0, blank, roots=roots) is None
    assert (
        SolvedLookahead.of(solved.lookahead, 0, blueprint, roots=ids[inside][1:])
        is None
    )


def test_incumbent_strategy_continues_below_a_smaller_tree():
    """Constraints and play below the smaller tree use the larger tree's solution."""
    place, ids, _, _ = second_layer_start("leduc7", 0)
    small = place.focus(ids)
    lookahead_trees.by_levels(place)
    solved = SolvedLookahead.of(
        place, 0, Blueprint(policy("leduc7"), place.simulator.source.rules), ids
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


def test_reset_frees_previous_solutions():
    """Reference counts free them, because timed players rarely collect garbage."""
    solved, _, _ = second_layer_subgame("leduc7", 0)
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
