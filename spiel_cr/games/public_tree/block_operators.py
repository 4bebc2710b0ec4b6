"""Operators of payoff matrices that are stored as dense blocks or sparse rows.

If private states only have joint entries with private states on the same board, the
payoff matrix decomposes into dense blocks: the connected components of the graph
between both players' private states.

On CPUs, XLA multiplies batches of small matrices fastest if the leaves are the last
axis, and the blocks may then have any size. The product itself costs less than moving
its factors into that order and back. Therefore single entries only cost less than
blocks if the blocks are mostly empty.

Legend for shapes: L leaves, H private states of the player, H' those of the opponent, B
blocks, h and h' private states in one block.
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

from spiel_cr.common.arrays import joint_components, ranges
from spiel_cr.common.jax_utils import typed
from spiel_cr.games.sequence_form.packing import groups

# Cost of one more group of blocks or of rows, in padded entries.
_GROUP_OVERHEAD = 4096

# Cost of gathering a number, in products of a dense block. Measured on two cores: about
# 1 ns, compared with 1/30 ns for a product.
_GATHER = 30

# Neighbouring blocks are joined to one matrix up to this number of rows or columns.
# Measured on Rhode Island Hold'em, which has 325 blocks of 24 to 37 private states:
# 13.8 ms, compared with 15.1 for 64, 18.5 for 192, and 35 for batches of blocks.
_RUN = 128
# XLA compiles each run as a separate operation: 85 runs take about a second.
_FEWEST_RUNS, _MOST_RUNS = 8, 160

# With at least this many leaves, and at most this many rows, a product is written as a
# sum of rows, which is one loop. Measured for 100,000 leaves and 15 rows: 1.4 ms,
# compared with 3.5 ms for XLA's product of matrices.
_LONG, _FEW = 4096, 16


class MatrixOperator(abc.ABC):
    """A payoff matrix in the form in which one player's solver multiplies by it.

    Subclasses are registered dataclasses. Their arrays are numpy arrays, and
    floating-point ones are float64, until a solver casts them (see
    `common.jax_utils.cast`) and passes them to a compiled function as an argument.
    """

    @abc.abstractmethod
    def apply(self, x: jax.Array) -> jax.Array:
        """Return the player's utility per unit of stake at each leaf.

        Args:
          x: The opponent's reach at each leaf, usually multiplied by the stake, float
            [L, H of the opponent].

        Returns:
          Values of the player's private states at each leaf, float [L, H of the
          player], in the dtype of `x`.
        """

    def largest(self) -> float:
        """Return the largest absolute entry of the matrix; 0 if it has no entries.

        For matrices of hands this is an upper bound, because hands may share cards, tie
        or belong to different boards.
        """
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(self)]
        entries = [np.abs(array) for array in arrays if array.dtype.kind == "f"]
        return max((float(part.max(initial=0)) for part in entries), default=0.0)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(array.nbytes for array in jax.tree.leaves(self))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DenseMatrix(MatrixOperator):
    """Operator of a matrix that is one dense block; see `MatrixOperator`.

    Attributes:
      values: The player's utility, float [H', H].
    """

    values: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x, values = jnp.asarray(x), self.values
        if len(x) >= _LONG and len(values) <= _FEW:
            terms = [x[:, i : i + 1] * values[i][None] for i in range(len(values))]
            return functools.reduce(operator.add, terms)
        return jnp.einsum("li,ij->lj", x, values)


class EntryGroup(NamedTuple):
    """Entries of similar blocks, or of similar rows, padded to the same size.

    Attributes:
      private_state: The opponent's private states, 0 at padding: of each block, int32
        [B, h'], or of r private states with w entries each, int32 [w, r].
      values: The player's utility, 0 at padding, float [B, h', h] or [w, r].
    """

    private_state: jax.Array
    values: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DenseBlocks(MatrixOperator):
    """Operator of a matrix of dense blocks; see `MatrixOperator`.

    Attributes:
      groups: The blocks.
      place: Index of each private state's value among the values of all blocks, block
        by block, followed by one zero, int32 [H].
    """

    groups: tuple[EntryGroup, ...]
    place: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        parts = []
        for private_state, values in self.groups:
            inside = columns(x, private_state).transpose(1, 2, 0)
            outside = jnp.einsum("bij,bil->bjl", values, inside)
            parts.append(outside.reshape(-1, len(x)))
        parts.append(jnp.zeros((1, len(x)), x.dtype))
        return rows(jnp.concatenate(parts), self.place).T


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BlockRuns(MatrixOperator):
    """Operator of a matrix of dense blocks of consecutive private states.

    Reach keeps its order by leaves. In return, the matrix of each run also contains the
    zeros between its blocks. See `MatrixOperator`.

    Attributes:
      values: One float [h', h] for each run of blocks, in the order of private states:
        the player's utility.
    """

    values: tuple[jax.Array, ...]

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        parts, begin = [], 0
        for values in self.values:
            end = begin + len(values)
            parts.append(jnp.einsum("li,ij->lj", x[:, begin:end], values))
            begin = end
        return jnp.concatenate(parts, axis=1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SparseRows(MatrixOperator):
    """Operator of a matrix in which most pairs have no entry; see `MatrixOperator`.

    Attributes:
      groups: The private states that have entries.
      place: Index of each private state's value among the values of the groups,
        followed by one zero, int32 [H].
    """

    groups: tuple[EntryGroup, ...]
    place: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """Return leaf values; see `MatrixOperator`."""
        x = jnp.asarray(x)
        parts = []
        for private_states, values in self.groups:
            # Separate gathers, so that XLA fuses each product with its gather.
            terms = [
                columns(x, private_state) * value[None]
                for private_state, value in zip(private_states, values, strict=True)
            ]
            parts.append(functools.reduce(operator.add, terms))
        parts.append(jnp.zeros((len(x), 1), x.dtype))
        return columns(jnp.concatenate(parts, axis=1), self.place)


def make_entries_operator(matrix: scipy.sparse.csr_array) -> MatrixOperator:
    """Make the operator with the lowest cost per leaf from the entries of a matrix.

    Args:
      matrix: The player's utility per unit of stake by the player's and the opponent's
        private states, each entry once, float [H, H'].

    Returns:
      The operator.
    """
    blocks = _Components.of(matrix)
    counts = np.diff(matrix.indptr)
    gathered = len(counts) + sum(
        (rows.stop - rows.start) * width
        for rows, width in groups(np.sort(counts)[::-1], _GROUP_OVERHEAD)
    )
    sparse = _GATHER * gathered
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


@dataclasses.dataclass(frozen=True)
class _Components:
    """Connected components of a matrix [H, H'], the largest ones first.

    Attributes:
      row: The component of each row, int [H].
      column: The component of each column, int [H'].
      heights: Number of rows of each component, int [count].
      widths: Number of columns of each component, int [count].
      groups: Components that share a padded shape. Components without rows or without
        columns are in no group.
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
        """Whether one component contains all rows and columns."""
        return len(self.heights) == 1 and len(self.groups) == 1

    def shape(self, group: slice) -> tuple[int, int, int]:
        """Return the number of blocks of a group, and their height and width."""
        high, wide = int(self.heights[group].max()), int(self.widths[group].max())
        return group.stop - group.start, high, wide

    def cost(self) -> int:
        """Return the cost of a product per leaf, in products of a dense block."""
        if self.is_complete:
            return len(self.row) * len(self.column)
        shapes = np.array([self.shape(group) for group in self.groups], np.int64)
        number, high, wide = shapes.reshape(-1, 3).T
        return int((number * (high * wide + _GATHER * (high + wide))).sum())

    def runs(self) -> list[tuple[int, int]]:
        """Return the ends of runs of blocks, as pairs of a row and a column.

        The list is empty if the private states of some block are not consecutive, or if
        some private states have no entries.
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
        """Return the operator that stores the components as blocks."""
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
            private_state = np.zeros((number, wide), np.int32)
            private_state[
                self.column[columns] - group.start, column_within[columns]
            ] = columns
            chosen = _inside(entry_part, group)
            values = np.zeros((number, wide, high))
            values[
                entry_part[chosen] - group.start,
                column_within[entries.col[chosen]],
                row_within[entries.row[chosen]],
            ] = entries.data[chosen]
            blocks.append(EntryGroup(typed(private_state), typed(values)))
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
        groups_of_rows.append(EntryGroup(typed(column), typed(values)))
    return SparseRows(tuple(groups_of_rows), typed(place))


def number_within(owner: np.ndarray) -> np.ndarray:
    """Return int64 [n], 0, 1, 2, ... for the members of each owner, in input order."""
    number = np.empty(len(owner), np.int64)
    number[np.argsort(owner, kind="stable")] = ranges(0, np.bincount(owner))
    return number


def rows(values: jax.Array, places: jax.Array) -> jax.Array:
    """Return `values[places]` without a bounds check; all places must be valid."""
    return values.at[places].get(mode="promise_in_bounds")


def columns(values: jax.Array, places: jax.Array) -> jax.Array:
    """Return `values[:, places]` without a bounds check; all places must be valid."""
    return values.at[:, places].get(mode="promise_in_bounds")


def _inside(numbers: np.ndarray, members: slice) -> np.ndarray:
    return (numbers >= members.start) & (numbers < members.stop)
