"""Snapshots of a lookahead tree: games in tree form."""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import places_in
from spiel_cr.common.pairs import pair
from spiel_cr.games.histories import Histories
from spiel_cr.games.simulation.labelled import LabelledSimulator
from spiel_cr.games.tree import infostate_strings, numbering
from spiel_cr.games.tree.infostate_strings import lazy_strings
from spiel_cr.games.tree.tree import GameTree, assemble
from spiel_cr.resolving.lookahead.frontier import TreeRows, breadth_first


class TreeSnapshot(NamedTuple):
    """A lookahead tree at one time, as a game in tree form.

    Attributes:
      tree: The game; `tree.frontier` marks where it ends before the original game does.
      ids: Id of each history, int64 [N], unique among all trees made from one tree.
      labels: Label of each infoset, int32 [I], for each player. It does not change
        during the lifetime of the lookahead tree and all trees made from it.
    """

    tree: GameTree
    ids: np.ndarray
    labels: tuple[np.ndarray, np.ndarray]


def snapshot_of(
    rows: TreeRows, states: np.ndarray, simulator: LabelledSimulator
) -> TreeSnapshot:
    """Return a lookahead tree as a game in tree form, which ends at the frontier.

    If it is the complete game, the result is bitwise identical to that of `build_tree`.

    Args:
      rows: Histories, which end at the frontier, with values there.
      states: States of the histories, [n, ...].
      simulator: Simulator of the game.

    Raises:
      ImperfectRecallError: If a player seems to have imperfect recall in the tree.
    """
    source = simulator.source
    order, level_start = breadth_first(rows.first, rows.num_children)
    rank = places_in(order, len(order))
    player, parent = rows.player[order], rows.parent[order]
    label, observation = np.full((2, len(order)), -1, np.int32)
    player_labels = []
    for p in range(2):
        acts = np.flatnonzero(player == p)
        numbers_of = order[acts]
        labels, label[acts] = np.unique(rows.label[numbers_of], return_inverse=True)
        _, observation[acts] = np.unique(
            rows.observation[numbers_of], return_inverse=True
        )
        player_labels.append(labels)
    walked = Histories(
        parent=np.where(parent >= 0, rank[parent], np.int32(-1)),
        action=rows.action[order],
        player=player,
        infoset=label,
        observations=observation if simulator.observations else None,
        sequence=np.zeros((2, 0), np.int32),
        chance=rows.chance[order],
        utility=rows.utility[order],
        level_start=level_start,
    )

    def strings_at(histories: np.ndarray, player: int) -> infostate_strings.Strings:
        """Return a player's information-state strings, computed on demand."""
        at = states[order[histories]]
        return infostate_strings.Strings(
            len(at),
            lambda number: source.strings(at[number : number + 1], player)[0],
            lambda: source.strings(at, player),
        )

    game, rules = source.game, source.rules
    histories, infosets, numbers = numbering.number(walked, game)
    if rules is None:
        keys = [strings_at(side.history, p) for p, side in enumerate(infosets)]
    else:
        keys = [
            lazy_strings(game, rules, histories, side.history, p)
            for p, side in enumerate(infosets)
        ]
    tree = assemble(game, histories, infosets, keys, lazy=True)
    if rows.frontier.any():
        tree = dataclasses.replace(tree, frontier=rows.frontier[order])
    labels_of = pair(
        labels[order] for labels, order in zip(player_labels, numbers, strict=True)
    )
    return TreeSnapshot(tree, rows.id[order], labels_of)
