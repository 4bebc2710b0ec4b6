"""Growth of a lookahead tree, guided by both players' blueprints.

Exploration is one-sided (Zhang & Sandholm 2025, "General search techniques without
common knowledge for imperfect-information games, and application to superhuman Fog of
War chess"): the urgency of a history is one player's reach probability times that of
chance, whatever the other player does. All answers to the blueprint are therefore
expanded, but not histories that need deviations of both players.
"""

import time
from collections.abc import Callable

import numpy as np

from spiel_cr.common.arrays import groups, joint_components
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.simulation.labelled import LabelledSimulator
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.node_table import NodeTable

# Share of the remaining capacity that one round of expansions may use.
_SHARE = 0.25


def grow(
    table: NodeTable,
    simulator: LabelledSimulator,
    most: int,
    *,
    blueprint: Blueprint | None,
    deadline: float | None,
) -> None:
    """Expand public states in order of urgency, on all levels.

    All histories at the frontier that a player cannot distinguish from an expanded
    history are expanded with it. The tree therefore ends between public states, and the
    opponent's gains below it are well defined (`below_lookahead.py`). Public states
    that do not fit are skipped. If a public state fits but its required expansions do
    not, growth stops, although less urgent ones might fit.

    Chance nodes, and further histories of expanded infosets, are expanded immediately:
    none of these is at the frontier.

    Args:
      table: The histories; `player_reach` and `spread` determine the urgency.
      simulator: Simulator of the game.
      most: Maximum number of rows.
      blueprint: Strategy of both players; uniform if None.
      deadline: Deadline by `time.perf_counter`, after which no further expansion
        starts.
    """

    def expand(rows: np.ndarray) -> None:
        table.expand_rows(simulator, rows)
        if blueprint is not None:
            _follow(table, rows, blueprint)

    share, taken = _SHARE, 0
    while True:
        if not _complete(table, expand, most):
            # The expansions that the last round requires do not fit: undo the round,
            # and try a smaller one.
            table.truncate(table.marks[-1])
            share /= 4
            if taken <= 1:
                return
        elif table.used > table.marks[-1]:
            table.marks.append(table.used)
        left, frontier = most - table.used, table.frontier()
        if has_passed(deadline) or not len(frontier) or left <= 0:
            return
        rows, taken = _choose(table, frontier, left, int(share * left))
        if not taken:
            return
        expand(rows)


def has_passed(deadline: float | None) -> bool:
    """Return whether a `time.perf_counter` deadline has passed; None never does."""
    return deadline is not None and time.perf_counter() > deadline


def urgency(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """Return how urgent histories are, float64 [n]; only ratios are meaningful."""
    first, second = table.player_reach[rows].T
    weight = table.chance[rows] * table.spread[rows]
    return weight * (first / _total(first) + second / _total(second))


def _total(reach: np.ndarray) -> float:
    return float(reach.sum()) or 1.0


def _choose(
    table: NodeTable, frontier: np.ndarray, budget: int, share: int
) -> tuple[np.ndarray, int]:
    """Choose the most urgent public states; return their rows, and how many they are.

    Args:
      table: The histories.
      frontier: Rows that can be expanded.
      budget: Maximum number of children of one public state.
      share: Maximum number of children of all of them, unless there is only one.
    """
    group = public_states(table, frontier)
    cost = np.bincount(group, table.num_actions[frontier])
    gain = np.bincount(group, urgency(table, frontier))
    order = np.argsort(-gain, kind="stable")
    order = order[cost[order] <= budget]
    fits = int(np.searchsorted(np.cumsum(cost[order]), share, "right"))
    order = order[: max(fits, 1)]
    chosen = np.zeros(len(cost), bool)
    chosen[order] = True
    return frontier[chosen[group]], len(order)


def public_states(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """Return the public state of rows, int64 [n]; none may be a chance node."""
    _, infoset = np.unique(table.infosets(rows), return_inverse=True)
    other = 1 - table.player[rows].astype(np.int64)
    information = np.stack(
        [other, last_step(table, rows, other), table.observation[rows]]
    )
    _, seen = np.unique(information, axis=1, return_inverse=True)
    shape = int(infoset.max(initial=-1)) + 1, int(seen.max(initial=-1)) + 1
    joined = joint_components(infoset, seen.reshape(-1), shape).rows
    return groups(joined[infoset])


def last_step(table: NodeTable, rows: np.ndarray, player: np.ndarray) -> np.ndarray:
    """Return numbers for a player's last action and infoset, int64 [n]; -1: none.

    Args:
      table: The histories.
      rows: Rows, int64 [n].
      player: The player, for each row, int64 [n].
    """
    most = 1 + int(table.action[: table.used].max(initial=0))
    step, below, above = np.full(len(rows), -1), rows, table.parent[rows].astype(int)
    while (above >= 0).any():
        acted = (above >= 0) & (table.player[above] == player)
        taken = table.label[above].astype(np.int64) * most + table.action[below]
        step = np.where(acted, taken, step)
        above = np.where(acted | (above < 0), -1, above)
        below, above = above, np.where(above >= 0, table.parent[above], -1)
    return step


def _complete(
    table: NodeTable, expand: Callable[[np.ndarray], None], limit: int
) -> bool:
    """Expand all histories that must be expanded; return False if they do not fit."""
    while len(rows := _due(table)):
        if table.used + int(table.num_actions[rows].sum()) > limit:
            return False
        expand(rows)
    return True


def _follow(table: NodeTable, rows: np.ndarray, blueprint: Blueprint) -> None:
    """Fill in both players' reach probabilities of the children of some rows."""
    for p in range(2):
        decisions = rows[table.player[rows] == p]
        if len(decisions):
            children = table.children(decisions)
            probabilities = blueprint.play(table.nodes(decisions), p)
            reach = table.player_reach[table.parent[children], p]
            table.player_reach[children, p] = reach * probabilities


def _due(table: NodeTable) -> np.ndarray:
    """Return rows that must not be at the frontier, int64."""
    frontier = table.frontier()
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    infosets = np.unique(table.infosets(expanded))
    due = np.isin(table.infosets(frontier), infosets)
    due |= table.player[frontier] == CHANCE
    seen = 2 * table.observation[: table.used].astype(np.int64)
    seen += table.player[: table.used]
    due |= (seen[frontier] >= 0) & np.isin(seen[frontier], seen[expanded])
    return frontier[due]
