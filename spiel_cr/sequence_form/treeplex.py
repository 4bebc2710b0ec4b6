"""JAX passes over one player's decision tree: strategy → reach, leaf values → values.

The kernels are plain functions of arrays; callers jit them. Reach of a player is a
vector over its positions (see `layout`), the product of its own action
probabilities. Values are counterfactual: weighted by the reach of opponent and chance,
from the owner's perspective, in the units of the tree's payoffs (solvers divide them by
a power of two, see `exponent_of`).
"""

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

# Row sums are written out up to this many rows: XLA on the CPU vectorises a chain of
# additions, but reduces the major axis of a dense array one strided element at a time.
_UNROLLED_ROWS = 16

# One array [A, n] for each block of each level.
Blocks = tuple[tuple[jax.Array, ...], ...]


class Level(NamedTuple):
    """The infosets with equally many own decisions before them.

    Attributes:
      parent: int32 [n], each infoset's parent sequence: its index among the sequences
        of the level above (0 at the first level: the empty sequence).
      source: int32 [m], where `leaf_values` puts the value of each of the level's
        sequences, block after block, each block actions-major.
      uniform: one float [A, n_b] for each block: the uniform strategy, 0 at padding.
      tolerance: one float [A, n_b] for each block: how large a regret rounding alone
        can leave in one iteration; infinite at padding.
    """

    parent: jax.Array
    source: jax.Array
    uniform: tuple[jax.Array, ...]
    tolerance: tuple[jax.Array, ...]


class RowGroup(NamedTuple):
    """Rows of the payoff coupling with similar numbers of entries, padded to equal.

    Attributes:
      columns: int32 [w, r], positions of the opponent's sequences.
      values: float [w, r], the owner's utility times chance; 0 at padding.
    """

    columns: jax.Array
    values: jax.Array


class Treeplex(NamedTuple):
    """One player's decision tree and its rows of the payoff coupling.

    Attributes:
      levels: top to bottom.
      coupling: the rows with at least one entry, in groups.
      root_source: int32 [1], where `leaf_values` puts the empty sequence's value.
    """

    levels: tuple[Level, ...]
    coupling: tuple[RowGroup, ...]
    root_source: jax.Array


def written_out_rows(tree: Treeplex) -> int:
    """How many rows of arrays a pass over a tree has as operations of their own."""
    blocks = [block for level in tree.levels for block in level.uniform]
    # Of a longer sum only the rows before it would be written out one by one.
    rows = [min(len(block), _UNROLLED_ROWS + 1) for block in blocks]
    groups = [len(group.columns) for group in tree.coupling]
    rows += [count if count <= _UNROLLED_ROWS else 1 for count in groups]
    return sum(rows)


def sum_rows(rows: jax.Array) -> jax.Array:
    """Sums [k, n] over its first axis."""
    if rows.shape[0] > _UNROLLED_ROWS:
        return rows.sum(axis=0)
    return functools.reduce(operator.add, [rows[i] for i in range(rows.shape[0])])


def leaf_values(tree: Treeplex, other_reach: jax.Array) -> jax.Array:
    """Sums terminal payoffs by own sequence: the product of coupling and reach.

    Args:
      tree: the player's treeplex.
      other_reach: float [S'], the opponent's reach by position.

    Returns:
      float [R + 1], values of the rows that have payoffs, in the order that
      `Level.source` refers to, then one zero.
    """
    parts = []
    for group in tree.coupling:
        if group.columns.shape[0] > _UNROLLED_ROWS:
            parts.append((group.values * other_reach[group.columns]).sum(axis=0))
        else:
            # Gather row by row, so that each product fuses with its gather.
            terms = [
                v * other_reach[c]
                for c, v in zip(group.columns, group.values, strict=True)
            ]
            parts.append(functools.reduce(operator.add, terms))
    return jnp.concatenate([*parts, jnp.zeros(1, other_reach.dtype)])


def reach(tree: Treeplex, strategy: Blocks) -> jax.Array:
    """Multiplies action probabilities down the tree.

    Args:
      tree: the player's treeplex.
      strategy: behaviour strategy, one [A, n] a block.

    Returns:
      float [S], the player's own reach of every position; 1 at the empty sequence.
    """
    # numpy arrays stay numpy arrays: initial states need no compiled program.
    namespace = tree.root_source.__array_namespace__()
    above = namespace.ones(1, dtype=strategy[0][0].dtype if strategy else None)
    parts = [above]
    for level, blocks in zip(tree.levels, strategy, strict=True):
        into = above[level.parent]
        rows = []
        begin = 0
        for block in blocks:
            end = begin + block.shape[1]
            rows.append((into[None, begin:end] * block).reshape(-1))
            begin = end
        above = namespace.concat(rows)
        parts.append(above)
    joined: jax.Array = namespace.concat(parts)
    return joined


def values_below(
    level: Level, leaves: jax.Array, child: Level | None, child_values: jax.Array | None
) -> list[jax.Array]:
    """Counterfactual value of every action of a level.

    Args:
      level: the level.
      leaves: from `leaf_values`.
      child: the level below, None at the last one.
      child_values: float [n of child], values of its infosets.

    Returns:
      One float [A, n] for each block of the level; 0 at padding.
    """
    values = leaves[level.source]
    if child is not None:
        values = values.at[child.parent].add(child_values)
    blocks = []
    begin = 0
    for uniform in level.uniform:
        end = begin + uniform.size
        blocks.append(values[begin:end].reshape(uniform.shape))
        begin = end
    return blocks


def exponent_of(payoffs: Iterable[jax.Array]) -> int:
    """The e for which 2^e is just above the largest |payoff|; 0 where all are zero.

    Solvers divide payoffs by 2^e, so that no size of payoffs can overflow or vanish in
    their arithmetic. A power of two changes no other bit: whatever else solvers
    compute is products, sums and comparisons of payoffs.

    Args:
      payoffs: numpy arrays.
    """
    largest = max((np.abs(array).max(initial=0) for array in payoffs), default=0)
    return math.frexp(float(largest))[1]


def rescale(tree: Treeplex, exponent: int) -> Treeplex:
    """The treeplex with payoffs and tolerances over 2^exponent; numpy arrays."""
    levels = tuple(
        level._replace(
            tolerance=tuple(divide(block, exponent) for block in level.tolerance)
        )
        for level in tree.levels
    )
    coupling = tuple(
        group._replace(values=divide(group.values, exponent)) for group in tree.coupling
    )
    return tree._replace(levels=levels, coupling=coupling)


def divide(payoffs: jax.Array, exponent: int) -> jax.Array:
    """Payoffs over 2^exponent; numpy arrays, exact but for numbers that vanish."""
    return cast(jax.Array, np.ldexp(np.asarray(payoffs), -exponent))


def uniform_strategy(tree: Treeplex) -> Blocks:
    """The uniform behaviour strategy."""
    return tuple(level.uniform for level in tree.levels)


def join(parts: Sequence[jax.Array]) -> jax.Array:
    """Concatenates vectors; a single one is passed through."""
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
