"""Payoff matrices of the private states of two players.

Legend for shapes: H private states of one player in one round.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from spiel_cr.common.arrays import ranges
from spiel_cr.games.sequence_form.decisions import Payoffs

# Number of pairs of hands that are compared at once; one board is never divided.
_PAIRS = 1_000_000


class PayoffMatrix(Protocol):
    """Payoffs of pairs of private states: a matrix [H0, H1] of player 0's utility.

    Entries are sums, over all deals that give these two private states, of the
    probability of the deal times player 0's utility per unit of stake.

    Attributes:
      round: Round of the private states.
      shape: H0 and H1.
    """

    @property
    def round(self) -> int:
        """Round of the private states, from 0."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of both players' private states in the round, H0 and H1."""

    def coordinates(self) -> Payoffs:
        """Return the entries: private states of both players, and values."""


@dataclasses.dataclass(frozen=True)
class SparseMatrix:
    """Payoff matrix that is given by its entries; see `PayoffMatrix`.

    Attributes:
      round: Round of the private states.
      shape: H0 and H1.
      entries: Private states of both players and values; each pair at most once.
    """

    round: int
    shape: tuple[int, int]
    entries: Payoffs

    def coordinates(self) -> Payoffs:
        """Return the entries."""
        return self.entries


class BoardHands(NamedTuple):
    """One player's hands, board by board, as a `HandMatrix` compares them.

    Attributes:
      private_state: Private state of each hand, int32 [n]. Several hands may belong to
        one private state: for boards that are still to come, or interchangeable suits.
      board: Board of each hand, int32 [n]; hands only meet hands on their own board.
      cards: Private cards, by numbers that both players share, int8 [n, c].
      strength: Strength of each hand, int32 [n]; the higher one wins.
      weight: Weight of each hand, see `HandMatrix`, float64 [n].
    """

    private_state: np.ndarray
    board: np.ndarray
    cards: np.ndarray
    strength: np.ndarray
    weight: np.ndarray

    def select(self, chosen: np.ndarray | slice) -> "BoardHands":
        """Return some of the hands, by index, mask or slice."""
        return BoardHands(*(np.asarray(field)[chosen] for field in self))

    def renumbered(self, number: np.ndarray) -> "BoardHands":
        """Return the hands with other numbers of private states, integers [H]."""
        return self._replace(private_state=number[self.private_state])


@dataclasses.dataclass(frozen=True)
class HandMatrix:
    """Payoff matrix of hands that share a deck; see `PayoffMatrix`.

    The entry of two private states is the sum, over the pairs of hands h of the first
    and g of the second that are on the same board and have no card in common, of
    weight[h] · weight[g], times the sign of strength[h] - strength[g] at a showdown.

    Attributes:
      round: Round of the private states.
      shape: H0 and H1.
      hands: Hands of both players.
      showdown: Whether strengths count. Otherwise a player has folded, and the entry
        only depends on the hands that are compatible.
    """

    round: int
    shape: tuple[int, int]
    hands: tuple[BoardHands, BoardHands]
    showdown: bool

    def coordinates(self) -> Payoffs:
        """Return the entries, for games that are small enough to list them."""
        total: sparse.csr_array = sparse.csr_array(self.shape)
        for first, second in shared_boards(*self.hands):
            i, j = _pairs(first.board, second.board)
            disjoint = np.ones(len(i), bool)
            for cards, others in itertools.product(first.cards.T, second.cards.T):
                disjoint &= cards[i] != others[j]
            i, j = i[disjoint], j[disjoint]
            values = first.weight[i] * second.weight[j]
            if self.showdown:
                values = values * np.sign(first.strength[i] - second.strength[j])
            pairs = first.private_state[i], second.private_state[j]
            total = total + sparse.csr_array((values, pairs), shape=self.shape)
        return nonzero_entries(total)


def compares(matrix: PayoffMatrix) -> bool:
    """Return whether entries have both signs; otherwise a player has folded."""
    if isinstance(matrix, HandMatrix):
        return matrix.showdown
    values = matrix.coordinates().values
    return bool((values > 0).any() and (values < 0).any())


def shared_boards(
    *hands: BoardHands, most_pairs: int = _PAIRS
) -> Iterator[tuple[BoardHands, BoardHands]]:
    """Yield both players' hands on some of their shared boards at a time, in order.

    Args:
      hands: Hands of both players, on any boards.
      most_pairs: Approximate number of pairs of hands at a time. If 1, each board is
        separate.
    """
    orders = [np.argsort(side.board, kind="stable") for side in hands]
    first, second = map(BoardHands.select, hands, orders)
    boards = np.intersect1d(first.board, second.board)
    ends = [np.searchsorted(side.board, boards, "right") for side in (first, second)]
    begins = [np.searchsorted(side.board, boards) for side in (first, second)]
    pairs = np.cumsum((ends[0] - begins[0]) * (ends[1] - begins[1]))
    parts = np.flatnonzero(np.diff(pairs // most_pairs, prepend=-1))
    for start, stop in itertools.pairwise([*parts.tolist(), len(boards)]):
        yield (
            first.select(slice(begins[0][start], ends[0][stop - 1])),
            second.select(slice(begins[1][start], ends[1][stop - 1])),
        )


def _pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all places i of the first and j of the second array with equal numbers."""
    order, others = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    begins = np.searchsorted(second, first[order], "left", others)
    counts = np.searchsorted(second, first[order], "right", others) - begins
    return np.repeat(order, counts), others[ranges(begins, counts)]


def sum_entries(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> Payoffs:
    """Add up the entries of equal pairs, and leave out those that cancel."""
    return nonzero_entries(sparse.csr_array((values, (rows, columns)), shape=shape))


def nonzero_entries(total: sparse.csr_array) -> Payoffs:
    """Return the nonzero entries of a matrix."""
    total.eliminate_zeros()
    return Payoffs(
        np.repeat(np.arange(total.shape[0], dtype=np.int32), np.diff(total.indptr)),
        total.indices.astype(np.int32),
        total.data,
    )
