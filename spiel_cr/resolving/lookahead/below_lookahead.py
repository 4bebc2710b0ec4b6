"""The opponent's options below a lookahead tree, if these can be enumerated.

The player goes on by its plan there, so the opponent meets one fixed strategy: the
rest of the game is walked level by level, and nothing of it is kept but the opponent's
infosets and what it gets. A walk costs what one iteration of a solver would cost there,
so the rest may have many times the histories of the tree.
"""

from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.resolving.constraints import BelowLookahead
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.snapshot import Snapshot


class Incumbent(Protocol):
    """How a player goes on: a blueprint, or what was solved and a blueprint."""

    def play(self, nodes: Nodes, player: int) -> np.ndarray:
        """See `Blueprint.play`."""


class _Level(NamedTuple):
    """Histories after equally many moves.

    Attributes:
      nodes: the histories.
      weight: float64 [n], probability of chance, and of the player beyond the frontier.
      player_last: int64 [n], the player's last sequence within the tree.
      opponent_last: int64 [n], the opponent's extended sequence, see
        `BelowLookahead`.
    """

    nodes: Nodes
    weight: np.ndarray
    player_last: np.ndarray
    opponent_last: np.ndarray

    def select(self, chosen: np.ndarray) -> "_Level":
        nodes, *columns = self
        return _Level(nodes.select(chosen), *(column[chosen] for column in columns))

    def append(self, more: "_Level") -> "_Level":
        nodes = Nodes(*map(_joined, self.nodes, more.nodes))
        return _Level(nodes, *map(_joined, self[1:], more[1:]))


def walk_below(
    lookahead: LookaheadTree,
    snapshot: Snapshot,
    d: Decomposition,
    incumbent: Incumbent,
    most: int,
) -> BelowLookahead | None:
    """Walks all that may follow the frontier if the player plays its plan.

    Args:
      lookahead: the tree.
      snapshot: it as a compiled game.
      d: the layers of that.
      incumbent: of the player whose layers they are.
      most: histories to walk at most.

    Returns:
      The opponent's infosets there, and what it gets; None: there are more histories,
      or an infoset has some in the tree and others beyond it, or the opponent's has
      some that were dropped, or comes after different numbers of moves or extended
      sequences.
    """
    player, table = d.player, lookahead.table
    rows = table.frontier()
    order = np.argsort(snapshot.ids)
    at = order[np.searchsorted(snapshot.ids, table.id[rows], sorter=order)]
    frontier = _Level(
        table.nodes(rows),
        table.chance[rows],
        d.tree.histories.sequence[player][at].astype(np.int64),
        d.extended[at].astype(np.int64),
    )
    simulator = LabelledSimulator(lookahead.simulator.source, observations=False)
    simulator.acting_labels = lookahead.simulator.acting_labels
    counts = [len(labels) for labels in simulator.acting_labels]
    visited = np.append(snapshot.labels[1 - player], lookahead.dropped)
    infosets = snapshot.labels[player], visited
    try:
        return _walk(
            frontier, table.depth[rows], simulator, d, infosets, incumbent, most
        )
    finally:
        for labels, count in zip(simulator.acting_labels, counts, strict=True):
            labels.forget(count)


def _walk(
    frontier: _Level,
    depth: np.ndarray,
    simulator: LabelledSimulator,
    d: Decomposition,
    infosets: tuple[np.ndarray, np.ndarray],
    incumbent: Incumbent,
    most: int,
) -> BelowLookahead | None:
    player_infosets, visited = infosets  # Infosets of the player and of the opponent.
    sequences = d.tree.infosets[1 - d.player].decisions.num_sequences
    sequences += len(d.augmented_layer)
    points, ends = [np.zeros((2, 0), np.int64)], [np.zeros((3, 0))]
    level, walked = frontier.select(depth < 0), 0
    for moves in range(int(depth.min(initial=0)), 1 << 30):
        level = level.append(frontier.select(depth == moves))
        walked += len(level.player_last)
        if walked > most:
            return None
        over = level.nodes.player == TERMINAL
        gain = level.weight * level.nodes.utility
        columns = [level.player_last, level.opponent_last, gain]
        ends.append(np.stack(columns)[:, over])
        level = level.select(~over & (level.weight > 0))
        if not len(level.player_last) and not (depth > moves).any():
            break
        label, actor = level.nodes.label, level.nodes.player
        if np.isin(label[actor == d.player], player_infosets).any():
            return None
        acts = actor == 1 - d.player
        if acts.any():
            labels, first, group = np.unique(
                label[acts], return_index=True, return_inverse=True
            )
            parent = level.opponent_last[acts][first]
            differs = parent[group] != level.opponent_last[acts]
            if np.isin(labels, visited).any() or differs.any():
                return None
            visited = np.append(visited, labels)
            num_actions = level.nodes.num_actions[acts][first].astype(np.int64)
            points.append(np.stack([parent, num_actions]))
            begins = sequences + np.cumsum(num_actions) - num_actions
            level.opponent_last[acts] = begins[group]
            sequences += int(num_actions.sum())
        level = _children(level, simulator, d.player, incumbent)
    parent, num_actions = np.concatenate(points, axis=1)
    player_last, opponent_last, gain = np.concatenate(ends, axis=1)
    sign = 1.0 if d.player == 1 else -1.0
    return BelowLookahead(
        parent,
        num_actions,
        player_last.astype(np.int64),
        opponent_last.astype(np.int64),
        sign * gain,
    )


def _children(
    level: _Level, simulator: LabelledSimulator, player: int, incumbent: Incumbent
) -> _Level:
    """What comes next; the opponent's sequences are those of its first actions."""
    if not len(level.player_last):
        return level
    nodes = level.nodes
    below, parents = simulator.children(nodes.states, nodes.player)
    begins = np.flatnonzero(np.diff(parents, prepend=-1))
    place = np.arange(len(parents)) - np.repeat(
        begins, np.diff([*begins, len(parents)])
    )
    actor = nodes.player[parents]
    weight = level.weight[parents] * np.where(actor == CHANCE, below.factor, 1.0)
    if (acts := actor == player).any():
        acting = nodes.player == player
        weight[acts] *= incumbent.play(nodes.select(acting), player)
    opponent_last = level.opponent_last[parents] + np.where(
        actor == 1 - player, place, 0
    )
    return _Level(below, weight, level.player_last[parents], opponent_last)


def _joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.concatenate([first, second])
