"""Private states of a `universal_poker`, up to equivalent suits.

A permutation of suits that leaves the first public cards and both players' ranges
unchanged does not change the game. Therefore a pair (public cards, hand) and all its
images under such permutations form one private state. This keeps more information than
removing suits, because the hand is permuted together with the board: the player still
sees which of the cards share a suit (Gilpin & Sandholm 2007, "Lossless abstraction of
imperfect information games", section 5; Waugh 2013, "A fast and optimal hand
isomorphism algorithm").
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from game_defs.bundled.holdem import cards as card_sets
from game_defs.bundled.holdem.cards import Sets
from game_defs.bundled.holdem.rules import HoldemRules

# Private states per player and round; a flop, the largest in use, has 1,286,792.
MAX_PRIVATE_STATES = 1 << 22


class PublicCards(NamedTuple):
    """Public cards that may be dealt after the first ones.

    Attributes:
      every: All sets of public cards, deal by deal; one empty set if no card is dealt.
      canonical: Indices of the canonical sets, one for each class of equivalent sets,
        int64 [B].
      orbit: The number of sets in each class, float64 [B].
      stands_for: Index of the class of each set in `canonical`, int64 [n].
      by: The permutation of suits (index in `HoldemDeals.suits`) that maps the set to
        its canonical set, int64 [n].
    """

    every: Sets
    canonical: np.ndarray
    orbit: np.ndarray
    stands_for: np.ndarray
    by: np.ndarray


class RoundPrivateStates(NamedTuple):
    """One player's private states in one round.

    Attributes:
      number: The private state of each canonical board and hand, int32 [B, H]; -1 if
        the deal is impossible.
      board: A canonical board of each private state (index in `canonical`), int32 [n].
      hand: A hand of each private state, int32 [n].
    """

    number: np.ndarray
    board: np.ndarray
    hand: np.ndarray


class HoldemDeals:
    """All possible deals and their probabilities.

    Attributes:
      rules: Rules of the game.
      hands: All hands of a player, including those with a card of the first board.
      board_mask: The first public cards as a bit mask.
      reaches: Weights of both players' hands, scaled so that a player's largest weight
        is at least 1/2 and less than 1, float64 [2, H]; 0: impossible.
      meets: Whether two hands have no card in common, bool [H, H].
      suits: The G permutations of suits that do not change the game; the first one is
        the identity.
      images: The index of each hand's image under each permutation, int64 [G, H].
    """

    def __init__(self, rules: HoldemRules, *, suits: bool = True) -> None:
        """List all hands and their weights.

        Args:
          rules: Rules of the game.
          suits: Whether to merge deals that differ only by equivalent suits; False is
            for comparison.

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
        # A hand is never dealt if it leaves the opponent no hand, whatever its weight.
        held = (possible & (reaches > 0)).astype(np.float32)
        possible = possible & (held[::-1] @ self.meets.astype(np.float32) > 0)
        reaches = np.where(possible, reaches, 0.0)
        # Only proportions matter. Scaling by powers of two keeps them exact.
        _, exponent = np.frexp(reaches.max(axis=1, keepdims=True))
        self.reaches: np.ndarray = np.ldexp(reaches, -exponent)
        self.suits: list[tuple[int, ...]] = []
        images = []
        for suit in deck.permutations() if suits else deck.permutations()[:1]:
            board = deck.permuted(np.array([rules.board], np.int64), suit)
            hands = self.hands.find(deck.permuted(self.hands.cards, suit))
            same_board = int(card_sets.bits(board)[0]) == self.board_mask
            if same_board and (self.reaches[:, hands] == self.reaches).all():
                self.suits.append(suit)
                images.append(hands)
        self.images = np.array(images)

    def total(self) -> float:
        """Return the sum of products of weights over all disjoint pairs of hands.

        Raises:
          ValueError: If it is 0.
        """
        total = float(self.reaches[0] @ self.meets @ self.reaches[1])
        if total <= 0:
            raise ValueError(
                "handReaches: no two hands of positive reach can be dealt together; "
                "give both players hands without common cards"
            )
        return total

    def boards(self, sizes: Sequence[int]) -> PublicCards:
        """Return the public cards to come and their classes of equivalent sets.

        Args:
          sizes: Number of cards of each deal.

        Raises:
          ValueError: If there are too many.
        """
        deck = self.rules.deck
        left = [card for card in range(len(deck)) if not self.board_mask >> card & 1]
        self._refuse_many(len(left), sizes)
        every = Sets(left, sizes, deck)
        images = np.stack(
            [every.find(deck.permuted(every.cards, suits)) for suits in self.suits]
        )
        by = images.argmin(axis=0)
        canonical, stands_for, orbit = np.unique(
            images.min(axis=0), return_inverse=True, return_counts=True
        )
        return PublicCards(every, canonical, orbit.astype(float), stands_for, by)

    def _refuse_many(self, left: int, sizes: Sequence[int]) -> None:
        """Raise ValueError if there are too many private states to list."""
        count = num_deals(left, sizes) * len(self.hands) / len(self.suits)
        if count > MAX_PRIVATE_STATES:
            cards = sum(sizes)
            raise ValueError(
                f"about {count:.2g} private states per player after {cards} public"
                f" cards; at most {MAX_PRIVATE_STATES:.2g} are supported; choose a"
                " later subgame (potSize, boardCards) or a smaller deck (numRanks, "
                "numSuits)"
            )

    def private_states(self, player: int, boards: PublicCards) -> RoundPrivateStates:
        """Return the private states that a player can have, given the public cards."""
        player_reach, opponent_reach = self.reaches[player], self.reaches[1 - player]
        on_board = boards.every.bits[boards.canonical]
        free = self.hands.bits & on_board[:, None] == 0
        # A hand is never dealt if it leaves the opponent no hand.
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
        return RoundPrivateStates(table, board, hand)

    def _least(self, boards: PublicCards) -> np.ndarray:
        """Return the smallest hand equivalent to each on its board, int64 [B, H]."""
        least = np.repeat(self.images[:1], len(boards.canonical), axis=0)
        cards = boards.every.cards[boards.canonical]
        for suits, hands in zip(self.suits[1:], self.images[1:], strict=True):
            moved = self.rules.deck.permuted(cards, suits)
            fixed = boards.every.find(moved) == boards.canonical
            least[fixed] = np.minimum(least[fixed], hands)
        return least


