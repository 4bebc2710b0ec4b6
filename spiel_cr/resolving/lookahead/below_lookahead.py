"""The opponent's options below a lookahead tree, if these can be enumerated.

Below the tree the player follows its incumbent strategy, so the opponent faces one
fixed strategy. The game below is enumerated level by level, and only the opponent's
infosets and its gains are kept. The enumeration costs about as much as one solver
iteration would cost there, so the game below may have many times the histories of the
tree.
"""

from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.resolving.constraints import BelowLookahead
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.snapshot import TreeSnapshot


class Incumbent(Protocol):
    """An incumbent strategy: a blueprint, or earlier solutions above a blueprint."""

    def play(self, nodes: Nodes, player: int) -> np.ndarray:
        """See `Blueprint.play`."""


class _LevelBelow(NamedTuple):
    """Histories with the same number of moves.

    Attributes:
      nodes: The histories.
      weight: Probability of chance, and of the player below the tree, float64 [n].
      player_last: The player's last sequence in the tree, int64 [n].
      opponent_last: The opponent's extended sequence, see `BelowLookahead`, int64 [n].
    """

    nodes: Nodes
    weight: np.ndarray
    player_last: np.ndarray
    opponent_last: np.ndarray

    def select(self, chosen: np.ndarray) -> "_LevelBelow":
        nodes, *columns = self
        return _LevelBelow(
            nodes.select(chosen), *(column[chosen] for column in columns)
        )

    def append(self, more: "_LevelBelow") -> "_LevelBelow":
        nodes = Nodes(*map(_joined, self.nodes, more.nodes))
        return _LevelBelow(nodes, *map(_joined, self[1:], more[1:]))


def walk_below(
    lookahead: LookaheadTree,
    snapshot: TreeSnapshot,
    d: Decomposition,
    incumbent: Incumbent,
    most: int,
) -> BelowLookahead | None:
    """Enumerate the game below a lookahead tree, with the player's strategy fixed.

    Args:
      lookahead: The tree.
      snapshot: The tree as a game in tree form.
      d: Layers of that game.
      incumbent: Strategy of the player whose layers they are.
      most: Maximum number of histories.

    Returns:
      The opponent's infosets there, and its gains. None if there are more histories; if
      an infoset has histories both in the tree and below it; or if an infoset of the
      opponent has dropped histories, or follows different numbers of moves or extended
      sequences.
    """
    player, table = d.player, lookahead.table
    rows = table.frontier()
    order = np.argsort(snapshot.ids)
    at = order[np.searchsorted(snapshot.ids, table.id[rows], sorter=order)]
    frontier = _LevelBelow(
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
            labels.truncate(count)


def _walk(
    frontier: _LevelBelow,
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
    *last, gain = np.concatenate(ends, axis=1)
    first, second = (sequences.astype(np.int64) for sequences in last)
    gain *= 1.0 if d.player == 1 else -1.0
    return BelowLookahead(parent, num_actions, first, second, gain)


def _children(
    level: _LevelBelow, simulator: LabelledSimulator, player: int, incumbent: Incumbent
) -> _LevelBelow:
    """Return the next level, with the opponent's sequences of first actions."""
    if not len(level.player_last):
        return level
    nodes = level.nodes
    below, parents = simulator.children(nodes.states, nodes.player)
    place = ranges(0, np.bincount(parents))
    actor = nodes.player[parents]
    weight = level.weight[parents] * np.where(actor == CHANCE, below.factor, 1.0)
    if (acts := actor == player).any():
        acting = nodes.player == player
        weight[acts] *= incumbent.play(nodes.select(acting), player)
    opponent_last = level.opponent_last[parents] + np.where(
        actor == 1 - player, place, 0
    )
    return _LevelBelow(below, weight, level.player_last[parents], opponent_last)


def _joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.concatenate([first, second])
