"""Matrices as exact integers: how many deals lie behind every entry.

Entries of matrices are sums of probabilities of deals, which floating point rounds.
Whether two signals may be played alike is a question of equality, so it is asked of
integers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix
from spiel_cr.games.sequence_form.decisions import Payoffs

# Entries that differ by no more than this, relatively, are one number: sums of up to
# 1e5 equal terms are off by less.
_CLOSE = 1e-10
# The smallest entry is taken for this many units at most.
_MOST_UNITS = 5040
_LARGEST = 2.0**53
# All entries of a matrix together, so that no sum of some of them wraps, nor does the
# difference of two.
_MOST_DEALS = 2.0**62
# As many pairs of hands are listed; they take about 50 bytes each.
_MOST_PAIRS = 50_000_000


class DealCounts(NamedTuple):
    """A signal game's matrices and chances as integers; shared factors are left out.

    Attributes:
      payoff_matrices: For each payoff matrix int64 [H0, H1], its entries times one
        factor per round.
      weights: for each player and round int64 [H], at least 1: how often each signal is
        dealt, up to one factor per round. They are the row sums of absolute entries of
        the matrix of the round for which these are largest: in games where somebody can
        fold, or where nobody ever draws, the number of deals. In a round without
        matrices they are the sums over the signals that refine a signal.
    """

    payoff_matrices: tuple[sparse.csr_array, ...]
    weights: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


def count(game: PublicTreeGame) -> DealCounts:
    """Counts what lies behind the entries of all matrices.

    Raises:
      InvalidGameError: the entries of some round are no multiples of one number.
      GameTooLargeError: those of a matrix sum to 2^62 or more; see also `list_entries`.
    """
    payoff_matrices = _integers(game)
    weights: list[list[np.ndarray]] = [[], []]
    for r in reversed(range(game.num_rounds)):
        totals = [
            (int(abs(matrix).sum()), -k)
            for k, (payoff_matrix, matrix) in enumerate(
                zip(game.payoff_matrices, payoff_matrices, strict=True)
            )
            if payoff_matrix.round == r
        ]
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
            # What is never dealt is no part of the game; any weight will do.
            weights[player].insert(0, np.maximum(weight, 1))
    return DealCounts(tuple(payoff_matrices), (tuple(weights[0]), tuple(weights[1])))


def list_entries(payoff_matrix: PayoffMatrix) -> Payoffs:
    """The entries of a matrix.

    Raises:
      GameTooLargeError: it compares more than 50 million pairs of hands or signals.
    """
    if isinstance(payoff_matrix, HandMatrix):
        pairs = num_pairs(payoff_matrix)
        if pairs > _MOST_PAIRS:
            raise GameTooLargeError(
                f"a matrix of round {payoff_matrix.round} compares {pairs:,} "
                f"pairs of hands, more than the {_MOST_PAIRS:,} that are listed; "
                f"partition the signals of a smaller game, such as one of fewer boards"
            )
    return payoff_matrix.coordinates()


def num_pairs(payoff_matrix: HandMatrix) -> int:
    """How many pairs of hands meet on a board, those with a card in common, too."""
    first, second = payoff_matrix.hands
    boards = 1 + max(first.board.max(initial=0), second.board.max(initial=0))
    meet = [np.bincount(hands.board, minlength=boards) for hands in (first, second)]
    return int(meet[0] @ meet[1])


def _integers(game: PublicTreeGame) -> list[sparse.csr_array]:
    """The matrices' entries as integers, with one factor per round."""
    entries = [list_entries(payoff_matrix) for payoff_matrix in game.payoff_matrices]
    rounds = [payoff_matrix.round for payoff_matrix in game.payoff_matrices]
    units = {
        r: _unit(
            [e.values for e, other in zip(entries, rounds, strict=True) if other == r],
            f"{game.game}: the chances of round {r}",
        )
        for r in set(rounds)
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
                f"{_MOST_DEALS:.3g}); use the game without a partition, or partition "
                "the signals of a game with fewer deals, or more equal ones"
            )
        payoff_matrices.append(
            sparse.csr_array((integers, (rows, columns)), shape=payoff_matrix.shape)
        )
    return payoff_matrices


def _unit(values: Sequence[np.ndarray], name: str) -> float:
    """The largest number that all values are multiples of, up to rounding."""
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
        f"{name} are no multiples of one number, {sizes[0]:.6g} divided by at most "
        f"{_MOST_UNITS}; only games of equally likely deals can be held to exact tests"
    )
