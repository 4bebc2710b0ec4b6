"""Where a partial tree grows next, by how both players play in it so far.

Growing-tree CFR (Schmid et al. 2023, "Student of Games") takes turns between solving a
tree and expanding it where the strategies found lead. Exploration is one-sided
(Zhang & Sandholm 2025, "General search techniques without common knowledge for
imperfect-information games, and application to superhuman Fog of War chess"): a history
matters by what one player's strategy, and chance, do to reach it, whatever the other
one does. So all answers to the strategies found are seen, and what both players would
have to change together is not.
"""

import time

import numpy as np

from spiel_cr.common.arrays import groups, joint_components
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.stepping.labelled import LabelledSimulator
from spiel_cr.resolving.partial.nodes import NodeTable

# Of the room that is left, this share is given away at a time.
_SHARE = 0.25
# Where whole public states fill less than this share of the room, infosets follow.
_FILLED = 0.5


def grow(
    table: NodeTable,
    simulator: LabelledSimulator,
    limit: int,
    *,
    most: int,
    player: int | None,
    deadline: float | None,
) -> None:
    """Expands public states in order of how much they matter, on all levels.

    Where somebody resolves, all histories of the frontier that a player cannot tell
    from one that is expanded are expanded with it: so the tree ends between public
    states, and can be resolved beyond its end by what was promised there. Public states
    that do not fit are left out; where one fits and what must come with it does not,
    none is expanded after it, although less urgent ones might fit. Where that leaves
    much room, and where nobody resolves, infosets are expanded instead.

    Chance moves are expanded, and further histories of infosets that are expanded
    already, as soon as they are met: none of these is at the frontier.

    Args:
      table: the histories; `own_reach` and `spread` say how much they matter.
      simulator: of the game.
      limit: rows to have; more only where they come with what is chosen.
      most: rows to have at most.
      player: who resolves. Its decisions that the opponent cannot tell from those
        that are expanded are expanded with them: else the opponent would learn at the
        frontier what the player hides. None: nobody.
      deadline: by `time.perf_counter`; after it no more is expanded than was begun.
    """
    begun, closed = table.used, player is not None
    share, taken = _SHARE, 0
    while True:
        if stuck := not complete(table, simulator, most, player, closed=closed):
            # Too much has to come with what was expanded last.
            table.truncate(table.marks[-1])
            share, stuck = share / 4, taken <= 1
        elif table.used > table.marks[-1]:
            table.marks.append(table.used)
        frontier = table.frontier()
        if is_late(deadline) or not len(frontier) or table.used >= limit:
            return
        if not stuck:
            fits = (most if closed else limit) - table.used
            rows, taken = _choose(
                *(table, frontier, fits, int(share * (limit - table.used))),
                closed=closed,
            )
            stuck = not taken
        if not stuck:
            table.expand_rows(simulator, rows)
        elif closed and table.used - begun < _FILLED * (most - begun):
            closed, share, taken = False, _SHARE, 0
        else:
            return


def is_late(deadline: float | None) -> bool:
    """Whether a time by `time.perf_counter` is over; None: it never is."""
    return deadline is not None and time.perf_counter() > deadline


