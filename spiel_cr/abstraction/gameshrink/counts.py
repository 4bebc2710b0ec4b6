"""Kernels as exact integers: how many deals lie behind every entry.

Entries of kernels are sums of probabilities of deals, which floating point rounds.
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
# All entries of a kernel together, so that no sum of some of them wraps, nor does the
# difference of two.
_MOST_DEALS = 2.0**62
# As many pairs of hands are listed; they take about 50 bytes each.
_MOST_PAIRS = 50_000_000


class DealCounts(NamedTuple):
    """A signal game's kernels and chances as integers; shared factors are left out.

    Attributes:
      kernels: for each kernel an int64 matrix [H0, H1], its entries times one factor
        per round.
      weights: for each player and round int64 [H], at least 1: how often each signal is
        dealt, up to one factor per round. They are the row sums of absolute entries of
        the kernel of the round for which these are largest: in games where somebody can
        fold, or where nobody ever draws, the number of deals. In a round without
        kernels they are the sums over the signals that refine a signal.
    """

    kernels: tuple[sparse.csr_array, ...]
    weights: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


def count(game: PublicTreeGame) -> DealCounts:
    """Counts what lies behind the entries of all kernels.

    Raises:
      InvalidGameError: the entries of some round are no multiples of one number.
      GameTooLargeError: those of a kernel sum to 2^62 or more; see also `list_entries`.
    """
    kernels = _integers(game)
    weights: list[list[np.ndarray]] = [[], []]
    for r in reversed(range(game.num_rounds)):
        totals = [
            (int(abs(matrix).sum()), -k)
            for k, (kernel, matrix) in enumerate(
                zip(game.kernels, kernels, strict=True)
            )
            if kernel.round == r
        ]
        for player in range(2):
            parent = game.parents[player][r]
            if totals:
                largest = kernels[-max(totals)[1]]
                weight = abs(largest).sum(axis=1 - player)
            elif r + 1 < game.num_rounds:
                weight = np.zeros(len(parent), np.int64)
                np.add.at(weight, game.parents[player][r + 1], weights[player][0])
            else:
                weight = np.ones(len(parent), np.int64)
            # What is never dealt is no part of the game; any weight will do.
            weights[player].insert(0, np.maximum(weight, 1))
    return DealCounts(tuple(kernels), (tuple(weights[0]), tuple(weights[1])))


def list_entries(kernel: PayoffMatrix) -> Payoffs:
    """The entries of a kernel.

    Raises:
      GameTooLargeError: it compares more than 50 million pairs of hands or signals.
    """
    if isinstance(kernel, HandMatrix):
        pairs = num_pairs(kernel)
        if pairs > _MOST_PAIRS:
            raise GameTooLargeError(
                f"a kernel of round {kernel.round} compares {pairs:,} pairs of hands, "
                f"more than the {_MOST_PAIRS:,} that are listed; partition the signals "
                "of a smaller game, such as one of fewer boards"
            )
    return kernel.coordinates()


def num_pairs(kernel: HandMatrix) -> int:
    """How many pairs of hands meet on a board, those with a card in common, too."""
    first, second = kernel.hands
    boards = 1 + max(first.board.max(initial=0), second.board.max(initial=0))
    meet = [np.bincount(hands.board, minlength=boards) for hands in (first, second)]
    return int(meet[0] @ meet[1])


def _integers(game: PublicTreeGame) -> list[sparse.csr_array]:
    """The kernels' entries as integers, with one factor per round."""
    entries = [list_entries(kernel) for kernel in game.kernels]
    rounds = [kernel.round for kernel in game.kernels]
    units = {
        r: _unit(
            [e.values for e, other in zip(entries, rounds, strict=True) if other == r],
            f"{game.game}: the chances of round {r}",
        )
        for r in set(rounds)
    }
    kernels = []
    for kernel, (rows, columns, values) in zip(game.kernels, entries, strict=True):
        integers = np.rint(values / units[kernel.round]).astype(np.int64)
        deals = np.abs(integers).sum(dtype=np.float64)
        if deals >= _MOST_DEALS:
            raise GameTooLargeError(
                f"{game.game}: a kernel of round {kernel.round} counts {deals:.3g} "
                f"deals, whose sums do not fit into 64 bits (at most "
                f"{_MOST_DEALS:.3g}); use the game without a partition, or partition "
                "the signals of a game with fewer deals, or more equal ones"
            )
        kernels.append(
            sparse.csr_array((integers, (rows, columns)), shape=kernel.shape)
        )
    return kernels


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
