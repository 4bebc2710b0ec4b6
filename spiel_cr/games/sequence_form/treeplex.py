"""JAX functions on one player's decision tree: reach from strategies, and values.

These are plain functions of arrays; callers jit them. The reach of a player is a vector
over *positions*, the solver's order of the player's sequences (see `layout`). An entry
is the product of the player's action probabilities up to the position. Values are
counterfactual: weighted by the reach of opponent and chance, from the perspective of
the tree's player, in the units of the tree's payoffs (solvers divide them by a power of
two, see `exponent_of`).
"""

import abc
import dataclasses
import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spiel_cr.common.arrays import pieces
from spiel_cr.common.jax_utils import unfused

# Row sums are written out up to this many rows: XLA on the CPU vectorises a chain of
# additions, but reduces the major axis of a dense array one strided element at a time.
_UNROLLED_ROWS = 16

# Number of array entries above which an array does not fit in the processor's cache.
LONG = 1 << 19

# One array [A, n] for each block of each level.
Blocks = tuple[tuple[jax.Array, ...], ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Slices:
    """Starts of slices of equal width in a vector.

    In a public-tree game (see `games.public_tree.form`) the elements of one public node
    are adjacent, one for each private state, and are moved as one slice. In other games
    slices have one element, so this is an array of indices.

    Attributes:
      starts: First element of each slice, int32 [k].
      width: Number of elements per slice.
      offset: Remainder of all starts modulo `width`; -1 if they differ, or if it is
        unknown.
    """

    starts: jax.Array
    width: int = dataclasses.field(default=1, metadata={"static": True})
    offset: int = dataclasses.field(default=-1, metadata={"static": True})

    def __len__(self) -> int:
        return self.starts.shape[0] * self.width

    @property
    def positions(self) -> np.ndarray:
        """The elements of all slices, integers [k · width]; from numpy arrays."""
        return (np.asarray(self.starts)[:, None] + np.arange(self.width)).reshape(-1)

    def take(self, vector: jax.Array) -> jax.Array:
        """Return the slices of a vector, concatenated: [k · width]."""
        if isinstance(vector, np.ndarray):
            return cast(jax.Array, vector[self.positions])
        if self.width == 1:
            return gather(vector, self.starts)
        rows = self.starts[:, None]
        if self.offset >= 0:
            rows = (self.starts - self.offset) // self.width
        return cast(jax.Array, unfused(_slices, self, rows, vector)).reshape(-1)

    def add_to(self, vector: jax.Array, values: jax.Array) -> jax.Array:
        """Return the vector with values [k · width] added to its slices."""
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        if self.width > 1:
            numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
            values = values.reshape(-1, self.width)
        return lax.scatter_add(
            *(vector, self.starts[:, None], values, numbers),
            mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
        )


def gather(vector: jax.Array, places: jax.Array) -> jax.Array:
    """Return vector[places]; JAX traces this faster because no index is negative."""
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(
        *(vector, places[..., None], numbers, (1,)),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _slices(slices: Slices, rows: jax.Array, vector: jax.Array) -> jax.Array:
    """Return slices [k, width], from the rows [k] or the starts [k, 1]."""
    offset, width = slices.offset, slices.width
    if offset >= 0:
        end = len(vector) - (len(vector) - offset) % width
        matrix = vector[offset:end].reshape(-1, width)
        return matrix.at[rows].get(mode="promise_in_bounds")
    numbers = lax.GatherDimensionNumbers((1,), (), (0,))
    return lax.gather(
        *(vector, rows, numbers, (width,)), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )


def _product(above: jax.Array, block: jax.Array) -> jax.Array:
    return above[None] * block


def take(slices: Sequence[Slices], vector: jax.Array) -> jax.Array:
    """Return all slices of a vector, concatenated."""
    parts = [some.take(vector) for some in slices]
    if isinstance(vector, np.ndarray):
        return cast(jax.Array, np.concatenate(parts))
    return join(parts, wide=is_wide(slices))


def is_wide(slices: Sequence[Slices]) -> bool:
    """Return whether some slices have several elements, as in public-tree games."""
    return any(some.width > 1 for some in slices)


class Level(NamedTuple):
    """The infosets with the same number of the player's decisions before them.

    A block of n infosets with A actions has a uniform strategy [A, n] and a tolerance
    [A, n]. Without padding, their shapes are [A, 1] and [1, n].

    Attributes:
      parent: n elements, index of each infoset's parent sequence among the sequences of
        the level above (0 at the first level: the empty sequence).
      source: m elements, positions in the result of `leaf_values` of the level's
        sequences, block by block, with actions as the major axis of each block.
      uniform: Uniform strategy of each block, 0 at padding.
      tolerance: Largest regret that rounding errors alone can cause in one iteration,
        for each block; infinite at padding.
      more: Additional leaf values: pairs of sequences of the level, and positions of
        the values that are added to those of their `source`.
      locked: Locked probabilities [A, n] of each block, negative at free infosets; None
        for blocks without locks. Empty if no block has locks.
    """

    parent: tuple[Slices, ...]
    source: tuple[Slices, ...]
    uniform: tuple[jax.Array, ...]
    tolerance: tuple[jax.Array, ...]
    more: tuple[tuple[Slices, Slices], ...] = ()
    locked: tuple[jax.Array | None, ...] = ()

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Numbers of actions and infosets of each block."""
        return [
            (uniform.shape[0], tolerance.shape[1])
            for uniform, tolerance in zip(self.uniform, self.tolerance, strict=True)
        ]

    @property
    def num_infosets(self) -> int:
        return sum(n for _, n in self.shapes)

    @property
    def num_sequences(self) -> int:
        """Number of positions of sequences, including padding."""
        return sum(actions * n for actions, n in self.shapes)

    def split(self, values: jax.Array) -> list[jax.Array]:
        """Divide values of all sequences into the blocks [A, n]."""
        shapes = self.shapes
        parts = pieces(values, map(math.prod, shapes))
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def by_level(levels: Sequence[Level], vector: Any) -> list[Any]:
    """Divide a vector by position into its levels, without the empty sequence.

    Args:
      levels: L levels, in order.
      vector: [S, ...], a numpy or JAX array.

    Returns:
      L arrays.
    """
    return list(pieces(vector, (level.num_sequences for level in levels), begin=1))


class Coupling(abc.ABC):
    """Rows of the payoff coupling, which map the opponent's reach to leaf values.

    Subclasses are registered dataclasses.

    Attributes:
      payoffs: Numbers in the units of the game's payoffs, by which values are scaled.
    """

    payoffs: jax.Array

    @abc.abstractmethod
    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return leaf values from the opponent's reach by position, float [r]."""

    def largest(self) -> float:
        """Return the largest absolute payoff; arrays must be numpy arrays."""
        return float(np.abs(self.payoffs).max(initial=0))

    def rescaled(self, exponent: int) -> Self:
        """Return the same rows with payoffs over 2^exponent, as numpy arrays."""
        payoffs: Any = divide(self.payoffs, exponent)
        return dataclasses.replace(cast(Any, self), payoffs=payoffs)

    @property
    def num_payoffs(self) -> int:
        """Number of multiplications that one call of `leaf_values` performs."""
        return self.payoffs.size

    @property
    def written_out_rows(self) -> int:
        """Number of array rows that `leaf_values` compiles to separate operations."""
        return 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RowGroup(Coupling):
    """Rows of the payoff coupling with similar numbers of entries, padded.

    Attributes:
      columns: Positions of the opponent's sequences, int32 [w, r].
      payoffs: The player's utility times chance, float [w, r]; 0 at padding.
    """

    columns: jax.Array
    payoffs: jax.Array

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """Return float [r]; see `Coupling`."""
        if self.columns.shape[0] > _UNROLLED_ROWS:
            return (self.payoffs * gather(other_reach, self.columns)).sum(axis=0)
        # Gather row by row, so that each product fuses with its gather.
        terms = [
            payoffs * gather(other_reach, columns)
            for columns, payoffs in zip(self.columns, self.payoffs, strict=True)
        ]
        return functools.reduce(operator.add, terms)

    @property
    def written_out_rows(self) -> int:
        count = len(self.columns)
        return count if count <= _UNROLLED_ROWS else 1


class Treeplex(NamedTuple):
    """One player's decision tree and its rows of the payoff coupling.

    Attributes:
      levels: Levels from top to bottom.
      coupling: Rows with at least one entry, in groups.
      root_source: Positions in the result of `leaf_values` that add up to the value of
        the empty sequence, int32 [k].
      zeros: Zeros at the end of leaf values, for sequences without payoffs, float [Z];
        as many as the widest slice has elements.
      ancestors: Ancestors of the infosets of a deep tree; otherwise empty. A deep tree
        has a single level of all infosets, and `Level.parent` counts all positions.
        Entry k is [n + 1]: the infoset 2^k infosets above each infoset, n if there is
        none.
    """

    levels: tuple[Level, ...]
    coupling: tuple[Coupling, ...]
    root_source: jax.Array
    zeros: jax.Array
    ancestors: tuple[Slices, ...] = ()


def written_out_rows(tree: Treeplex) -> int:
    """Return the number of rows of arrays that are separate operations in a pass."""
    blocks = [block for level in tree.levels for block in level.uniform]
    # Of a longer sum only the rows before it would be written out one by one.
    rows = [min(len(block), _UNROLLED_ROWS + 1) for block in blocks]
    return sum(rows) + sum(group.written_out_rows for group in tree.coupling)


def sum_rows(rows: jax.Array) -> jax.Array:
    """Sum [k, n] over its first axis."""
    if rows.shape[0] > _UNROLLED_ROWS:
        return rows.sum(axis=0)
    return functools.reduce(operator.add, [rows[i] for i in range(rows.shape[0])])


def leaf_values(tree: Treeplex, other_reach: jax.Array) -> jax.Array:
    """Compute leaf values of the player's sequences: the product of coupling and reach.

    Args:
      tree: The player's treeplex.
      other_reach: The opponent's reach by position, float [S'].

    Returns:
      Values of the rows that have payoffs, in the order of `Level.source`, followed by
      zeros, float [R + Z].
    """
    parts = [group.leaf_values(other_reach) for group in tree.coupling]
    return join([*parts, tree.zeros], wide=tree.zeros.size > 1)


def root_value(tree: Treeplex, leaves: jax.Array) -> jax.Array:
    """Return the leaf value of the empty sequence, a scalar, from `leaf_values`."""
    if tree.root_source.shape[0] == 1:
        return leaves[tree.root_source[0]]
    return leaves[tree.root_source].sum()


def leaves_of(level: Level, leaves: jax.Array) -> jax.Array:
    """Return the leaf values of a level's sequences, from `leaf_values`, float [m]."""
    values = take(level.source, leaves)
    for into, source in level.more:
        values = into.add_to(values, source.take(leaves))
    return values


def reach(tree: Treeplex, strategy: Blocks, root: jax.Array | None = None) -> jax.Array:
    """Multiply action probabilities down the tree.

    Args:
      tree: The player's treeplex.
      strategy: Behaviour strategy, one [A, n] per block.
      root: Reach of the empty sequence, float [1]; None: 1.

    Returns:
      The player's reach of every position, float [S]; 1 at the empty sequence by
      default.
    """
    # numpy arrays stay numpy arrays: initial states need no compiled program.
    namespace = tree.root_source.__array_namespace__()
    if root is None:
        root = namespace.ones(1, dtype=strategy[0][0].dtype if strategy else None)
    parts = [root]
    if tree.ancestors:
        (level,), (blocks,) = tree.levels, strategy
        into = _steps(tree, blocks, above_root=1)
        for ancestor in tree.ancestors:
            into = into * ancestor.take(into)
        parts.append(_level_reach(level, blocks, root * into[:-1]))
        return namespace.concat(parts)
    for level, blocks in zip(tree.levels, strategy, strict=True):
        into = take(level.parent, parts[-1])
        parts.append(_level_reach(level, blocks, into))
    wide = namespace is jnp and any(is_wide(level.source) for level in tree.levels)
    return join(parts, wide=True) if wide else namespace.concat(parts)


def _level_reach(
    level: Level, blocks: Sequence[jax.Array], into: jax.Array
) -> jax.Array:
    """Return the player's reach of a level's sequences, float [m].

    Args:
      level: The level.
      blocks: Its strategies [A, n].
      into: The player's reach of its infosets, float [n].
    """
    namespace = into.__array_namespace__()
    wide = namespace is jnp and is_wide(level.source)
    multiply = functools.partial(unfused, _product) if wide else _product
    parts = pieces(into, (block.shape[1] for block in blocks))
    rows = [
        multiply(part, block).reshape(-1)
        for part, block in zip(parts, blocks, strict=True)
    ]
    return join(rows, wide=True) if wide else namespace.concat(rows)


def _steps(
    tree: Treeplex, blocks: Sequence[jax.Array], *, above_root: float
) -> jax.Array:
    """Return the probability of the player's action before each infoset, float [n + 1].

    Args:
      tree: A deep tree.
      blocks: Strategies [A, n].
      above_root: Last element, for the empty sequence above the first infosets.
    """
    namespace = blocks[0].__array_namespace__()
    one = namespace.ones(1, dtype=blocks[0].dtype)
    played = namespace.concat([one, *(block.reshape(-1) for block in blocks)])
    return namespace.concat([take(tree.levels[0].parent, played), above_root * one])


def expected_values(
    tree: Treeplex, strategy: Blocks, leaves: jax.Array
) -> tuple[list[list[jax.Array]], list[list[jax.Array]], list[jax.Array]]:
    """Compute counterfactual values of a strategy.

    In a deep tree, v = u + W v, where u contains the payoffs of an infoset's sequences
    without further decisions, and W[i, j] is the probability of the action at infoset i
    that leads to its child j. Hence v = (1 + W^(2^K)) ... (1 + W^2) (1 + W) u, where
    each power of W has at most one entry per column: the reach of an infoset from the
    ancestor 2^k infosets above it (pointer jumping, Wyllie 1979, "The complexity of
    parallel computations"). Only sums and products of probabilities occur, so rounding
    errors are those of a pass level by level.

    Args:
      tree: The player's treeplex.
      strategy: Behaviour strategy, one [A, n] per block.
      leaves: Leaf values from `leaf_values`.

    Returns:
      For each level, from the first: values of actions, [A, n] per block, and values of
      infosets, [n] per block; then the latter concatenated.
    """
    if tree.ancestors:
        (level,), (blocks,) = tree.levels, strategy
        paid = leaves_of(level, leaves)
        level_values = infoset_values(blocks, level.split(paid))
        values = jnp.concatenate([*level_values, jnp.zeros(1, paid.dtype)])
        step = _steps(tree, blocks, above_root=0)
        for ancestor in tree.ancestors:
            values = ancestor.add_to(values, step * values)
            step = step * ancestor.take(step)
        # `Level.parent` counts the empty sequence, too.
        paid = jnp.concatenate([jnp.zeros(1, paid.dtype), paid])
        paid = with_children(paid, level, values[:-1])[1:]
        actions = level.split(paid)
        means = infoset_values(blocks, actions)
        return [actions], [means], [join(means)]
    child: Level | None = None
    child_values: jax.Array | None = None
    # From the last level to the first.
    by_action, by_infoset, joined = [], [], []
    for level, blocks in reversed(list(zip(tree.levels, strategy, strict=True))):
        by_action.append(values_below(level, leaves, child, child_values))
        by_infoset.append(infoset_values(blocks, by_action[-1]))
        wide = is_wide(level.source)
        child, child_values = level, join(by_infoset[-1], wide=wide)
        joined.append(child_values)
    return by_action[::-1], by_infoset[::-1], joined[::-1]


def infoset_values(
    strategy: Sequence[jax.Array], actions: Sequence[jax.Array]
) -> list[jax.Array]:
    """Return values [n] of infosets by block.

    Args:
      strategy: Strategies [A, n] of the blocks.
      actions: Action values [A, n] of the blocks.
    """
    return [
        action[0]
        if len(action) == 1
        # Fused with what follows, strategies would be read twice, after a copy.
        else unfused(_mean, probability, action)
        if action.size > LONG
        else _mean(probability, action)
        for probability, action in zip(strategy, actions, strict=True)
    ]


def _mean(probability: jax.Array, action: jax.Array) -> jax.Array:
    return sum_rows(probability * action)


def values_below(
    level: Level, leaves: jax.Array, child: Level | None, child_values: jax.Array | None
) -> list[jax.Array]:
    """Return the counterfactual value of every action of a level.

    Args:
      level: The level.
      leaves: Leaf values from `leaf_values`.
      child: The level below, or None for the deepest level.
      child_values: Values of the infosets of `child`, float [n of child].

    Returns:
      One float [A, n] for each block of the level; 0 at padding.
    """
    return level.split(with_children(leaves_of(level, leaves), child, child_values))


def with_children(
    values: jax.Array, child: Level | None, child_values: jax.Array | None
) -> jax.Array:
    """Add values of infosets to those of their parent sequences.

    Args:
      values: Values of a level's sequences, float [m].
      child: The level below, or None for the deepest level.
      child_values: Values of the infosets of `child`, float [n of child].
    """
    if child is not None and child_values is not None:
        parts = pieces(child_values, map(len, child.parent))
        for some, part in zip(child.parent, parts, strict=True):
            values = some.add_to(values, part)
    return values


def exponent_of(payoffs: Iterable[float]) -> int:
    """Return the e for which 2^e is just above the largest payoff; 0 if all are zero.

    Solvers divide payoffs by 2^e, so that their arithmetic does not overflow or
    underflow for any size of payoffs. A power of two does not change the significant
    digits, because solvers only multiply, add and compare payoffs.

    Args:
      payoffs: The largest absolute payoff of each part of a game.
    """
    return math.frexp(max(payoffs, default=0.0))[1]


def rescale(tree: Treeplex, exponent: int) -> Treeplex:
    """Return the treeplex with payoffs and tolerances over 2^exponent.

    The tree must contain numpy arrays, and so does the result.
    """
    levels = tuple(
        level._replace(
            tolerance=tuple(divide(block, exponent) for block in level.tolerance)
        )
        for level in tree.levels
    )
    coupling = tuple(group.rescaled(exponent) for group in tree.coupling)
    return tree._replace(levels=levels, coupling=coupling)


def largest_payoff(tree: Treeplex) -> float:
    """Return the largest absolute payoff of a treeplex of numpy arrays."""
    return max((group.largest() for group in tree.coupling), default=0.0)


def divide(payoffs: jax.Array, exponent: int) -> jax.Array:
    """Return payoffs over 2^exponent as numpy arrays, exact except for underflow."""
    return cast(jax.Array, np.ldexp(np.asarray(payoffs), -exponent))


def uniform_strategy(tree: Treeplex) -> Blocks:
    """Return the uniform behaviour strategy, with locked infosets as locked."""
    namespace = tree.root_source.__array_namespace__()
    return tuple(
        keep_locked(
            level,
            [
                uniform
                if uniform.shape == shape
                else namespace.broadcast_to(uniform, shape)
                for uniform, shape in zip(level.uniform, level.shapes, strict=True)
            ],
        )
        for level in tree.levels
    )


def keep_locked(level: Level, blocks: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Return a level's strategies [A, n], with locked probabilities inserted."""
    if not level.locked:
        return tuple(blocks)
    return tuple(
        block
        if locked is None
        else locked.__array_namespace__().where(locked >= 0, locked, block)
        for block, locked in zip(blocks, level.locked, strict=True)
    )


def join(parts: Sequence[jax.Array], *, wide: bool = False) -> jax.Array:
    """Concatenate vectors; a single one is returned unchanged.

    Args:
      parts: Vectors to concatenate.
      wide: Whether the vectors are slices. Long vectors are then computed separately
        and copied, which is faster than computing each element at its destination.
    """
    if len(parts) == 1:
        return parts[0]
    if wide and sum(map(len, parts)) > LONG:
        return cast(jax.Array, unfused(_joined, *parts))
    return jnp.concatenate(parts)


def _joined(*parts: jax.Array) -> jax.Array:
    return jnp.concatenate(parts)
