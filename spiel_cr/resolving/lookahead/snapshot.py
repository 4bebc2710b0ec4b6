"""Compiles the histories of a lookahead tree."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.histories import Histories
from spiel_cr.games.simulation.labelled import LabelledSimulator
from spiel_cr.games.tree import infostate_strings, numbering
from spiel_cr.games.tree.infostate_strings import lazy_strings
from spiel_cr.games.tree.tree import GameTree, assemble
from spiel_cr.resolving.lookahead.frontier import Rows, breadth_first


class Snapshot(NamedTuple):
    """A lookahead tree as it is now, compiled.

    Attributes:
      tree: the compiled game; `tree.frontier` tells where it ends before the game does.
      ids: int64 [N], the lasting number of each history; no other history has it, in
        any tree made of the same one.
      labels: for each player int32 [I], a number for each infoset, which lasts as long
        as the lookahead tree and all that was made of it.
    """

    tree: GameTree
    ids: np.ndarray
    labels: tuple[np.ndarray, np.ndarray]


def snapshot_of(
    rows: Rows, states: np.ndarray, simulator: LabelledSimulator
) -> Snapshot:
    """A lookahead tree as a compiled game, which ends at the frontier.

    If that is the whole game, it is what `build_tree` gives, bit for bit.

    Args:
      rows: the histories, ending at the frontier, with what they are worth there.
      states: [n, ...], of the histories.
      simulator: of the game.

    Raises:
      ImperfectRecallError: in what is there a player seems to forget something.
    """
    order, level_start = breadth_first(rows.first, rows.num_children)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    player, parent = rows.player[order], rows.parent[order]
    label, observation = np.full((2, len(order)), -1, np.int32)
    player_labels = []
    for p in range(2):
        acts = np.flatnonzero(player == p)
        histories_of = order[acts]
        labels, label[acts] = np.unique(rows.label[histories_of], return_inverse=True)
        _, observation[acts] = np.unique(
            rows.observation[histories_of], return_inverse=True
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
        """A player's information-state strings, on demand."""
        at = states[order[histories]]
        return infostate_strings.Strings(
            len(at),
            lambda number: simulator.strings(at[number : number + 1], player)[0],
            lambda: simulator.strings(at, player),
        )

    game, rules = simulator.game, simulator.rules
    histories, infosets, numbers = numbering.number(walked, game)
    if isinstance(rules, pyspiel.Game):
        keys = [
            strings_at(player_infosets.history, p)
            for p, player_infosets in enumerate(infosets)
        ]
    else:
        keys = [
            lazy_strings(game, rules, histories, player_infosets.history, p)
            for p, player_infosets in enumerate(infosets)
        ]
    tree = assemble(game, histories, infosets, keys, lazy=True)
    if rows.frontier.any():
        tree = dataclasses.replace(tree, frontier=rows.frontier[order])
    one, other = (
        histories_of[player_infosets]
        for histories_of, player_infosets in zip(player_labels, numbers, strict=True)
    )
    return Snapshot(tree, rows.id[order], (one, other))
