"""Operators of payoff matrices: leaf values from the opponent's reach, in JAX.

`make_operator` chooses the representation by its cost: a dense matrix, dense blocks,
sparse rows (`block_operators`), or hands in the order of their strengths
(`hand_operators`).
"""

import dataclasses
import math

import numpy as np
import scipy.sparse

from spiel_cr.common.arrays import joint_components
from spiel_cr.games.public_tree.block_operators import (
    MatrixOperator,
    dense_cost,
    make_entries_operator,
)
from spiel_cr.games.public_tree.hand_operators import hands_cost, make_hand_operator
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)

# As many entries of a matrix of hands are listed.
_MOST_LISTED = 20_000_000


def make_operator(matrix: PayoffMatrix, player: int) -> MatrixOperator:
    """Make the operator of a payoff matrix that costs one player's solver least.

    Args:
      matrix: The payoff matrix.
      player: The player whose leaf values the operator computes, 0 or 1.
    """
    if isinstance(matrix, HandMatrix):
        if hands_cost(matrix, player) < _listed_cost(matrix, player):
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


def _listed_cost(matrix: HandMatrix, player: int) -> float:
    """Return the cost of dense blocks of a matrix of hands, without listing entries.

    Infinite if there would be too many entries.
    """
    hands, opponent = matrix.hands[player], matrix.hands[1 - player]
    private_states = matrix.shape[player], matrix.shape[1 - player]
    boards = 1 + max(
        int(hands.board.max(initial=0)), int(opponent.board.max(initial=0))
    )
    # Signals that share a board, and boards that share a private state, end up in one
    # block.
    board = np.concatenate([hands.board, opponent.board])
    ends = np.concatenate(
        [
            hands.private_state,
            opponent.private_state.astype(np.int64) + private_states[0],
        ]
    )
    parts = joint_components(board, ends, (boards, sum(private_states)))
    part, count = parts.columns, parts.number
    heights = np.bincount(part[: private_states[0]], minlength=count)
    widths = np.bincount(part[private_states[0] :], minlength=count)
    both = (heights > 0) & (widths > 0)
    if (heights[both] * widths[both]).sum() > _MOST_LISTED:
        return math.inf
    if len(both) == 1:  # one matrix, without any gathers
        return private_states[0] * private_states[1]
    return dense_cost(heights[both], widths[both])
