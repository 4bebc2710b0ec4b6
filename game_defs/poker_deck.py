"""Decks of poker games: possible deals, and winners of showdowns.

Each player receives one card before the public cards are dealt. All dealt cards are
packed into one integer, so that states in arrays are small. Each deal has six bits, in
the order of the deals: the card plus 1, or 0 if the card has not been dealt. Functions
of packed cards accept integers and numpy arrays (elementwise), except
`Deck.deal_probabilities` and `Deck.text`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from game_defs.base import NUM_PLAYERS, Shared

CARD_BITS = 6
_CARD_MASK = (1 << CARD_BITS) - 1
MAX_CARDS = _CARD_MASK
UNSEEN = "-"  # Text of a card that has not been dealt.

_Cards = TypeVar("_Cards", int, np.ndarray)


def add_card(cards: _Cards, number: _Cards, card: _Cards) -> _Cards:
    """Return the packed cards after the deal with this number, counted from 0."""
    return cards | ((card + 1) << (CARD_BITS * number))


def card_of(cards: _Cards, number: int) -> _Cards:
    """Return one plus the card of player 0, of player 1 or, from 2 on, a public card.

    The result is 0 if the card has not been dealt.
    """
    return (cards >> (CARD_BITS * number)) & _CARD_MASK


@dataclasses.dataclass(frozen=True, eq=False)
class Deck(Shared):
    """The cards of a game and their ranking; there is one object for each deck.

    Attributes:
      names: Names of the cards that can be dealt; at most `MAX_CARDS`.
      copies: Number of copies of each of them in the deck.
      public: Names of the public cards' pieces, in the order of their deals.
      strength: Strength of hands, with an axis for a player's card and one for each
        public card, int; the higher one wins.
      suits: Number of suits, which are equivalent; the suit of a card is card % suits.
        1 if cards have no suits.
      source: Function and its arguments that return this deck. The deck is pickled as
        these, so that serialised states are small.
    """

    names: tuple[str, ...]
    copies: int
    public: tuple[str, ...]
    strength: np.ndarray
    suits: int
    source: tuple[Callable[..., "Deck"], tuple[Any, ...]]

    def __reduce__(self) -> tuple[Callable[..., "Deck"], tuple[Any, ...]]:
        """Pickle the function and arguments that made the deck."""
        return self.source

    def deal_probabilities(self, cards: int) -> list[tuple[int, float]]:
        """Return the cards that can be dealt next and their probabilities."""
        left = [self.copies] * len(self.names)
        total = self.copies * len(self.names)
        while cards:
            left[(cards & _CARD_MASK) - 1] -= 1
            total -= 1
            cards >>= CARD_BITS
        return [(card, count / total) for card, count in enumerate(left) if count]

    def showdown(self, cards: Any) -> Any:
        """Return 1 if player 0 has the better cards, -1 if player 1 has, 0 if equal.

        Args:
          cards: Packed cards, all dealt; an integer, or int64 [n].

        Returns:
          An integer, or int64 [n]. The result is undefined if a card has not been
          dealt.
        """
        # A card that has not been dealt has the index -1, the last card.
        deals = NUM_PLAYERS + len(self.public)
        card0, card1, *public = (card_of(cards, i) - 1 for i in range(deals))
        strength0 = self.strength[card0, *public]
        strength1 = self.strength[card1, *public]
        return 1 * (strength0 > strength1) - 1 * (strength0 < strength1)

    def text(self, cards: int, number: int) -> str:
        """Return the name of a packed card, or a dash if it has not been dealt."""
        card = card_of(cards, number)
        return self.names[card - 1] if card else UNSEEN
