"""Operators of payoff matrices: leaf values from the opponent's reach, in JAX.

`make_operator` chooses the representation: sums over hands in the order of their
strengths (`hand_operators`), or a dense matrix, dense blocks or sparse rows
(`block_operators`).
"""

import dataclasses

import numpy as np
import scipy.sparse

from spiel_cr.games.public_tree.block_operators import (
    MatrixOperator,
    make_entries_operator,
)
from spiel_cr.games.public_tree.hand_operators import make_hand_operator
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)

# Matrices of hands with at most this many entries, on boards with at most this many
# pairs of hands, are listed: small dense matrices cost as much as prefix sums, and less
# in gathers. Measured on CPUs with AVX2 and AVX-512.
_MOST_LISTED, _FEW_PAIRS = 20_000_000, 1 << 16


def make_operator(matrix: PayoffMatrix, player: int) -> MatrixOperator:
    """Make the operator of a payoff matrix that costs one player's solver least.

    Args:
      matrix: The payoff matrix.
      player: The player whose leaf values the operator computes, 0 or 1.
    """
    if isinstance(matrix, HandMatrix) and has_many_hands(matrix):
        operator = make_hand_operator(matrix, player)
        if operator is not None:
            return operator
    rows, columns, values = matrix.coordinates()
    if player == 1:
        rows, columns, values = columns, rows, -values
    shape = matrix.shape[player], matrix.shape[1 - player]
    return make_entries_operator(
        scipy.sparse.csr_array((values, (rows, columns)), shape)
    )


def in_units(matrix: PayoffMatrix) -> tuple[PayoffMatrix, int]:
    """Scale a matrix by a power of two 2^-e so that its largest number is about 1.

    float32 can then represent it, whatever the units of stakes and probabilities.
    Powers of two do not change the bits of a result.

    Returns:
      The scaled matrix, and e.
    """
    if isinstance(matrix, HandMatrix):
        first, second = (_exponent(side.weight) for side in matrix.hands)
        hands = tuple(
            side._replace(weight=np.ldexp(side.weight, -e))
            for side, e in zip(matrix.hands, (first, second), strict=True)
        )
        scaled = dataclasses.replace(matrix, hands=(hands[0], hands[1]))
        return scaled, first + second
    entries = matrix.coordinates()
    exponent = _exponent(entries.values)
    entries = entries._replace(values=np.ldexp(entries.values, -exponent))
    return SparseMatrix(matrix.round, matrix.shape, entries), exponent


def _exponent(values: np.ndarray) -> int:
    return int(np.frexp(np.abs(values).max(initial=0))[1])


def has_many_hands(matrix: HandMatrix) -> bool:
    """Return whether pairs of hands are too many to be listed."""
    counts = [np.bincount(hands.board) for hands in matrix.hands]
    size = min(map(len, counts))
    pairs = counts[0][:size].astype(float) * counts[1][:size]
    return bool(pairs.sum() > _MOST_LISTED or pairs.max(initial=0) > _FEW_PAIRS)
