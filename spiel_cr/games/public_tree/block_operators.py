"""Matrices by their entries, laid out as dense blocks or as sparse rows.

Where signals meet only on their own board, the matrix of a matrix falls apart into
dense blocks: the connected components of the graph between both players' signals.

On CPUs, XLA multiplies batches of small matrices fastest where the leaves are the last
axis: the blocks' sides may then be any numbers. Such a product costs less than to bring
its factors into that order and back, so blocks must be quite empty before single
entries cost less.

Legend for shapes: L leaves, H signals of the player, H' those of the opponent, B
blocks, h and h' signals in one block.
"""

import abc
import dataclasses
import functools
import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from spiel_cr.common.arrays import joint_components
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form.packing import groups

# What one more group of blocks or of rows costs, in padded entries.
_GROUP_OVERHEAD = 4096

# What a gathered number costs, in products of a dense block. Measured on two cores:
# about 1 ns, against 1/30 ns.
GATHER = 30

# Neighbouring blocks are one matrix up to this side. Measured on Rhode Island Hold'em
# with its 325 blocks of 24 to 37 signals: 13.8 ms, 15.1 for 64 and 18.5 for 192, and 35
# as batches.
_RUN = 128
# Each run is an operation of its own, to be compiled: 85 take about a second.
_FEWEST_RUNS, _MOST_RUNS = 8, 160

# A product of so long and so narrow a matrix is written out: sums of rows, in one loop.
# Measured at 100 000 times 15: 1.4 ms, where XLA's product of matrices takes 3.5.
_LONG, _FEW = 4096, 16


class MatrixOperator(abc.ABC):
    """A matrix as one player's solver multiplies by it; a registered dataclass.

    Its arrays are numpy arrays, floating ones float64, until a solver casts them (see
    `common.jax_utils.cast`) and hands them to a program as an argument.
    """

    @abc.abstractmethod
    def apply(self, x: jax.Array) -> jax.Array:
        """The player's own utility per unit of stake, summed over the opponent's hands.

        Args:
          x: float [L, H of the opponent], its reach at each leaf, usually times stake.

        Returns:
          float [L, H of the player], of the dtype of `x`.
        """

    def largest(self) -> float:
        """The largest |entry| of the matrix; 0 where there is none.

        Of hands it is a bound: they may share cards, or tie, or lie on other boards.
        """
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(self)]
        entries = [np.abs(array) for array in arrays if array.dtype.kind == "f"]
        return max((float(part.max(initial=0)) for part in entries), default=0.0)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return sum(array.nbytes for array in jax.tree.leaves(self))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DenseMatrix(MatrixOperator):
    """A matrix that is one dense block; see `MatrixOperator`.

    Attributes:
      values: float [H', H], the player's own utility.
    """

    values: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """See `MatrixOperator`."""
        x, values = jnp.asarray(x), self.values
        if len(x) >= _LONG and len(values) <= _FEW:
            terms = [x[:, i : i + 1] * values[i][None] for i in range(len(values))]
            return functools.reduce(operator.add, terms)
        return jnp.einsum("li,ij->lj", x, values)


class BlockGroup(NamedTuple):
    """Blocks of similar sizes, padded to equal ones.

    Attributes:
      signal: int32 [B, h'], the opponent's signals of each block; 0 at padding.
      values: float [B, h', h], the player's own utility; 0 at padding.
    """

    signal: jax.Array
    values: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DenseBlocks(MatrixOperator):
    """A matrix of dense blocks; see `MatrixOperator`.

    Attributes:
      groups: the blocks.
      place: int32 [H], where each signal's value lies among the values of all blocks,
        block by block, and one zero after them.
    """

    groups: tuple[BlockGroup, ...]
    place: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """See `MatrixOperator`."""
        x = jnp.asarray(x)
        parts = []
        for signal, values in self.groups:
            inside = columns(x, signal).transpose(1, 2, 0)
            outside = jnp.einsum("bij,bil->bjl", values, inside)
            parts.append(outside.reshape(-1, len(x)))
        parts.append(jnp.zeros((1, len(x)), x.dtype))
        return rows(jnp.concatenate(parts), self.place).T


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BlockRuns(MatrixOperator):
    """A matrix of dense blocks of neighbouring signals; see `MatrixOperator`.

    Reach stays in the order of leaves. In return, between the blocks of one run there
    are zeros to multiply by.

    Attributes:
      values: one float [h', h] for each run of blocks, in the order of signals: the
        player's own utility.
    """

    values: tuple[jax.Array, ...]

    def apply(self, x: jax.Array) -> jax.Array:
        """See `MatrixOperator`."""
        x = jnp.asarray(x)
        parts, begin = [], 0
        for values in self.values:
            end = begin + len(values)
            parts.append(jnp.einsum("li,ij->lj", x[:, begin:end], values))
            begin = end
        return jnp.concatenate(parts, axis=1)


