"""Payoff matrices of the private states of two players.

Legend for shapes: H private states of one player in one round.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from spiel_cr.games.sequence_form.decisions import Payoffs

# Pairs of hands that are compared at once, but for those of one board.
_PAIRS = 1_000_000


class PayoffMatrix(Protocol):
    """How two signals of a round compare: a matrix [H0, H1] of player 0's utility.

    Entries are sums, over all deals that give these two signals, of the probability of
    the deal times player 0's utility per unit of stake.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
    """

    @property
    def round(self) -> int:
        """Whose signals it compares, from 0."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many signals of the round each player has, H0 and H1."""

    def coordinates(self) -> Payoffs:
        """The entries: signals of player 0 and 1, values; each pair once."""


@dataclasses.dataclass(frozen=True)
class SparseMatrix:
    """A matrix by its entries; see `PayoffMatrix`.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
      entries: signals of both players and values; each pair at most once.
    """

    round: int
    shape: tuple[int, int]
    entries: Payoffs

    def coordinates(self) -> Payoffs:
        """The entries."""
        return self.entries


class Hands(NamedTuple):
    """One player's hands, board by board, as a `HandMatrix` compares them.

    Attributes:
      signal: int32 [n], the signal that each hand belongs to. Several hands may belong
        to one signal: a board that is yet to come, or suits that make no difference.
      board: int32 [n], what is on the table; hands meet hands of their own board only.
      cards: int8 [n, c], the private cards, by numbers that both players share.
      strength: int32 [n], the higher one wins.
      weight: float64 [n], see `HandMatrix`.
    """

    signal: np.ndarray
    board: np.ndarray
    cards: np.ndarray
    strength: np.ndarray
    weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class HandMatrix:
    """A matrix of hands that share a deck; see `PayoffMatrix`.

    The entry of two signals is the sum, over the pairs of hands h of the first and g of
    the second that lie on the same board and have no card in common, of weight[h] ·
    weight[g], times the sign of strength[h] - strength[g] at a showdown.

    Attributes:
      round: whose signals it compares.
      shape: H0 and H1.
      hands: both players'.
      showdown: whether strengths count; else (somebody folded) only who can have what.
    """

    round: int
    shape: tuple[int, int]
    hands: tuple[Hands, Hands]
    showdown: bool

    def coordinates(self) -> Payoffs:
        """The entries; for games that are small enough to list them."""
        total: sparse.csr_array = sparse.csr_array(self.shape)
        for first, second in _some_boards(*self.hands):
            i, j = _pairs(first.board, second.board)
            disjoint = np.ones(len(i), bool)
            for cards, others in itertools.product(first.cards.T, second.cards.T):
                disjoint &= cards[i] != others[j]
            i, j = i[disjoint], j[disjoint]
            values = first.weight[i] * second.weight[j]
            if self.showdown:
                values = values * np.sign(first.strength[i] - second.strength[j])
            pairs = first.signal[i], second.signal[j]
            total = total + sparse.csr_array((values, pairs), shape=self.shape)
        return _entries(total)


def compares(matrix: PayoffMatrix) -> bool:
    """Whether signals win as well as lose by it; else somebody has folded."""
    if isinstance(matrix, HandMatrix):
        return matrix.showdown
    values = matrix.coordinates().values
    return bool((values > 0).any() and (values < 0).any())


def _some_boards(*hands: Hands) -> Iterator[tuple[Hands, Hands]]:
    """Both players' hands on the first boards, on the next ones, and so on."""
    orders = [np.argsort(side.board, kind="stable") for side in hands]
    first, second = (
        Hands(*(field[order] for field in side))
        for side, order in zip(hands, orders, strict=True)
    )
    boards = np.intersect1d(first.board, second.board)
    ends = [np.searchsorted(side.board, boards, "right") for side in (first, second)]
    begins = [np.searchsorted(side.board, boards) for side in (first, second)]
    pairs = np.cumsum((ends[0] - begins[0]) * (ends[1] - begins[1]))
    parts = np.flatnonzero(np.diff(pairs // _PAIRS, prepend=-1))
    for start, stop in itertools.pairwise([*parts.tolist(), len(boards)]):
        yield (
            Hands(*(field[begins[0][start] : ends[0][stop - 1]] for field in first)),
            Hands(*(field[begins[1][start] : ends[1][stop - 1]] for field in second)),
        )


def _pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All places i of the first and j of the second array that hold equal numbers."""
    order, others = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    begins = np.searchsorted(second, first[order], "left", others)
    counts = np.searchsorted(second, first[order], "right", others) - begins
    skipped = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(skipped - begins, counts)
    return np.repeat(order, counts), others[within]


def sum_entries(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> Payoffs:
    """Adds up entries of equal pairs; those that cancel are left out."""
    return _entries(sparse.csr_array((values, (rows, columns)), shape=shape))


def _entries(total: sparse.csr_array) -> Payoffs:
    """The entries of a matrix but for zeros."""
    total.eliminate_zeros()
    return Payoffs(
        np.repeat(np.arange(total.shape[0], dtype=np.int32), np.diff(total.indptr)),
        total.indices.astype(np.int32),
        total.data,
    )