def urgency(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """float64 [n], how much histories matter; only their ratios mean something."""
    first, second = table.own_reach[rows].T
    weight = table.chance[rows] * table.spread[rows]
    return weight * (first / _total(first) + second / _total(second))


def _total(reach: np.ndarray) -> float:
    return float(reach.sum()) or 1.0


def _choose(
    table: NodeTable, frontier: np.ndarray, budget: int, share: int, *, closed: bool
) -> tuple[np.ndarray, int]:
    """Rows of the infosets, or public states, that matter most; of how many.

    Args:
      table: the histories.
      frontier: rows that can be expanded.
      budget: how many children one may have.
      share: how many all of them may have; of one, more.
      closed: of public states.
    """
    if closed:
        group = public_states(table, frontier)
    else:
        group = groups(table.infosets(frontier))
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
    code = table.observation[rows].astype(np.int64) * 2 + table.player[rows]
    seen = np.where(table.observation[rows] < 0, -1 - infoset, code)
    _, seen = np.unique(seen, return_inverse=True)
    shape = int(infoset.max(initial=-1)) + 1, int(seen.max(initial=-1)) + 1
    joined = joint_components(infoset, seen, shape).rows
    return groups(joined[infoset])


def complete(
    table: NodeTable,
    simulator: LabelledSimulator,
    limit: int,
    player: int | None,
    *,
    closed: bool,
) -> bool:
    """Expands what must come with what is expanded; False: there is no room."""
    while len(rows := _due(table, player, closed)):
        if table.used + int(table.num_actions[rows].sum()) > limit:
            return False
        table.expand_rows(simulator, rows)
    return True


def _due(table: NodeTable, player: int | None, closed: bool) -> np.ndarray:
    """int64, rows that must not be at the frontier."""
    frontier = table.frontier()
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    known = np.unique(table.infosets(expanded))
    due = np.isin(table.infosets(frontier), known)
    due |= table.player[frontier] == CHANCE
    for p in (0, 1) if closed else (player,) if player is not None else ():
        own = table.player[frontier] == p
        seen = table.observation[expanded[table.player[expanded] == p]]
        due |= own & np.isin(table.observation[frontier], seen[seen >= 0])
    return frontier[due]


def grow_to(
    table: NodeTable,
    simulator: LabelledSimulator,
    player: int,
    target: int,
    limit: int,
    *,
    deadline: float | None,
) -> bool:
    """Expands what leads to a decision, and to all that players take for it.

    That is what the player cannot tell from it, what the opponent cannot tell from
    these, and so on; of ways that lead elsewhere, those on which the opponent knows the
    same and does the same.

    Args:
      table: the histories.
      simulator: of the game.
      player: who decides; it has no decision before.
      target: the label of the decision.
      limit: rows to have at most.
      deadline: by `time.perf_counter`; None: none.

    Returns:
      Whether the decision is in the tree now, and expanded, in time.
    """
    while not is_late(deadline):
        own = table.player[: table.used] == player
        roots = alike(
            table, np.flatnonzero(own & (table.label[: table.used] == target))
        )
        steps = _steps(table, 1 - player)
        ways = np.unique(steps[_above(table, roots)])
        # Until the decision is found, anything that the opponent does.
        live = (steps == -1) | np.isin(steps, ways[ways >= 0]) | (not len(roots))
        live = reached(table, live)
        rows = np.flatnonzero(live & (table.first[: table.used] < 0) & ~own)
        rows = rows[table.num_actions[rows] > 0]
        if done := not len(rows):
            rows = roots[table.first[roots] < 0]
        if table.used + int(table.num_actions[rows].sum()) > limit:
            return False
        table.expand_rows(simulator, rows)
        if done:
            table.marks.append(table.used)
            return len(roots) > 0
    return False


def alike(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """int64, some rows and all that players take for them, or for these, and so on."""
    number = np.arange(table.used)
    player, label = table.player[: table.used], table.label[: table.used]
    seen = table.observation[: table.used]
    chosen = np.isin(number, rows)
    while True:
        more = chosen.copy()
        for p in range(2):
            acts = player == p
            more |= acts & np.isin(label, label[chosen & acts])
            known = seen[more & acts]
            more |= acts & np.isin(seen, known[known >= 0])
        if (more == chosen).all():
            return np.flatnonzero(chosen)
        chosen = more


def _steps(table: NodeTable, player: int) -> np.ndarray:
    """int64 [used], numbers for what a player did and knew; -1 where another moved."""
    parent, action = table.parent[: table.used], table.action[: table.used]
    moved = (parent >= 0) & (table.player[parent] == player)
    before, most = table.label[parent].astype(np.int64), 1 + int(action.max())
    return np.where(moved, before * most + action, -1)


def _above(table: NodeTable, rows: np.ndarray) -> np.ndarray:
    """bool [used], some rows and all that lead to them."""
    above = np.zeros(table.used, bool)
    while len(rows):
        above[rows] = True
        rows = np.unique(table.parent[rows])
        rows = rows[rows >= 0]
        rows = rows[~above[rows]]
    return above


def reached(table: NodeTable, taken: np.ndarray) -> np.ndarray:
    """bool [used], rows that moves lead to which are all taken."""
    reached, parent = taken.copy(), table.parent[: table.used]
    depth = table.depth[: table.used]
    for level in range(1, int(depth.max()) + 1):
        rows = np.flatnonzero(depth == level)
        reached[rows] &= reached[parent[rows]]
    return reached
