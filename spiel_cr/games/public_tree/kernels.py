"""Kernels laid out for solvers: leaf values from the opponent's reach, in JAX.

`lay_out` chooses the form by what it costs: a dense matrix, dense blocks, sparse rows
(`kernel_blocks`), or hands in the order of their strengths (`kernel_hands`).
"""

import dataclasses
import math

import numpy as np
import scipy.sparse

from spiel_cr.common.arrays import joint_components
from spiel_cr.games.public_tree.kernel_blocks import (
    LaidOut,
    dense_cost,
    lay_out_entries,
)
from spiel_cr.games.public_tree.kernel_hands import hands_cost, lay_out_hands
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)

# As many entries of a kernel of hands are listed.
_MOST_LISTED = 20_000_000


def lay_out(kernel: PayoffMatrix, player: int) -> LaidOut:
    """Lays a kernel out for one player's solver, in the form that costs it least.

    Args:
      kernel: see `games.public_tree.game`.
      player: whose leaf values it shall give: 0 or 1.
    """
    if isinstance(kernel, HandMatrix):
        if hands_cost(kernel, player) < _listed_cost(kernel, player):
            operator = lay_out_hands(kernel, player)
            if operator is not None:
                return operator
    rows, columns, values = kernel.coordinates()
    if player == 1:
        rows, columns, values = columns, rows, -values
    shape = kernel.shape[player], kernel.shape[1 - player]
    return lay_out_entries(scipy.sparse.csr_array((values, (rows, columns)), shape))


def in_units(kernel: PayoffMatrix) -> tuple[PayoffMatrix, int]:
    """A kernel whose largest number is about 1, and e: the given one is 2^e times it.

    So float32 holds it, whatever the units of stakes and chances. Powers of two change
    no bits.
    """
    if isinstance(kernel, HandMatrix):
        first, second = (_exponent(side.weight) for side in kernel.hands)
        hands = tuple(
            side._replace(weight=np.ldexp(side.weight, -e))
            for side, e in zip(kernel.hands, (first, second), strict=True)
        )
        scaled = dataclasses.replace(kernel, hands=(hands[0], hands[1]))
        return scaled, first + second
    entries = kernel.coordinates()
    exponent = _exponent(entries.values)
    entries = entries._replace(values=np.ldexp(entries.values, -exponent))
    return SparseMatrix(kernel.round, kernel.shape, entries), exponent


def _exponent(values: np.ndarray) -> int:
    return int(np.frexp(np.abs(values).max(initial=0))[1])


def _listed_cost(kernel: HandMatrix, player: int) -> float:
    """What dense blocks of a kernel of hands would cost, before they are listed.

    Infinite where there would be too many entries.
    """
    hands, opponent = kernel.hands[player], kernel.hands[1 - player]
    signals = kernel.shape[player], kernel.shape[1 - player]
    boards = 1 + max(
        int(hands.board.max(initial=0)), int(opponent.board.max(initial=0))
    )
    # Signals that share a board, and boards that share a signal, end up in one block.
    board = np.concatenate([hands.board, opponent.board])
    ends = np.concatenate([hands.signal, opponent.signal.astype(np.int64) + signals[0]])
    parts = joint_components(board, ends, (boards, sum(signals)))
    part, count = parts.columns, parts.number
    heights = np.bincount(part[: signals[0]], minlength=count)
    widths = np.bincount(part[signals[0] :], minlength=count)
    both = (heights > 0) & (widths > 0)
    if (heights[both] * widths[both]).sum() > _MOST_LISTED:
        return math.inf
    if len(both) == 1:  # one matrix, without any gathers
        return signals[0] * signals[1]
    return dense_cost(heights[both], widths[both])
