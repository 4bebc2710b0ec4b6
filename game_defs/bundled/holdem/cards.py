"""A deck, sets of its cards, and permutations of suits."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

RANKS, SUITS = "23456789TJQKA", "cdhs"


class HoldemDeck(NamedTuple):
    """Deck of cards numbered as OpenSpiel deals them: rank times `num_suits` plus suit.

    Attributes:
      num_ranks: Number of ranks, starting with the two; at most 13.
      num_suits: Number of suits; at most 4.
    """

    num_ranks: int
    num_suits: int

    def __len__(self) -> int:
        return self.num_ranks * self.num_suits

    def cards(self, text: str) -> list[int]:
        """Return the numbers of cards written as a text, such as "5c9dJs"."""
        pairs = zip(text[::2], text[1::2], strict=True)
        return [RANKS.index(r) * self.num_suits + SUITS.index(s) for r, s in pairs]

    def text(self, cards: Iterable[int]) -> str:
        """Return the names of cards, such as "5c9dJs", in the given order."""
        split = (divmod(int(card), self.num_suits) for card in cards)
        return "".join(RANKS[rank] + SUITS[suit] for rank, suit in split)

    def permuted(self, cards: np.ndarray, suits: Sequence[int]) -> np.ndarray:
        """Return the cards [...] with suit s replaced by suits[s]."""
        rank, suit = np.divmod(cards, self.num_suits)
        return rank * self.num_suits + np.array(suits)[suit]

    def permutations(self) -> list[tuple[int, ...]]:
        """Return all permutations of the suits, the identity first."""
        return list(itertools.permutations(range(self.num_suits)))


class Sets:
    """All sets of some cards, or all rows of disjoint sets, in lexicographic order.

    Attributes:
      sizes: Sizes of the sets in a row.
      cards: The cards, ascending in each set, int64 [n, sum of sizes].
      bits: The cards as bit masks, int64 [n].
    """

    def __init__(
        self, cards: Sequence[int], sizes: Sequence[int], deck: HoldemDeck
    ) -> None:
        """List all sets.

        Args:
          cards: Cards that the sets contain, ascending.
          sizes: Sizes of the sets of a row, such as (2,) for hands.
          deck: Deck of the cards.
        """
        every: list[tuple[int, ...]] = [()]
        for size in sizes:
            every = [
                (*indices, *more)
                for indices in every
                for more in itertools.combinations(
                    [card for card in cards if card not in indices], size
                )
            ]
        self.sizes = tuple(sizes)
        self.cards = np.array(every, np.int64).reshape(len(every), sum(sizes))
        self.bits = bits(self.cards)
        self._base = len(deck)
        self._codes = self._code(self.cards)

    def __len__(self) -> int:
        return len(self.cards)

    def _code(self, ascending: np.ndarray) -> np.ndarray:
        """Return codes in lexicographic order, int64 [n]; up to eleven cards fit."""
        powers = self._base ** np.arange(ascending.shape[1])[::-1]
        code: np.ndarray = ascending @ powers
        return code

    def find(self, cards: np.ndarray) -> np.ndarray:
        """Return the indices int64 [m] of rows of cards.

        Args:
          cards: The rows, int [m, cards]; the cards of each set may be in any order.

        Raises:
          KeyError: If a row is not listed.
        """
        sets = np.split(cards, np.cumsum(self.sizes)[:-1], axis=1)
        code = self._code(np.concatenate([np.sort(s, axis=1) for s in sets], axis=1))
        number = np.searchsorted(self._codes, code).clip(max=len(self) - 1)
        if (self._codes[number] != code).any():
            raise KeyError("a set of cards is not listed")
        return number


def bits(cards: np.ndarray) -> np.ndarray:
    """Return sets of cards int [n, size] as masks, int64 [n]."""
    masks: np.ndarray = np.left_shift(np.int64(1), cards).sum(axis=1)
    return masks
