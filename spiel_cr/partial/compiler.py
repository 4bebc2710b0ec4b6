"""Compiles the histories of a partial tree."""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.compilation import infostate_strings, numbering
from spiel_cr.compilation.replay import lazy_strings
from spiel_cr.compilation.tree import CompiledGame, Histories, assemble
from spiel_cr.partial.frontier import Rows, breadth_first
from spiel_cr.partial.nodes import NodeTable
from spiel_cr.partial.simulator import ArraySimulator, Simulator


class Uncompiled(NamedTuple):
    """A partial tree as far as compiling it needs it; see `PartialTree`.

    Attributes:
      rows: the histories, ending at the frontier, with what they are worth there.
      table, simulator, player, has_chance_root: of the tree.
    """

    rows: Rows
    table: NodeTable
    simulator: Simulator
    player: int | None
    has_chance_root: bool


class Snapshot(NamedTuple):
    """A partial tree as it is now, compiled.

    Attributes:
      tree: the compiled game; `tree.frontier` tells where it ends before the game does.
      ids: int64 [N], the lasting number of each history; no other history has it, in
        any tree made of the same one.
      labels: for each player int32 [I], a number for each infoset, which lasts as long
        as the partial tree and all that was made of it.
      cut: int64, histories at which it ends in public states, see `PartialTree.ends`;
        `tree` has them as terminals worth nothing, with what the opponent of who
        resolves has observed there.
    """

    tree: CompiledGame
    ids: np.ndarray
    labels: tuple[np.ndarray, np.ndarray]
    cut: np.ndarray


def snapshot_of(partial: Uncompiled) -> Snapshot:
    """A partial tree as a compiled game, which ends at the frontier.

    If that is the whole game, it is what `compile_game` gives, bit for bit.

    Raises:
      ImperfectRecallError: in what is there a player seems to forget something.
    """
    rows = partial.rows
    order, level_start = breadth_first(rows.first, rows.num_children)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    player, parent = rows.player[order], rows.parent[order]
    label, observation = np.full((2, len(order)), -1, np.int32)
    known = []
    for p in range(2):
        acts = np.flatnonzero(player == p)
        mine = order[acts]
        labels, label[acts] = np.unique(rows.label[mine], return_inverse=True)
        _, observation[acts] = np.unique(rows.observation[mine], return_inverse=True)
        known.append(labels)
    walked = Histories(
        parent=np.where(parent >= 0, rank[parent], np.int32(-1)),
        action=rows.action[order],
        player=player,
        infoset=label,
        observations=observation if partial.simulator.observations else None,
        sequence=np.zeros((2, 0), np.int32),
        chance=rows.chance[order],
        utility=rows.utility[order],
        level_start=level_start,
    )

    def key_at(history: int, player: int) -> str:
        return _strings(partial, order[[history]], player)[0]

    # Paths of a tree with a chance root cannot be replayed.
    histories, infosets, numbers = numbering.number(
        *(walked, partial.simulator.game),
        key_at=key_at if partial.has_chance_root else None,
    )
    cut = np.sort(rank[partial.table.cuts()]).astype(np.int64)
    if len(cut) and histories.observations is not None:
        _observe(partial, histories.observations, cut, order)
    keys = [
        _keys(partial, histories, own.history, order, p)
        for p, own in enumerate(infosets)
    ]
    tree = assemble(partial.simulator.game, histories, infosets, keys)
    if rows.frontier.any() or partial.has_chance_root:
        tree = dataclasses.replace(
            tree, frontier=rows.frontier[order], rooted=partial.has_chance_root
        )
    one, other = (mine[own] for mine, own in zip(known, numbers, strict=True))
    return Snapshot(tree, rows.id[order], (one, other), cut)


def _observe(
    partial: Uncompiled, observations: np.ndarray, cut: np.ndarray, order: np.ndarray
) -> None:
    """Notes what o knows at a cut, in numbers that nothing else has.

    Args:
      observations: int32 [N], of the compiled game; written to.
      cut: int64, histories.
      order: int64 [N], the row of each history.
    """
    assert partial.player is not None
    known = partial.table.known(order[cut], 1 - partial.player)
    _, number = np.unique(known, return_inverse=True)
    number = number.reshape(-1) + int(observations.max(initial=-1)) + 1
    observations[cut] = np.where(known < 0, -1, number)


def _keys(
    partial: Uncompiled,
    histories: Histories,
    first: np.ndarray,
    order: np.ndarray,
    player: int,
) -> infostate_strings.Strings:
    """A player's information-state strings, at the first histories of infosets."""
    if isinstance(partial.simulator, ArraySimulator) and not partial.has_chance_root:
        rules = partial.simulator.rules
        return lazy_strings(partial.simulator.game, rules, histories, first, player)
    return _strings(partial, order[first], player)


def _strings(
    partial: Uncompiled, rows: np.ndarray, player: int
) -> infostate_strings.Strings:
    """Information-state strings at some rows, on demand."""
    states, strings = partial.table.states[rows], partial.simulator.strings
    return infostate_strings.Strings(
        len(rows),
        lambda number: strings(states[number : number + 1], player)[0],
        lambda: strings(states, player),
    )