class SparseGroup(NamedTuple):
    """Signals that meet similarly many of the opponent's, padded to equally many.

    Attributes:
      signal: int32 [w, r], the opponent's signals; 0 at padding.
      values: float [w, r], the player's own utility; 0 at padding.
    """

    signal: jax.Array
    values: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SparseRows(MatrixOperator):
    """A matrix of which most pairs of signals never meet; see `MatrixOperator`.

    Attributes:
      groups: the signals that meet any.
      place: int32 [H], where each signal's value lies among those of the groups and
        one zero after them.
    """

    groups: tuple[SparseGroup, ...]
    place: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """See `MatrixOperator`."""
        x = jnp.asarray(x)
        parts = []
        for signals, values in self.groups:
            # One gather after the other, so that each product fuses with its gather.
            terms = [
                columns(x, signal) * value[None]
                for signal, value in zip(signals, values, strict=True)
            ]
            parts.append(functools.reduce(operator.add, terms))
        parts.append(jnp.zeros((len(x), 1), x.dtype))
        return columns(jnp.concatenate(parts, axis=1), self.place)


def make_entries_operator(matrix: scipy.sparse.csr_array) -> MatrixOperator:
    """Lays out a matrix in the form that costs a leaf least.

    Args:
      matrix: float [H, H'], the player's own utility per unit of stake by its signals
        and the opponent's, each entry once.

    Returns:
      See `MatrixOperator`.
    """
    blocks = _Components.of(matrix)
    counts = np.diff(matrix.indptr)
    gathered = len(counts) + sum(
        (rows.stop - rows.start) * width
        for rows, width in groups(np.sort(counts)[::-1], _GROUP_OVERHEAD)
    )
    sparse = GATHER * gathered
    if sparse < blocks.cost():
        return _sparse_rows(matrix, counts)
    if blocks.is_complete:
        return DenseMatrix(typed(np.ascontiguousarray(matrix.toarray().T)))
    runs = blocks.runs()
    if _FEWEST_RUNS <= len(runs) <= _MOST_RUNS:
        turned = matrix.T.tocsr()
        begins = [(0, 0), *runs[:-1]]
        return BlockRuns(
            tuple(
                typed(turned[left:right, top:bottom].toarray())
                for (top, left), (bottom, right) in zip(begins, runs, strict=True)
            )
        )
    return blocks.dense(matrix)


def dense_cost(heights: np.ndarray, widths: np.ndarray) -> int:
    """What dense blocks of these sizes cost per leaf, in products."""
    return int((heights * widths + GATHER * (heights + widths)).sum())


