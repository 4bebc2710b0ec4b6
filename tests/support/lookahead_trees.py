"""Lookahead trees that grow level by level, and end in given values."""

import numpy as np

from spiel_cr.common.arrays import groups
from spiel_cr.games.opening.batched_rules import BrokenRulesError
from spiel_cr.policies.leaf_values import HistoryValues, LeafValue
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree


def nothing(game, histories):
    """A leaf value: all histories are worth 0."""
    return np.zeros(len(histories))


def start(game, capacity, leaf=nothing, *, player=0, batched_rules=True):
    """The start of a game in a tree that ends in a function's values."""
    value = leaf if isinstance(leaf, HistoryValues) else LeafValue(leaf, "histories")
    return LookaheadTree.start(
        game, capacity, leaf=value, player=player, batched_rules=batched_rules
    )


def compiled(game, capacity, leaf=nothing, *, batched_rules=True):
    """At most so many histories of a game, compiled; level by level."""
    tree = start(game, capacity, leaf, batched_rules=batched_rules)
    by_levels(tree)
    return tree.snapshot().tree


def is_whole(tree):
    """Whether nothing is left to expand, or was dropped."""
    return not (len(tree.table.frontier()) or tree.table.stub[: len(tree)].any())


def by_levels(tree, most=None):
    """Expands whole levels, and of the first that does not fit what fits.

    All histories of an infoset of a level are expanded, or none; those first that
    chance and uniform play lead to most.
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
