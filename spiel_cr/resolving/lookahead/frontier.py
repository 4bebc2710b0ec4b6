"""The opponent's choice of a continuation strategy at a lookahead tree's frontier.

With several values per history (`resolving/leaves/continuations.py`) the opponent
chooses a continuation strategy there, once for all histories that it cannot
distinguish. A history at the frontier becomes a decision of the opponent with one
action for each continuation strategy, and the histories after it are terminal.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.histories import TERMINAL

# An infoset at which the opponent chooses a continuation strategy has the label
# _FIRST - (3 x + kind), where x is the number of the opponent's information there.
_FIRST = -2
_ACTING, _WAITING, _LAST_STEP = range(3)


class TreeRows(NamedTuple):
    """Histories in any order, from which a snapshot is made.

    Attributes:
      id: Permanent ids, int64 [n]; negative for histories that are not in a
        `NodeTable`.
      parent: Row of the parent, int32 [n]; -1 at the root.
      first: Row of the first child, int64 [n]; undefined without children.
      num_children: Number of children, int64 [n].
      action, player, label, observation, chance, utility: Columns of `NodeTable`, [n];
        `player` is TERMINAL at the end of the tree, and `utility` is player 0's.
      frontier: Whether the tree ends there before the game does, bool [n].
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
    """Return rows in the order of game trees, int64 [n], and where levels begin.

    Args:
      first, count: `TreeRows.first` and `num_children`; the root is row 0.
    """
    levels = [np.zeros(1, np.int64)]
    while len(parents := levels[-1][count[levels[-1]] > 0]):
        levels.append(ranges(first[parents], count[parents]))
    sizes = [len(level) for level in levels]
    return np.concatenate(levels), np.concatenate([[0], np.cumsum(sizes)])


def with_choices(
    rows: TreeRows,
    leaves: np.ndarray,
    values: np.ndarray,
    acting: np.ndarray,
    knowledge: tuple[np.ndarray, np.ndarray, np.ndarray],
    chooser: int,
) -> TreeRows:
    """Return rows with a decision of the opponent at each history of the frontier.

    Args:
      rows: Rows that end at the frontier.
      leaves: Rows of the frontier, int64 [L].
      values: Player 0's utility there, float64 [L, k].
      acting: The player that acts there in the game, int8 [L].
      knowledge: Labels and observations, as in `Nodes`, int32 [L], and the opponent's
        last steps, see `growth.last_step`, int64 [L].
      chooser: The opponent.
    """
    count, k = len(rows.id), values.shape[1]
    label, observation, last_step = knowledge
    begins = count + k * np.arange(len(leaves))
    acts = acting == chooser
    information = np.where(acts, label, observation).astype(np.int64)
    kind = np.where(acts, _ACTING, _WAITING)
    missing = information < 0
    information[missing] = 1 + last_step[missing]
    kind[missing] = _LAST_STEP
    rows = TreeRows(*(column.copy() for column in rows))
    rows.player[leaves] = chooser
    rows.frontier[leaves] = False
    rows.first[leaves], rows.num_children[leaves] = begins, k
    labels = rows.label.astype(np.int64)
    labels[leaves] = _FIRST - (3 * information + kind)
    # The re-solving player's information: its own label where it would act in the game,
    # in a range of numbers that is separate from the observations where it waits.
    seen = rows.observation.astype(np.int64)
    seen[leaves] = np.where(acts, seen[leaves], _FIRST - label)
    parent = np.repeat(leaves, k)
    nothing = np.full(len(parent), -1)
    added = TreeRows(
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
    return TreeRows(*(np.append(old, new.astype(old.dtype)) for old, new in columns))
