"""Signals of a `universal_poker`: hands and public cards, up to suits that are alike.

A permutation of suits that leaves the first public cards and both players' ranges as
they are makes no difference to anybody. So (public cards, hand) counts as one signal
with all that such permutations turn it into. That is more than forgetting suits: a hand
is renamed together with the board, so which cards are suited with which stays known
(Gilpin & Sandholm 2007, "Lossless abstraction of imperfect information games", section
5; Waugh 2013, "A fast and optimal hand isomorphism algorithm").
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from game_defs.bundled.holdem import cards as card_sets
from game_defs.bundled.holdem.cards import Sets
from game_defs.bundled.holdem.rules import Rules

# Signals of a player in one round; the largest that is of use, a flop, has 1 286 792.
MAX_SIGNALS = 1 << 22


class Boards(NamedTuple):
    """Public cards that may be dealt after the first ones.

    Attributes:
      every: all of them, deal by deal; a single empty one if none is dealt.
      canonical: int64 [B], numbers of those that stand for all.
      orbit: float64 [B], how many each one stands for.
      stands_for: int64 [n], for each set the index in `canonical` of its canonical one.
      by: int64 [n], the permutation of suits (of `Symmetry`) that turns it into that.
    """

    every: Sets
    canonical: np.ndarray
    orbit: np.ndarray
    stands_for: np.ndarray
    by: np.ndarray


class Symmetry(NamedTuple):
    """Permutations of suits that change nothing.

    Attributes:
      suits: G permutations; the first one is the identity.
      hands: int64 [G, H], the number of each hand after each permutation.
    """

    suits: list[tuple[int, ...]]
    hands: np.ndarray


class Signals(NamedTuple):
    """One player's signals in one round.

    Attributes:
      number: int32 [B, H], the signal of each canonical board and hand; -1: none.
      board: int32 [n], for each signal a canonical board (index in `canonical`).
      hand: int32 [n], and a hand.
    """

    number: np.ndarray
    board: np.ndarray
    hand: np.ndarray


class Deals:
    """All that can be dealt, and how likely.

    Attributes:
      rules: of the game.
      hands: Sets, of a player; those that hold a card of the first board included.
      board_mask: the first public cards as a mask.
      reaches: float64 [2, H], how likely each hand is, as weights, of which a player's
        largest is at least 1/2 and less than 1; 0: impossible.
      meets: bool [H, H], which hands have no card in common.
      symmetry: of suits.
    """

    def __init__(self, rules: Rules, *, suits: bool = True) -> None:
        """List hands.

        Args:
          rules: of the game.
          suits: treat what only differs by suits as one; False is for comparison.

        Raises:
          ValueError: If there are too many deals.
        """
        self.rules = rules
        deck = rules.deck
        self.hands = Sets(range(len(deck)), (rules.hole,), deck)
        self.board_mask = int(card_sets.bits(np.array([rules.board], np.int64))[0])
        if rules.reaches is None:
            reaches = np.ones((2, len(self.hands)))
        else:
            reaches = rules.reaches
        self.meets = self.hands.bits[:, None] & self.hands.bits == 0
        possible = self.hands.bits & self.board_mask == 0
        # A hand that leaves the other player none is never dealt, whatever its weight.
        held = (possible & (reaches > 0)).astype(np.float32)
        possible = possible & (held[::-1] @ self.meets.astype(np.float32) > 0)
        reaches = np.where(possible, reaches, 0.0)
        # Only proportions count. Powers of two keep them exact.
        _, exponent = np.frexp(reaches.max(axis=1, keepdims=True))
        self.reaches: np.ndarray = np.ldexp(reaches, -exponent)
        self.symmetry = self._symmetry(suits)

    def _symmetry(self, suits: bool) -> Symmetry:
        """Return the permutations of suits that keep the first board and the ranges."""
        deck, kept, images = self.rules.deck, [], []
        for suit in deck.permutations() if suits else deck.permutations()[:1]:
            board = deck.permuted(np.array([self.rules.board], np.int64), suit)
            hands = self.hands.find(deck.permuted(self.hands.cards, suit))
            same_board = int(card_sets.bits(board)[0]) == self.board_mask
            if same_board and (self.reaches[:, hands] == self.reaches).all():
                kept.append(suit)
                images.append(hands)
        return Symmetry(kept, np.array(images))

    def total(self) -> float:
        """The sum over both players' hands of their weights, if they share no card.

        Raises:
          ValueError: If it is 0.
        """
        total = float(self.reaches[0] @ self.meets @ self.reaches[1])
        if total <= 0:
            raise ValueError(
                "handReaches: no two hands of positive reach can be dealt together"
            )
        return total

    def boards(self, sizes: Sequence[int]) -> Boards:
        """Return the public cards to come, and those that stand for others.

        Args:
          sizes: cards of each deal.

        Raises:
          ValueError: If there are too many.
        """
        deck = self.rules.deck
        left = [card for card in range(len(deck)) if not self.board_mask >> card & 1]
        self._refuse_many(len(left), sizes)
        every = Sets(left, sizes, deck)
        images = np.stack(
            [
                every.find(deck.permuted(every.cards, suits))
                for suits in self.symmetry.suits
            ]
        )
        by = images.argmin(axis=0)
        canonical, stands_for, orbit = np.unique(
            images.min(axis=0), return_inverse=True, return_counts=True
        )
        return Boards(every, canonical, orbit.astype(float), stands_for, by)

    def _refuse_many(self, left: int, sizes: Sequence[int]) -> None:
        """Before anything large is made."""
        signals = num_deals(left, sizes) * len(self.hands) / len(self.symmetry.suits)
        if signals > MAX_SIGNALS:
            cards = sum(sizes)
            raise ValueError(
                f"about {signals:.2g} signals per player after {cards} public cards;"
                f" at most {MAX_SIGNALS:.2g} are supported. Take a later subgame (give"
                " potSize and boardCards), or a smaller deck (numRanks, numSuits)"
            )

    def signals(self, player: int, boards: Boards) -> Signals:
        """What the player can have seen, given these public cards."""
        player_reach, opponent_reach = self.reaches[player], self.reaches[1 - player]
        on_board = boards.every.bits[boards.canonical]
        free = self.hands.bits & on_board[:, None] == 0
        # A hand that leaves the other player none is never dealt.
        others = (free * (opponent_reach > 0)).astype(np.float32)
        possible = (
            free & (player_reach > 0) & (others @ self.meets.astype(np.float32) > 0)
        )
        least = self._least(boards)
        places = least + len(self.hands) * np.arange(len(least))[:, None]
        keys, number = np.unique(places[possible], return_inverse=True)
        table = np.full(possible.shape, -1, np.int32)
        table[possible] = number
        board, hand = np.divmod(keys.astype(np.int32), len(self.hands))
        return Signals(table, board, hand)

    def _least(self, boards: Boards) -> np.ndarray:
        """int64 [B, H]: on each canonical board, the hand that stands for a hand."""
        images = self.symmetry.hands
        least = np.repeat(images[:1], len(boards.canonical), axis=0)
        cards = boards.every.cards[boards.canonical]
        for suits, hands in zip(self.symmetry.suits[1:], images[1:], strict=True):
            moved = self.rules.deck.permuted(cards, suits)
            fixed = boards.every.find(moved) == boards.canonical
            least[fixed] = np.minimum(least[fixed], hands)
        return least


def num_deals(left: int, sizes: Sequence[int]) -> float:
    """Return how many deals of sets of these sizes there are, of so many cards."""
    count = 1.0
    for size in sizes:
        count *= math.comb(left, size)
        left -= size
    return count


def earlier_board(boards: Boards, earlier: Boards) -> np.ndarray:
    """int64 [B], the canonical board of an earlier deal behind each canonical one.

    The first cards of a board that comes first among its images come first among
    theirs, so no suits change.
    """
    cards = boards.every.cards[boards.canonical]
    places = earlier.every.find(cards[:, : earlier.every.cards.shape[1]])
    return earlier.stands_for[places]


def parents_of(
    boards: Sequence[Boards], rounds: Sequence[Signals]
) -> tuple[np.ndarray, ...]:
    """For each round int32 [n], the signal of the round before; zeros in the first."""
    parents = [np.zeros(len(rounds[0].hand), np.int32)]
    for r, signals in enumerate(rounds[1:]):
        behind = earlier_board(boards[r + 1], boards[r])[signals.board]
        parents.append(rounds[r].number[behind, signals.hand])
    return tuple(parents)
