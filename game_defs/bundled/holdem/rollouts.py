"""Hands compared on the public cards to come, board by board: rollouts of all of them.

A game of the first rounds alone ends where nobody bets any more. What its hands are
worth there is the average over all cards to come, of which those are listed that stand
for others by a permutation of suits that leaves the board as it is.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from game_defs.bundled.holdem import cards as card_sets
from game_defs.bundled.holdem import strengths
from game_defs.bundled.holdem.cards import Deck, Sets
from game_defs.bundled.holdem.signals import Boards, Deals, Signals

# Strengths are looked up by sets of cards to come and hand where these are no more.
_MOST_SETS = 1_000_000
# As many strengths are made at once.
_CHUNK = 1 << 20


class Completions(NamedTuple):
    """Some ways to complete a board; m of them, n hands.

    Attributes:
      strength: int16 or int32 [m, n], at least 0; the higher one wins.
      free: bool [m, n], whether the hand has none of the cards to come.
      times: int64 [m], how many completions each one stands for.
    """

    strength: np.ndarray
    free: np.ndarray
    times: np.ndarray


class Rollouts:
    """All boards of the last round that is kept, and how they are completed.

    Attributes:
      starts: int64 [B + 1], where each board's signals begin; they lie side by side.
      weight: float64 [B], the probability of two hands and a completed board, times how
        many boards this one stands for.
      ways: float, in how many ways the board of two hands can be completed.
    """

    def __init__(self, deals: Deals, boards: Boards, own: Signals) -> None:
        """Lists nothing large.

        Args:
          deals: what can be dealt; rounds are left out.
          boards: those of the last round that is kept.
          own: the signals of that round, which are the same for both players.
        """
        self._deals, self._boards, self._own = deals, boards, own
        rules = deals.rules
        shown = len(rules.board) + boards.every.cards.shape[1]
        left = len(rules.deck) - shown
        self._later = rules.later
        ways = _choose(left - 2 * rules.hole, rules.later)
        before = _choose(
            len(rules.deck) - len(rules.board) - 2 * rules.hole,
            boards.every.cards.shape[1],
        )
        # All hands are equally likely; reaches are scaled.
        pair = float(np.square(deals.reaches.max())) / deals.total()
        self.weight: np.ndarray = boards.orbit * pair / (before * ways)
        self.starts = np.searchsorted(own.board, np.arange(len(boards.canonical) + 1))
        self.ways = ways

    def hands(self, board: int) -> tuple[np.ndarray, np.ndarray]:
        """The hands that can be held on a board.

        Returns:
          Their numbers, int64 [n], and of each the signal, int64 [n], counted from the
          board's first.
        """
        number = self._own.number[board if len(self._own.number) > 1 else 0]
        there = np.flatnonzero(number >= 0)
        return there, number[there] - self.starts[board]

    def apart(self, hands: np.ndarray) -> np.ndarray:
        """bool [n, n], whether two hands share no card."""
        bits = self._deals.hands.bits[hands]
        found: np.ndarray = bits[:, None] & bits == 0
        return found

    def completions(self, board: int, hands: np.ndarray) -> Iterator[Completions]:
        """All cards to come on a board, some at a time.

        Args:
          board: which one.
          hands: int64 [n], numbers of hands.
        """
        deals, deck = self._deals, self._deals.rules.deck
        public = [*deals.rules.board, *self._on(board)]
        left = [card for card in range(len(deck)) if card not in public]
        listed = _listed(len(left), self._later, deals.rules.hole)
        every, cards = listed.every, np.array(left, np.int64)
        canonical, count = self._canonical(board, every, cards)
        to_come = cards[every.cards[canonical]]
        bits = card_sets.bits(to_come)
        shown = strengths.suit_masks(np.array(public, np.int64), deck.num_suits)
        own = deals.hands.cards[hands]
        table = None
        if listed.union is not None:
            table = _ranks(shown, cards[listed.union.cards], deck.num_suits)
            place = listed.hands.find(np.searchsorted(cards, own))
        else:
            held = strengths.suit_masks(own, deck.num_suits)
        step = max(1, _CHUNK // max(1, len(hands)))
        for begin in range(0, len(canonical), step):
            part = slice(begin, begin + step)
            free = bits[part, None] & deals.hands.bits[hands] == 0
            if table is not None:
                strength = table[listed.number[canonical[part]][:, place]]
            else:
                on = shown | strengths.suit_masks(to_come[part], deck.num_suits)
                strength = strengths.strengths(on[:, None] | held)
            yield Completions(strength, free, count[part])

    def _on(self, board: int) -> list[int]:
        boards = self._boards
        on: list[int] = boards.every.cards[boards.canonical[board]].tolist()
        return on

    def _canonical(
        self, board: int, every: Sets, cards: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Completions that stand for all, and for how many.

        Args:
          board: which one.
          every: all completions, by places among the cards that are left.
          cards: int64, these.
        """
        deck = self._deals.rules.deck
        on = np.array([self._on(board)], np.int64)
        same = card_sets.bits(on)[0]
        least = np.arange(len(every))
        for suits in self._deals.symmetry.suits[1:]:
            if card_sets.bits(deck.permuted(on, suits))[0] == same:
                moved = np.searchsorted(cards, deck.permuted(cards, suits))
                least = np.minimum(least, every.find(moved[every.cards]))
        return np.unique(least, return_counts=True)


class _Listed(NamedTuple):
    """Sets of places among the cards that are left.

    Attributes:
      every: of the cards to come.
      union: of these and a hand's; None where they are too many.
      hands: of a hand's cards.
      number: int32 [every, hands], the set of both; any where they share a card.
    """

    every: Sets
    union: Sets | None
    hands: Sets
    number: np.ndarray


@functools.lru_cache(maxsize=2)
def _listed(left: int, later: int, hole: int) -> _Listed:
    places = Deck(left, 1)
    every, hands = (Sets(range(left), size, places) for size in (later, hole))
    if _choose(left, later + hole) > _MOST_SETS:
        return _Listed(every, None, hands, np.zeros((0, 0), np.int32))
    union = Sets(range(left), later + hole, places)
    return _Listed(every, union, hands, _numbers(every, hands, union))


def _choose(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def _ranks(shown: np.ndarray, cards: np.ndarray, num_suits: int) -> np.ndarray:
    """int16 [n], strengths of sets of cards on a board, as numbers from 0."""
    found = strengths.strengths(shown | strengths.suit_masks(cards, num_suits))
    return np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int16)


def _numbers(every: Sets, hands: Sets, union: Sets) -> np.ndarray:
    """See `_Listed.number`."""
    found = np.empty((len(every), len(hands)), np.int32)
    hole = hands.cards.shape[1]
    for row, to_come in zip(found, every.cards, strict=True):
        both = np.empty((len(hands), hole + len(to_come)), np.int64)
        both[:, :hole], both[:, hole:] = hands.cards, to_come
        both.sort(axis=1)
        both[(np.diff(both, axis=1) == 0).any(axis=1)] = union.cards[0]
        row[:] = union.find(both)
    return found
