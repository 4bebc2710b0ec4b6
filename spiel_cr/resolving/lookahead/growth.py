"""Where a lookahead tree grows next, by how both players play in their blueprint.

Exploration is one-sided
(Zhang & Sandholm 2025, "General search techniques without common knowledge for
imperfect-information games, and application to superhuman Fog of War chess"): a history
matters by what one player's strategy, and chance, do to reach it, whatever the other
one does. So all answers to the blueprint are seen, and what both players would have
to change together is not.
"""

import time
from collections.abc import Callable

import numpy as np

from spiel_cr.common.arrays import groups, joint_components
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.simulation.labelled import LabelledSimulator
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.node_table import NodeTable

# Of the room that is left, this share is given away at a time.
_SHARE = 0.25


def grow(
    table: NodeTable,
    simulator: LabelledSimulator,
    most: int,
    *,
    blueprint: Blueprint | None,
    deadline: float | None,
) -> None:
    """Expands public states in order of how much they matter, on all levels.

    All histories of the frontier that a player cannot tell from one that is expanded
    are expanded with it: so the tree ends between public states, and what the opponent
    gets beyond it can be told (`beyond.py`). Public states that do not fit are left
    out; where one fits and what must come with it does not, none is expanded after it,
    although less urgent ones might fit.

    Chance moves are expanded, and further histories of infosets that are expanded
    already, as soon as they are met: none of these is at the frontier.

    Args:
      table: the histories; `player_reach` and `spread` say how much they matter.
      simulator: of the game.
      most: rows to have at most.
      blueprint: how players go; None: alike everywhere.
      deadline: by `time.perf_counter`; after it no more is expanded than was begun.
    """

    def expand(rows: np.ndarray) -> None:
        table.expand_rows(simulator, rows)
        if blueprint is not None:
            _follow(table, rows, blueprint)

    share, taken = _SHARE, 0
    while True:
        if not _complete(table, expand, most):
            # Too much has to come with what was expanded last.
            table.truncate(table.marks[-1])
            share /= 4
            if taken <= 1:
                return
        elif table.used > table.marks[-1]:
            table.marks.append(table.used)
        left, frontier = most - table.used, table.frontier()
        if is_late(deadline) or not len(frontier) or left <= 0:
            return
        rows, taken = _choose(table, frontier, left, int(share * left))
        if not taken:
            return
        expand(rows)


def is_late(deadline: float | None) -> bool:
    """Whether a time by `time.perf_counter` is over; None: it never is."""
    return deadline is not None and time.perf_counter() > deadline


def urgency(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """float64 [n], how much histories matter; only their ratios mean something."""
    first, second = table.player_reach[rows].T
    weight = table.chance[rows] * table.spread[rows]
    return weight * (first / _total(first) + second / _total(second))


def _total(reach: np.ndarray) -> float:
    return float(reach.sum()) or 1.0


def _choose(
    table: NodeTable, frontier: np.ndarray, budget: int, share: int
) -> tuple[np.ndarray, int]:
    """Rows of the public states that matter most; of how many.

    Args:
      table: the histories.
      frontier: rows that can be expanded.
      budget: how many children one may have.
      share: how many all of them may have; of one, more.
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
    """int64 [n], equal where players may take rows for each other, none of chance."""
    _, infoset = np.unique(table.infosets(rows), return_inverse=True)
    other = 1 - table.player[rows].astype(np.int64)
    information = np.stack(
        [other, _last_step(table, rows, other), table.observation[rows]]
    )
    _, seen = np.unique(information, axis=1, return_inverse=True)
    shape = int(infoset.max(initial=-1)) + 1, int(seen.max(initial=-1)) + 1
    joined = joint_components(infoset, seen.reshape(-1), shape).rows
    return groups(joined[infoset])


def _last_step(table: NodeTable, rows: np.ndarray, player: np.ndarray) -> np.ndarray:
    """int64 [n], numbers for what a player did last and knew then; -1: nothing.

    Args:
      table: the histories.
      rows: int64 [n].
      player: int64 [n], whose step, for each row.
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
    """Expands what must come with what is expanded; False: there is no room."""
    while len(rows := _due(table)):
        if table.used + int(table.num_actions[rows].sum()) > limit:
            return False
        expand(rows)
    return True


def _follow(table: NodeTable, rows: np.ndarray, blueprint: Blueprint) -> None:
    """Says how likely both players are to play to the children of some rows."""
    for p in range(2):
        decisions = rows[table.player[rows] == p]
        if len(decisions):
            children = table.children(decisions)
            probabilities = blueprint.play(table.nodes(decisions), p)
            reach = table.player_reach[table.parent[children], p]
            table.player_reach[children, p] = reach * probabilities


def _due(table: NodeTable) -> np.ndarray:
    """int64, rows that must not be at the frontier."""
    frontier = table.frontier()
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    infosets = np.unique(table.infosets(expanded))
    due = np.isin(table.infosets(frontier), infosets)
    due |= table.player[frontier] == CHANCE
    seen = 2 * table.observation[: table.used].astype(np.int64)
    seen += table.player[: table.used]
    due |= (seen[frontier] >= 0) & np.isin(seen[frontier], seen[expanded])
    return frontier[due]