@dataclasses.dataclass(frozen=True)
class _Components:
    """How a matrix [H, H'] falls apart; the largest components first.

    Attributes:
      row: int [H], the component of each row.
      column: int [H'], that of each column.
      heights: int [count], rows of each component.
      widths: int [count], columns.
      groups: components that share a shape; those of one side only are in none.
    """

    row: np.ndarray
    column: np.ndarray
    heights: np.ndarray
    widths: np.ndarray
    groups: list[slice]

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> "_Components":
        entries = matrix.tocoo()
        parts = joint_components(entries.row, entries.col, matrix.shape)
        heights, widths = parts.heights, parts.widths
        side = np.where(np.minimum(heights, widths), np.maximum(heights, widths), 0)
        order = np.argsort(-side, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        shared = [s for s, _ in groups(side[order] ** 2, _GROUP_OVERHEAD)]
        rows, columns = rank[parts.rows], rank[parts.columns]
        return cls(rows, columns, heights[order], widths[order], shared)

    @property
    def is_complete(self) -> bool:
        """Whether there is a single component and nothing else."""
        return len(self.heights) == 1 and len(self.groups) == 1

    def shape(self, group: slice) -> tuple[int, int, int]:
        """How many blocks a group has, and their height and width."""
        high, wide = int(self.heights[group].max()), int(self.widths[group].max())
        return group.stop - group.start, high, wide

    def cost(self) -> int:
        """Of a product per leaf; see `dense_cost`."""
        if self.is_complete:
            return len(self.row) * len(self.column)
        shapes = np.array([self.shape(group) for group in self.groups], np.int64)
        number, high, wide = shapes.reshape(-1, 3).T
        return dense_cost(np.repeat(high, number), np.repeat(wide, number))

    def runs(self) -> list[tuple[int, int]]:
        """Where runs of blocks end, among rows and columns.

        Empty where the signals of a block are no neighbours, or meet nobody.
        """
        order = self.row[np.flatnonzero(np.diff(self.row, prepend=-1))]
        neighbours = np.array_equal(
            self.row, np.repeat(order, self.heights[order])
        ) and np.array_equal(self.column, np.repeat(order, self.widths[order]))
        if not neighbours:
            return []
        ends: list[tuple[int, int]] = []
        begin, row, column = (0, 0), 0, 0
        for high, wide in zip(self.heights[order], self.widths[order], strict=True):
            if not ends or max(row + high - begin[0], column + wide - begin[1]) > _RUN:
                begin = row, column
                ends.append(begin)
            row, column = row + int(high), column + int(wide)
            ends[-1] = row, column
        return ends

    def dense(self, matrix: scipy.sparse.csr_array) -> DenseBlocks:
        """The components as blocks."""
        entries = matrix.tocoo()
        row_within, column_within = number_within(self.row), number_within(self.column)
        entry_part = self.row[entries.row]
        place = np.full(len(self.row), -1, np.int64)
        blocks, size = [], 0
        for group in self.groups:
            number, high, wide = self.shape(group)
            rows = np.flatnonzero(_inside(self.row, group))
            place[rows] = (
                size + (self.row[rows] - group.start) * high + row_within[rows]
            )
            columns = np.flatnonzero(_inside(self.column, group))
            signal = np.zeros((number, wide), np.int32)
            signal[self.column[columns] - group.start, column_within[columns]] = columns
            chosen = _inside(entry_part, group)
            values = np.zeros((number, wide, high))
            values[
                entry_part[chosen] - group.start,
                column_within[entries.col[chosen]],
                row_within[entries.row[chosen]],
            ] = entries.data[chosen]
            blocks.append(BlockGroup(typed(signal), typed(values)))
            size += number * high
        place[place < 0] = size
        return DenseBlocks(tuple(blocks), typed(place.astype(np.int32)))


def _sparse_rows(matrix: scipy.sparse.csr_array, counts: np.ndarray) -> SparseRows:
    order = np.argsort(-counts, kind="stable")
    place = np.full(len(counts), np.count_nonzero(counts), np.int32)
    groups_of_rows, size = [], 0
    for members, width in groups(counts[order], _GROUP_OVERHEAD):
        rows = order[members]
        entry = matrix.indptr[rows] + np.arange(width)[:, None]
        padding = np.arange(width)[:, None] >= counts[rows]
        entry[padding] = 0
        column = matrix.indices[entry].astype(np.int32)
        column[padding] = 0
        values = np.where(padding, 0.0, matrix.data[entry])
        place[rows] = size + np.arange(len(rows), dtype=np.int32)
        size += len(rows)
        groups_of_rows.append(SparseGroup(typed(column), typed(values)))
    return SparseRows(tuple(groups_of_rows), typed(place))


def number_within(owner: np.ndarray) -> np.ndarray:
    """int64 [n], 0, 1, 2, ... for the members of each owner, in the order given."""
    order = np.argsort(owner, kind="stable")
    begins = np.flatnonzero(np.diff(owner[order], prepend=-1))
    counts = np.diff(np.append(begins, len(owner)))
    number = np.empty(len(owner), np.int64)
    number[order] = np.arange(len(owner)) - np.repeat(begins, counts)
    return number


def rows(values: jax.Array, places: jax.Array) -> jax.Array:
    """`values[places]` of places that are there: XLA need not look."""
    return values.at[places].get(mode="promise_in_bounds")


def columns(values: jax.Array, places: jax.Array) -> jax.Array:
    """`values[:, places]` of places that are there: XLA need not look."""
    return values.at[:, places].get(mode="promise_in_bounds")


def _inside(numbers: np.ndarray, members: slice) -> np.ndarray:
    return (numbers >= members.start) & (numbers < members.stop)
