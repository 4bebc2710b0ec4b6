"""Sums of matrices of hands over classes of private states, board by board.

The pairs of hands are compared board by board and never listed, so that the memory
suffices for large games.

Legend for shapes: n hands of a player on a board.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.games.public_tree.payoff_matrices import (
    BoardHands,
    HandMatrix,
    SparseMatrix,
    shared_boards,
)
from spiel_cr.games.sequence_form.decisions import Payoffs

# Number of pairs of hands that are compared at once.
_PAIRS = 2_000_000


class _BoardEntries(NamedTuple):
    """Some entries of a board.

    Attributes:
      rows: Private states of player 0, integers [n0].
      columns: Private states of player 1, integers [n1].
      values: Matrix entries for these pairs, numbers [n0, n1].
      weight: Weights of the rows, float64 [n0].
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weight: np.ndarray


def summed(matrix: HandMatrix, labels: tuple[np.ndarray, np.ndarray]) -> SparseMatrix:
    """Sum a matrix over classes of private states without listing its entries.

    Args:
      matrix: The payoff matrix.
      labels: Class of each private state in the round of the matrix, for each player
        int32 [H].

    Returns:
      The matrix of classes. Entries in which wins and losses cancel up to rounding are
      left out.
    """
    shape = (1 + int(labels[0].max(initial=-1)), 1 + int(labels[1].max(initial=-1)))
    total, size = np.zeros(shape), np.zeros(shape)
    for board in _boards(matrix):
        first, in_use = np.unique(labels[0][board.rows], return_inverse=True)
        second, to = np.unique(labels[1][board.columns], return_inverse=True)
        left = sparse.csr_array(
            (board.weight, (in_use.reshape(-1), np.arange(len(board.rows)))),
            shape=(len(first), len(board.rows)),
        )
        right = sparse.csr_array(
            (np.ones(len(to)), (to.reshape(-1), np.arange(len(board.columns)))),
            shape=(len(second), len(board.columns)),
        )
        place = np.ix_(first, second)
        values = board.values.astype(np.float64)
        half = right @ values.T
        total[place] += left @ half.T
        size[place] += left @ (right @ np.abs(values).T).T
    total[np.abs(total) < 1e-12 * size] = 0.0
    rows, columns = np.nonzero(total)
    entries = Payoffs(
        rows.astype(np.int32), columns.astype(np.int32), total[rows, columns]
    )
    return SparseMatrix(matrix.round, shape, entries)


def _boards(matrix: HandMatrix) -> Iterator[_BoardEntries]:
    """Yield the boards of a matrix, large ones in several parts."""
    for first, second in shared_boards(*matrix.hands, most_pairs=1):
        step = max(1, _PAIRS // max(1, len(second.private_state)))
        for row in range(0, len(first.private_state), step):
            some = first.select(slice(row, row + step))
            values = _compare_hands(some, second, matrix.showdown)
            yield _BoardEntries(
                some.private_state, second.private_state, values, some.weight
            )


def _compare_hands(first: BoardHands, second: BoardHands, showdown: bool) -> np.ndarray:
    """Return results of hands times weights of the second ones, float64 [n, n'].

    The result of compatible hands is the sign of the showdown, or 1 if there is no
    showdown; that of other hands is 0.
    """
    disjoint = np.ones((len(first.private_state), len(second.private_state)), bool)
    for cards in first.cards.T:
        for others in second.cards.T:
            disjoint &= cards[:, None] != others
    values: np.ndarray = disjoint * second.weight
    if showdown:
        wins = first.strength[:, None] > second.strength
        loses = first.strength[:, None] < second.strength
        values *= wins.astype(np.int8) - loses.astype(np.int8)
    return values
