"""Growth that is guided by how both players play."""

import time

import numpy as np
import pytest

from spiel_cr.resolving.partial.partial_tree import PartialTree

LEDUC = "leduc_poker"


def grown(most, *, player=None, reach=None):
    tree = PartialTree.start(LEDUC, 4000, leaf="rollouts(n=1)", player=player)
    tree.grow(300, guided=True, capacity=4000)
    if reach is not None:
        ids = tree.table.id[: tree.table.used]
        tree.set_reach(ids, reach(tree))
    tree.grow(most, guided=True)
    return tree


def test_infosets_are_expanded_whole_on_all_levels():
    table = grown(1500).table
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    frontier = table.frontier()
    assert len(frontier) and table.used <= 1500
    assert not np.isin(table.infosets(frontier), table.infosets(expanded)).any()
    # Chance moves are never at the frontier.
    assert (table.player[frontier] >= 0).all()


def test_decisions_that_the_opponent_cannot_tell_apart_come_together():
    table = grown(1500, player=0).table
    used = table.used
    own = table.player[:used] == 0
    inside = own & (table.first[:used] >= 0)
    outside = own & (table.first[:used] < 0) & (table.num_actions[:used] > 0)
    seen = table.observation[:used]
    assert inside.any() and outside.any()
    assert not np.isin(seen[outside], seen[inside]).any()


@pytest.mark.parametrize("player", [0, 1])
def test_trees_end_between_public_states(player):
    """Nobody takes a history of the frontier for one that the tree goes on from."""
    table = grown(1500, player=player).table
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    frontier = table.frontier()
    assert len(frontier) and 750 < table.used <= 1500
    for p in range(2):
        ends = frontier[table.player[frontier] == p]
        inside = expanded[table.player[expanded] == p]
        assert not np.isin(table.label[ends], table.label[inside]).any()
        assert not np.isin(table.observation[ends], table.observation[inside]).any()


def test_where_public_states_do_not_fit_infosets_do():
    """In phantom_ttt nearly all histories after as many moves are one public state."""
    tree = PartialTree.start("phantom_ttt", 6000, leaf="rollouts(n=1)", player=0)
    tree.grow(guided=True)
    assert 5000 < len(tree) <= 6000


def test_trees_do_not_grow_to_a_decision_after_the_deadline():
    def leads_there(deadline):
        tree = PartialTree.start("kuhn_poker", 58, leaf="rollouts(n=1)", player=1)
        key = tree.game.new_initial_state()
        for action in (0, 1, 0):
            key.apply_action(action)
        key = key.information_state_string(1)
        target = tree.simulator.labels[1][key]
        found = tree.grow_to(target, 58, deadline)
        begun = PartialTree.start("kuhn_poker", 58, leaf="rollouts(n=1)", player=1)
        cut = begun.frontier_before({}, key, 58, deadline)
        whole = begun.expand_whole(58, deadline)
        return found, cut is not None, whole, len(tree), len(begun)

    assert leads_there(None) == leads_there(time.perf_counter() + 60)
    assert leads_there(None)[:3] == (True, True, True)
    assert leads_there(time.perf_counter() - 1) == (False, False, False, 1, 1)


def test_growth_follows_the_strategies():
    """Where neither player goes, nothing is expanded as long as something else is."""

    def one_way(tree):
        """Both players take their first action wherever they are."""
        table = tree.table
        reach = np.ones((2, table.used))
        for row in range(1, table.used):
            parent = table.parent[row]
            reach[:, row] = reach[:, parent]
            acts = table.player[parent]
            if acts >= 0 and row != table.first[parent]:
                reach[acts, row] = 0
        return reach

    table = grown(1200, reach=one_way).table
    frontier = table.frontier()
    expanded = table.first[: table.used] >= 0
    nobody = (table.own_reach[: table.used] == 0).all(axis=1)
    assert (table.own_reach[frontier] > 0).any()
    # What was there before may be so; but nothing on after it.
    assert not (nobody & expanded)[300:].any()
