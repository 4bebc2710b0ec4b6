"""A lookahead tree ends at its frontier, where the opponent may choose how it goes on.

With several values for a history (`resolving/leaves/continuations.py`) the opponent of
the resolving player decides there, once for all histories that it cannot tell apart,
which of its continuations it plays. So a frontier history becomes a decision of the
opponent with an action for each of them, and what comes after it is a terminal.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import TERMINAL

# An infoset where the opponent chooses has the label _FIRST - (3 x + kind): x is the
# number of what it knows there.
_FIRST = -2
_ACTING, _WAITING, _LAST_STEP = range(3)


class Rows(NamedTuple):
    """Histories in any order, as a lookahead tree is compiled.

    Attributes:
      id: int64 [n], numbers that last; negative for what no table has.
      parent: int32 [n], -1 at the root.
      first, num_children: int64 [n], the first child and how many there are; 0: none.
      action, player, label, observation, chance, utility: as in `NodeTable`; TERMINAL
        where the tree ends.
      frontier: bool [n], whether the tree ends there before the game does.
    """

    id: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    num_children: np.ndarray
    action: np.ndarray
    player: np.ndarray
    label: np.ndarray
    observation: np.ndarray
    chance: np.ndarray
    utility: np.ndarray
    frontier: np.ndarray


def breadth_first(
    first: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of compiled games, int64 [n], and where levels begin.

    Args:
      first, count: `Rows.first` and `num_children`; the root is row 0.
    """
    levels = [np.zeros(1, np.int64)]
    while len(parents := levels[-1][count[levels[-1]] > 0]):
        levels.append(ranges(first[parents], count[parents]))
    sizes = [len(level) for level in levels]
    return np.concatenate(levels), np.concatenate([[0], np.cumsum(sizes)])


def with_choices(
    rows: Rows,
    leaves: np.ndarray,
    values: np.ndarray,
    acting: np.ndarray,
    label: np.ndarray,
    observation: np.ndarray,
    chooser: int,
) -> Rows:
    """The rows with a decision of the opponent at each history of the frontier.

    Args:
      rows: ending at the frontier.
      leaves: int64 [L], the frontier.
      values: float64 [L, k], player 0's utility there.
      acting: int8 [L], who acts there in the game.
      label, observation: int32 [L], as of `Nodes`.
      chooser: the opponent.
    """
    count, k = len(rows.id), values.shape[1]
    begins = count + k * np.arange(len(leaves))
    acts = acting == chooser
    information = np.where(acts, label, observation).astype(np.int64)
    kind = np.where(acts, _ACTING, _WAITING)
    has_information = information >= 0
    last = _last_step_of(rows, chooser)[leaves]
    information, kind = (
        np.where(has_information, information, last),
        np.where(has_information, kind, _LAST_STEP),
    )
    rows = Rows(*(column.copy() for column in rows))
    rows.player[leaves] = chooser
    rows.frontier[leaves] = False
    rows.first[leaves], rows.num_children[leaves] = begins, k
    labels = rows.label.astype(np.int64)
    labels[leaves] = _FIRST - (3 * information + kind)
    # What the other one knows there as who acts, apart from what it knows as who waits.
    seen = rows.observation.astype(np.int64)
    seen[leaves] = np.where(acts, seen[leaves], _FIRST - label)
    parent = np.repeat(leaves, k)
    nothing = np.full(len(parent), -1)
    added = Rows(
        id=-1 - (k * rows.id[parent] + np.tile(np.arange(k), len(leaves))),
        parent=parent,
        first=nothing,
        num_children=np.zeros(len(parent), np.int64),
        action=np.tile(np.arange(k), len(leaves)),
        player=np.full(len(parent), TERMINAL),
        label=nothing,
        observation=nothing,
        chance=rows.chance[parent],
        utility=values.reshape(-1),
        frontier=np.ones(len(parent), bool),
    )
    rows = rows._replace(label=labels, observation=seen)
    columns = zip(rows, added, strict=True)
    return Rows(
        *(np.append(column, new.astype(column.dtype)) for column, new in columns)
    )


def _last_step_of(rows: Rows, player: int) -> np.ndarray:
    """int64 [n], numbers for what a player did last and knew then."""
    acts = rows.player == player
    step = np.zeros(len(rows.id), np.int64)
    below = np.flatnonzero(rows.parent >= 0)
    parent = rows.parent[below]
    most = int(rows.action.max(initial=0)) + 1
    step[below] = np.where(
        acts[parent],
        1 + rows.label[parent].astype(np.int64) * most + rows.action[below],
        0,
    )
    order, starts = breadth_first(rows.first, rows.num_children)
    for begin, end in zip(starts[1:-1], starts[2:], strict=True):
        level = order[begin:end]
        step[level] = np.where(step[level] > 0, step[level], step[rows.parent[level]])
    return step
