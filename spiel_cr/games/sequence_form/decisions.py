"""Parts of a game in sequence form: two trees of decisions, and payoffs between them.

All numbers are logical (see `games.tree.tree`). `layout` maps them to positions in the
solvers' arrays.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import order_pairs, ranges
from spiel_cr.common.messages import short_repr


@dataclasses.dataclass(frozen=True, repr=False)
class Decisions:
    """One player's decision points, in logical numbers.

    Attributes:
      parent: The player's last sequence before each infoset, int32 [I].
      num_actions: Number of actions, at least 1, int32 [I].
    """

    __repr__ = short_repr

    parent: np.ndarray
    num_actions: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def num_sequences(self) -> int:
        """Number of sequences: the empty one, and one per action of each infoset."""
        return 1 + int(self.num_actions.sum())

    @property
    def first_sequence(self) -> np.ndarray:
        """Sequence of each infoset's first action, int32 [I]."""
        return first_sequences(self.num_actions)

    def sequences_of(self, infosets: np.ndarray) -> np.ndarray:
        """Return the sequences of some infosets, one infoset after another, int64."""
        return ranges(self.first_sequence[infosets], self.num_actions[infosets])

    @property
    def owner(self) -> np.ndarray:
        """Infoset at which each sequence ends, int32 [S]; -1 for the empty sequence."""
        infosets = np.arange(len(self), dtype=np.int32)
        return np.append(np.int32(-1), np.repeat(infosets, self.num_actions))

    def levels(self) -> np.ndarray:
        """Return the number of the player's decisions before infosets, int32 [I]."""
        # Rounds of pointer doubling: `ancestor` is 1, 2, 4, ... infosets above, and
        # `level` counts the infosets on the way; I stands for "above the root".
        root = len(self)
        ancestor = np.append(self.owner[self.parent], np.int32(root))
        ancestor[ancestor < 0] = root
        level = (ancestor < root).astype(np.int32)
        while (ancestor < root).any():
            level += level[ancestor]
            ancestor = ancestor[ancestor]
        return level[:-1]

    def downwards(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the infosets of each level and their sequences, the first level first.

        Both are in ascending order, so the sequences of an infoset are contiguous.
        """
        levels = self.levels()
        # Level -1 holds the empty sequence, which `owner` maps to the appended -1.
        levels = np.append(levels, np.int32(-1))
        parts = []
        for numbers in (levels, levels[self.owner]):
            ends = np.cumsum(np.bincount(1 + numbers))[:-1]
            parts.append(np.split(np.argsort(numbers, kind="stable"), ends)[1:])
        return list(zip(*parts, strict=True))

    def upwards(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the infosets of each level and their sequences, last level first."""
        return reversed(self.downwards())


def first_sequences(num_actions: np.ndarray) -> np.ndarray:
    """Return the sequence of each decision's first action, int32 [I]."""
    ends = np.cumsum(num_actions, dtype=np.int32)
    return 1 + ends - num_actions.astype(np.int32)


class Payoffs(NamedTuple):
    """The payoff coupling A as coordinates, each pair of sequences at most once.

    Attributes:
      rows: Player 0's sequences, int32 [nnz].
      columns: Player 1's sequences, int32 [nnz].
      values: Player 0's utility times chance, summed over terminals, float64 [nnz].
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def sum_payoffs(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Payoffs:
    """Add up `values` over equal pairs (row, column)."""
    order = order_pairs(rows, columns)
    rows, columns, values = rows[order], columns[order], values[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if not begins.all():
        values = np.bincount(np.cumsum(begins) - 1, weights=values)
        rows, columns = rows[begins], columns[begins]
    return Payoffs(rows.astype(np.int32), columns.astype(np.int32), values)
