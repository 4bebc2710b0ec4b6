"""What a game in sequence form is: two trees of decisions and the payoffs between them.

Everything here is in logical numbers (see `games.tree.tree`); `layout` says where it
lies in the solvers' arrays.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import order_pairs
from spiel_cr.common.short_repr import short_repr


@dataclasses.dataclass(frozen=True, repr=False)
class Decisions:
    """One player's decision points, in logical numbers.

    Attributes:
      parent: int32 [I], the last own sequence before each infoset.
      num_actions: int32 [I], at least 1 each.
    """

    __repr__ = short_repr

    parent: np.ndarray
    num_actions: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def num_sequences(self) -> int:
        """The empty sequence and one for each action of each infoset."""
        return 1 + int(self.num_actions.sum())

    @property
    def first_sequence(self) -> np.ndarray:
        """int32 [I], the sequence of each infoset's first action."""
        ends = np.cumsum(self.num_actions, dtype=np.int32)
        return 1 + ends - self.num_actions.astype(np.int32)

    @property
    def owner(self) -> np.ndarray:
        """int32 [S], the infoset at which a sequence ends; -1 for the empty one."""
        infosets = np.arange(len(self), dtype=np.int32)
        return np.append(np.int32(-1), np.repeat(infosets, self.num_actions))

    def levels(self) -> np.ndarray:
        """int32 [I], own decisions before each infoset."""
        parent_infoset = self.owner[self.parent]
        level = np.zeros(len(self), np.int32)
        active = np.flatnonzero(parent_infoset >= 0)
        ancestor = parent_infoset[active]
        while len(active):
            level[active] += 1
            further = parent_infoset[ancestor] >= 0
            active, ancestor = active[further], parent_infoset[ancestor[further]]
        return level

    def upwards(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The infosets of each level and their sequences, the last level first."""
        levels, owner = self.levels(), self.owner[1:]
        for level in range(int(levels.max(initial=-1)), -1, -1):
            mine = 1 + np.flatnonzero(levels[owner] == level)
            yield np.flatnonzero(levels == level), mine


class Payoffs(NamedTuple):
    """The payoff coupling A as coordinates, each pair of sequences at most once.

    Attributes:
      rows: int32 [nnz], player 0's sequences.
      columns: int32 [nnz], player 1's sequences.
      values: float64 [nnz], player 0's utility times chance, summed over terminals.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def sum_payoffs(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Payoffs:
    """Adds up `values` over equal pairs (row, column)."""
    order = order_pairs(rows, columns)
    rows, columns, values = rows[order], columns[order], values[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if not begins.all():
        values = np.bincount(np.cumsum(begins) - 1, weights=values)
        rows, columns = rows[begins], columns[begins]
    return Payoffs(rows.astype(np.int32), columns.astype(np.int32), values)
