"""Lookahead trees that grow level by level, with given leaf values."""

import numpy as np

from spiel_cr.common.arrays import groups
from spiel_cr.games.opening.batched_rules import BrokenRulesError
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree


def nothing(game, histories):
    """Return the value 0 for all histories, as a leaf value."""
    return np.zeros(len(histories))


class FunctionValue(HistoryValues):
    """Leaf values that a function of batched rules and histories computes."""

    def __init__(self, function):
        self.function = function

    def __call__(self, game, histories, player=0, /):
        return self.function(game, histories)


def start(game, capacity, leaf=nothing, *, player=0, batched_rules=True):
    """Return a lookahead tree of the root, with a function of leaf values."""
    value = leaf if isinstance(leaf, HistoryValues) else FunctionValue(leaf)
    return LookaheadTree.start(
        game, capacity, leaf=value, player=player, batched_rules=batched_rules
    )


def compiled(game, capacity, leaf=nothing, *, batched_rules=True):
    """Return a tree of at most `capacity` histories, level by level."""
    tree = start(game, capacity, leaf, batched_rules=batched_rules)
    by_levels(tree)
    return tree.snapshot().tree


def is_whole(tree):
    """Return whether the tree is complete."""
    return not (len(tree.table.frontier()) or tree.table.stub[: len(tree)].any())


def by_levels(tree, most=None):
    """Expand complete levels, and as much as fits of the next level.

    All histories of an infoset in a level are expanded, or none. Infosets with the
    highest reach under uniform play come first.
    """
    table = tree.table
    most = table.capacity if most is None else most
    while len(frontier := table.frontier()):
        depth = table.depth[frontier]
        frontier = frontier[depth == depth.min()]
        group = groups(table.infosets(frontier))
        reach = table.chance[frontier] * table.player_reach[frontier].prod(axis=1)
        cost = np.bincount(group, table.num_actions[frontier])
        left_out = False
        for infoset in np.argsort(-np.bincount(group, reach), kind="stable"):
            if table.used + cost[infoset] > most:
                left_out = True
                continue
            table.marks.append(table.used + int(cost[infoset]))
            try:
                table.expand_rows(tree.simulator, frontier[group == infoset])
            except BrokenRulesError as error:
                raise error.at(table.path_to(error.history)) from error
        if left_out:
            return
