"""Second stage, a growing tree: which histories are expanded, infosets always whole."""

import time

import numpy as np

from spiel_cr.partial.nodes import Rows
from spiel_cr.partial.simulator import Source

# Growing ends when more histories than this could not be expanded, for want of room for
# what would have to be expanded with them.
_MOST_REFUSED = 100


def expand(
    rows: Rows,
    source: Source,
    limit: int,
    *,
    best_first: bool,
    deadline: float | None,
) -> bool:
    """Expands histories, all those of an infoset on one level or none.

    Args:
      rows: the histories; changed.
      source: of the game.
      limit: rows to have at most.
      best_first: see `growing.PartialTree.grow`.
      deadline: likewise.

    Returns:
      Whether there is nothing left to expand.
    """
    begun, refused = False, np.zeros(0, np.int64)
    while len(frontier := rows.frontier()):
        frontier = np.setdiff1d(frontier, refused, assume_unique=True)
        if not best_first and len(frontier):
            depth = rows.depth[frontier]
            frontier = frontier[depth == depth.min()]
        if not len(frontier) or len(refused) > _MOST_REFUSED:
            return False
        before, done = len(refused), 0
        chosen = rows.choose(frontier, limit - rows.used, best_first=best_first)
        while chosen:
            late = deadline is not None and time.perf_counter() > deadline
            if begun and late:
                return False
            some = chosen.pop(0)
            if _expand_whole(rows, source, some, limit):
                begun, done = True, done + len(some)
            elif len(parts := rows.halves(some)) > 1:
                chosen[:0] = parts
            else:
                refused = np.append(refused, some)
        stuck = not done and len(refused) == before
        if stuck or (not best_first and done < len(frontier)):
            return False
    return True


def _expand_whole(rows: Rows, source: Source, some: np.ndarray, limit: int) -> bool:
    """Expands infosets and what that obliges to; if there is no room, nothing.

    Where growing goes deep early, histories of an infoset may be found after others of
    it, on the same level, were expanded.
    """
    begun, marks = rows.used, rows.ends(some)
    done = np.flatnonzero(rows.first[:begun] >= 0)
    # Only infosets at least as deep as the children can be among these.
    done = done[rows.depth[done] > rows.depth[some].min()]
    expanded = rows.codes(np.append(done, some), levels=True)
    while len(some):
        since = rows.used
        if since + int(rows.legal[some].sum()) > limit:
            rows.cut(begun)
            return False
        nodes, where = source.children(rows.states(some), rows.player[some])
        counts = np.bincount(where, minlength=len(some))
        rows.first[some] = since + np.cumsum(counts) - counts
        rows.append(nodes, some[where])
        some = rows.obliged(since, expanded)
        if len(some):
            marks = marks[:0]
            expanded = np.append(expanded, rows.codes(some, levels=True))
    rows.marks += marks.tolist() or [rows.used]
    return True
