"""Payoff matrices as exact integers: the number of deals behind every entry.

Entries of payoff matrices are sums of probabilities of deals, which floating point
rounds. A lossless abstraction depends on exact equality, so it is tested with integers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix
from spiel_cr.games.sequence_form.decisions import Payoffs

# Entries with at most this relative difference are treated as equal: rounding errors of
# sums of up to 1e5 equal terms are smaller.
_CLOSE = 1e-10
# Largest number of units that the smallest entry may represent.
_MOST_UNITS = 5040
_LARGEST = 2.0**53
# Limit of the sum of all entries of a matrix, so that neither sums nor differences of
# sums overflow.
_MOST_DEALS = 2.0**62
# Largest number of pairs of hands in a list; each takes about 50 bytes.
_MOST_PAIRS = 50_000_000


class DealCounts(NamedTuple):
    """Payoff matrices and weights of a game as integers, without common factors.

    Attributes:
      payoff_matrices: Entries of each payoff matrix, int64 [H0, H1], times one
        factor per round.
      weights: Frequency of each private state by player and round, int64 [H], at least
        1, up to one factor per round. The weights are row sums of absolute
        entries of the round's payoff matrix with the largest such sum: the number of
        deals, in games in which a player can fold or no player ever draws. In a round
        without payoff matrices they are the sums over the private states that refine a
        private state.
    """

    payoff_matrices: tuple[sparse.csr_array, ...]
    weights: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


def count(game: PublicTreeGame) -> DealCounts:
    """Convert all payoff matrices of a game to exact integers.

    Raises:
      InvalidGameError: If the entries of a round are not multiples of one number.
      GameTooLargeError: If the entries of a matrix sum to 2^62 or more, or a matrix is
        too large for `list_entries`.
    """
    payoff_matrices = _integers(game)
    weights: list[list[np.ndarray]] = [[], []]
    for r in reversed(range(game.num_rounds)):
        numbers = game.matrices_in(r)
        totals = [(int(abs(payoff_matrices[k]).sum()), -k) for k in numbers]
        for player in range(2):
            parent = game.parents[player][r]
            if totals:
                largest = payoff_matrices[-max(totals)[1]]
                weight = abs(largest).sum(axis=1 - player)
            elif r + 1 < game.num_rounds:
                weight = np.zeros(len(parent), np.int64)
                np.add.at(weight, game.parents[player][r + 1], weights[player][0])
            else:
                weight = np.ones(len(parent), np.int64)
            # A private state that is never dealt may have any weight.
            weights[player].insert(0, np.maximum(weight, 1))
    return DealCounts(tuple(payoff_matrices), (tuple(weights[0]), tuple(weights[1])))


def list_entries(payoff_matrix: PayoffMatrix) -> Payoffs:
    """Return the entries of a payoff matrix as a list.

    Raises:
      GameTooLargeError: If the matrix compares more than 50 million pairs of hands.
    """
    if isinstance(payoff_matrix, HandMatrix):
        pairs = num_pairs(payoff_matrix)
        if pairs > _MOST_PAIRS:
            raise GameTooLargeError(
                f"a matrix of round {payoff_matrix.round} compares {pairs:,} "
                f"pairs of hands; the limit is {_MOST_PAIRS:,}; "
                f"use a smaller game, such as one with fewer boards"
            )
    return payoff_matrix.coordinates()


def num_pairs(payoff_matrix: HandMatrix) -> int:
    """Count the pairs of hands on the same board, common cards included."""
    first, second = payoff_matrix.hands
    boards = 1 + max(first.board.max(initial=0), second.board.max(initial=0))
    meet = [np.bincount(hands.board, minlength=boards) for hands in (first, second)]
    return int(meet[0] @ meet[1])


def _integers(game: PublicTreeGame) -> list[sparse.csr_array]:
    """Return the entries of all matrices as integers, with one factor per round."""
    entries = [list_entries(payoff_matrix) for payoff_matrix in game.payoff_matrices]
    units = {
        r: _unit(
            [entries[k].values for k in game.matrices_in(r)],
            f"{game.game}: the probabilities of round {r}",
        )
        for r in {payoff_matrix.round for payoff_matrix in game.payoff_matrices}
    }
    payoff_matrices = []
    for payoff_matrix, (rows, columns, values) in zip(
        game.payoff_matrices, entries, strict=True
    ):
        integers = np.rint(values / units[payoff_matrix.round]).astype(np.int64)
        deals = np.abs(integers).sum(dtype=np.float64)
        if deals >= _MOST_DEALS:
            raise GameTooLargeError(
                f"{game.game}: a matrix of round {payoff_matrix.round} counts "
                f"{deals:.3g} deals, whose sums do not fit into 64 bits (at most "
                f"{_MOST_DEALS:.3g}); use the game without a partition, or a game "
                "with fewer or more equally likely deals"
            )
        payoff_matrices.append(
            sparse.csr_array((integers, (rows, columns)), shape=payoff_matrix.shape)
        )
    return payoff_matrices


def _unit(values: Sequence[np.ndarray], name: str) -> float:
    """Return the largest number of which all values are multiples, up to rounding."""
    sizes = np.unique(np.concatenate([np.unique(np.abs(v)) for v in values]))
    sizes = sizes[sizes > 0]
    if len(sizes) == 0:
        return 1.0
    for parts in range(1, 1 + _MOST_UNITS):
        multiples = sizes / (sizes[0] / parts)
        off = np.abs(multiples - np.rint(multiples))
        if (off <= _CLOSE * multiples).all() and multiples[-1] < _LARGEST:
            return float(sizes[0] / parts)
    raise InvalidGameError(
        f"{name} are not multiples of one number, {sizes[0]:.6g} divided by at most "
        f"{_MOST_UNITS}; GameShrink needs deals of equal probability, so use another "
        f"method of abstraction"
    )
