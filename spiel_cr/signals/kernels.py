"""Kernels laid out for solvers: leaf values from the opponent's reach, in JAX.

`lay_out` chooses the form by what it costs. Blocks: where signals meet only on their
own board, a kernel falls apart into dense blocks. Sparse: signals with few entries.

Legend for shapes: L leaves, H signals of one player, B blocks, h signals of one player
in one block.
"""

import dataclasses
from typing import NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from spiel_cr.sequence_form.packing import groups
from spiel_cr.signals.game import Kernel

# What one more group of blocks costs, in padded entries of blocks.
_GROUP_OVERHEAD = 4096


class LaidOut(Protocol):
    """A kernel as one player's solver multiplies by it; a registered dataclass.

    Its arrays are numpy arrays, floating ones float64, until a solver casts them (see
    `common.jax_utils.cast`) and hands them to a program as an argument.
    """

    def apply(self, x: jax.Array) -> jax.Array:
        """The player's own utility per unit of stake, summed over the opponent's hands.

        Args:
          x: float [L, H of the opponent], its reach at each leaf, usually times stake.

        Returns:
          float [L, H of the player], of the dtype of `x`.
        """

    def largest(self) -> float:
        """The largest |entry| of the kernel; 0 where there is none."""

    @property
    def nbytes(self) -> int:
        """What the arrays take."""


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
class DenseBlocks:
    """A kernel of dense blocks; see `LaidOut`.

    Attributes:
      groups: the blocks.
      place: int32 [H], where each signal's value lies among the values of all blocks,
        block by block, and one zero after them.
    """

    groups: tuple[BlockGroup, ...]
    place: jax.Array

    def apply(self, x: jax.Array) -> jax.Array:
        """See `LaidOut`."""
        parts = [
            jnp.einsum("lbi,bij->lbj", x[:, group.signal], group.values).reshape(
                len(x), -1
            )
            for group in self.groups
        ]
        parts.append(jnp.zeros((len(x), 1), x.dtype))
        return jnp.concatenate(parts, axis=1)[:, self.place]

    def largest(self) -> float:
        """See `LaidOut`."""
        return max((_largest(group.values) for group in self.groups), default=0.0)

    @property
    def nbytes(self) -> int:
        """See `LaidOut`."""
        return sum(array.nbytes for array in jax.tree.leaves(self))


def lay_out(kernel: Kernel, player: int) -> LaidOut:
    """Lays a kernel out for one player's solver, in the form that costs it least.

    Args:
      kernel: see `signals.game`.
      player: whose leaf values it shall give: 0 or 1.
    """
    entries = kernel.coordinates()
    rows, columns, sign = entries.rows, entries.columns, 1.0
    if player == 1:
        rows, columns, sign = columns, rows, -1.0
    own, other = kernel.shape[player], kernel.shape[1 - player]
    matrix = scipy.sparse.csr_array(
        (sign * entries.values, (rows, columns)), shape=(own, other)
    )
    return _blocks(matrix)


def _blocks(matrix: scipy.sparse.csr_array) -> DenseBlocks:
    """Dense blocks of a matrix [H of the player, H of the opponent]."""
    own, other = matrix.shape
    entries = matrix.tocoo()
    links = scipy.sparse.coo_array(
        (np.ones(entries.nnz, bool), (entries.row, own + entries.col)),
        shape=(own + other, own + other),
    )
    count, block = scipy.sparse.csgraph.connected_components(links, directed=False)
    heights = np.bincount(block[:own], minlength=count)
    widths = np.bincount(block[own:], minlength=count)
    # The largest first; those of one side only, signals that meet nobody, last.
    area = np.where(np.minimum(heights, widths) > 0, np.maximum(heights, widths), 0)
    order = np.argsort(-area, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    block = rank[block]
    heights, widths = heights[order], widths[order]
    within = np.concatenate([_number(block[:own]), _number(block[own:])])
    place = np.full(own, -1, np.int64)
    entry_block = block[entries.row]
    laid, size = [], 0
    for members, _ in groups(area[order] ** 2, _GROUP_OVERHEAD):
        number = members.stop - members.start
        high, wide = int(heights[members].max()), int(widths[members].max())
        mine = np.flatnonzero(_inside(block[:own], members))
        place[mine] = size + (block[mine] - members.start) * high + within[mine]
        theirs = np.flatnonzero(_inside(block[own:], members))
        signal = np.zeros((number, wide), np.int32)
        signal[block[own + theirs] - members.start, within[own + theirs]] = theirs
        values = np.zeros((number, wide, high))
        here = _inside(entry_block, members)
        values[
            entry_block[here] - members.start,
            within[own + entries.col[here]],
            within[entries.row[here]],
        ] = entries.data[here]
        laid.append(BlockGroup(_host(signal), _host(values)))
        size += number * high
    place[place < 0] = size
    return DenseBlocks(tuple(laid), _host(place.astype(np.int32)))


def _inside(numbers: np.ndarray, members: slice) -> np.ndarray:
    return (numbers >= members.start) & (numbers < members.stop)


def _number(block: np.ndarray) -> np.ndarray:
    """int64 [n], 0, 1, 2, ... within each block, in the order given."""
    order = np.argsort(block, kind="stable")
    ordered = block[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(np.append(begins, len(block)))
    number = np.empty(len(block), np.int64)
    number[order] = np.arange(len(block)) - np.repeat(begins, counts)
    return number


def _largest(values: jax.Array) -> float:
    return float(np.abs(np.asarray(values)).max(initial=0))


def _host(array: np.ndarray) -> jax.Array:
    """Solvers put the arrays on a device; numpy arrays behave alike until then."""
    return cast(jax.Array, array)