def num_deals(left: int, sizes: Sequence[int]) -> float:
    """Return the number of deals of sets of the given sizes from `left` cards."""
    count = 1.0
    for size in sizes:
        count *= math.comb(left, size)
        left -= size
    return count


def earlier_board(boards: PublicCards, earlier: PublicCards) -> np.ndarray:
    """Return the canonical board of an earlier deal that precedes each canonical board.

    A board that is first among its images begins with cards that are first among
    theirs, so no permutation of suits is necessary.

    Returns:
      Indices in `earlier.canonical`, int64 [B].
    """
    cards = boards.every.cards[boards.canonical]
    places = earlier.every.find(cards[:, : earlier.every.cards.shape[1]])
    return earlier.stands_for[places]


def parents_of(
    boards: Sequence[PublicCards], rounds: Sequence[RoundPrivateStates]
) -> tuple[np.ndarray, ...]:
    """Return the parent of each private state of each round.

    Returns:
      For each round int32 [n], the private state of the round before; zeros in the
      first round.
    """
    parents = [np.zeros(len(rounds[0].hand), np.int32)]
    for r, private_states in enumerate(rounds[1:]):
        behind = earlier_board(boards[r + 1], boards[r])[private_states.board]
        parents.append(rounds[r].number[behind, private_states.hand])
    return tuple(parents)
