"""Buckets of hold'em hands of similar strength, for each round and board.

A hand's score is the mean, over the boards to come, of its squared strength. The
strength is the share of other hands that it beats on the final board, with ties counted
half (Johanson 2007, "Robust strategies and counter-strategies", chapter 2). Squaring
favours hands that may become strong. The other hands are all hands without a card of
the board, including those that share a card with the hand. Percentiles of the score
divide the hands of a round into equally likely buckets. If there are no more different
scores than buckets, each score has a bucket. The abstraction has imperfect recall: a
player sees only the bucket of the current round.

Boards that differ only by the names of suits are stored once, with their suits in
ascending order. Sets of cards are numbers (see `strengths.card_bits`).
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from game_defs.bundled.holdem import strengths
from game_defs.bundled.holdem.rules import HoldemRules

# Means are rounded so that hands that differ only by suits have equal means.
_LEVELS = 1 << 20
# Number of boards that are processed together.
_TOGETHER = 1 << 8


class _Numbers(NamedTuple):
    """Scores of hands on all boards with the same number of cards.

    Attributes:
      levels: Index into `values`, unsigned integers [boards, hands]; arbitrary if board
        and hand share a card.
      values: The score of each level, float32 [levels].
    """

    levels: np.ndarray
    values: np.ndarray


class Buckets:
    """Buckets of all hands on all boards of all rounds."""

    def __init__(
        self,
        rules: HoldemRules,
        counts: Sequence[int],
        arrays: Mapping[str, np.ndarray] | None = None,
        tick: Callable[[], object] = lambda: None,
    ) -> None:
        """Compare all hands on all boards; this takes 1–2 minutes for a full deck.

        Args:
          rules: Deck, private cards and deals.
          counts: Largest number of buckets in each round, 1 to 65,536.
          arrays: Result of `arrays` for the same rules and counts. If present, only
            hands on final boards are compared, when their buckets are first needed.
          tick: Function that is called repeatedly during the comparison.

        Raises:
          ValueError: If the arrays have other shapes, types or buckets.
        """
        deck = rules.deck
        self._cards = strengths.card_bits(deck.num_suits)[: len(deck)]
        chosen = itertools.combinations(range(len(deck)), rules.hole)
        self._hands = np.sort(self._cards[np.array(list(chosen))].sum(axis=1))
        # All orders of the suits, and the image of each hand in each order.
        self._orders = np.array(list(itertools.permutations(range(deck.num_suits))))
        masks = strengths.split(self._hands)[:, self._orders]
        self._becomes = np.searchsorted(self._hands, _joined(masks)).T.astype(np.int32)
        self.held = (self._hands[:, None] & self._cards != 0).astype(np.float32)
        self._sizes = np.cumsum(rules.deals)
        self._counts, self._tick = counts, tick
        self._boards, self._weights = [np.zeros(1, np.int64)], [np.ones(1)]
        for _ in range(self._sizes[-1]):
            self._grow()
        self._known = np.zeros(len(self._boards[-1]), bool)
        widths = [np.min_scalar_type(count - 1) for count in counts]
        shapes = [(len(self._boards[size]), len(self._hands)) for size in self._sizes]
        self._labels = [np.zeros(*each) for each in zip(shapes, widths, strict=True)]
        self._last = np.zeros(2 * len(self._hands) + 1, widths[-1])
        if arrays is None:
            self._compare()
            return
        for name, array in self.arrays().items():
            stored = arrays.get(name)
            wanted = array.shape, array.dtype
            if stored is None or (stored.shape, stored.dtype) != wanted:
                raise ValueError(f"{name} must be {array.dtype} {array.shape}")
            if stored.max() >= max(counts):
                raise ValueError(f"{name} has an invalid bucket {stored.max()}")
            array[:] = stored

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the tables of buckets, to be stored and passed as `arrays`."""
        early = {f"buckets{at}": each for at, each in enumerate(self._labels[:-1])}
        return {**early, "last_buckets": self._last}

    def __call__(
        self, hands: np.ndarray, boards: np.ndarray, rounds: np.ndarray
    ) -> np.ndarray:
        """Return the buckets int64 [n] of hands.

        Args:
          hands: The hands as sets of cards, int64 [n].
          boards: The public cards as sets of cards, int64 [n].
          rounds: The round of each board, int [n].
        """
        buckets = np.zeros(len(hands), np.int64)
        for at, size in enumerate(self._sizes):
            in_round = np.flatnonzero(rounds == at)
            ordered, order = self._in_order(boards[in_round])
            board = np.searchsorted(self._boards[size], ordered)
            if at == len(self._sizes) - 1:
                new = np.unique(board[~self._known[board]])
                self._labels[at][new] = self._last[self._levels(new)]
                self._known[new] = True
            hand = self._becomes[order, np.searchsorted(self._hands, hands[in_round])]
            buckets[in_round] = self._labels[at][board, hand]
        return buckets

    def draw_board(
        self, random: np.random.Generator, first: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the cards of a complete board, int64 [n], in the order of their deals.

        Args:
          random: Random generator; it is advanced.
          first: Cards at the beginning of the board. All boards that begin with these
            cards are equally likely.
        """
        first = self._cards[:0] if first is None else first
        left = self._cards[~np.isin(self._cards, first)]
        more = random.choice(left, self._sizes[-1] - len(first), replace=False)
        return np.concatenate([first, more])

    def on_board(self, board: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the buckets of all hands on a board, and the mask of possible hands.

        Args:
          board: Cards of the board, int64 [n].
          number: Index of the round, from 0.

        Returns:
          int64 [H], the buckets, 0 for impossible hands; and bool [H], whether the hand
          has no card of the board.
        """
        cards = board.sum()
        left = self._hands & cards == 0
        buckets = np.zeros(len(left), np.int64)
        hands = self._hands[left]
        every = np.ones_like(hands)
        buckets[left] = self(hands, cards * every, number * every)
        return buckets, left

    def beats(self, board: np.ndarray) -> np.ndarray:
        """Return the outcome of each pair of hands on a complete board, int64 [n].

        Returns:
          float32 [H, H]: 1 if the first hand is stronger, -1 if it is weaker; 0 if they
          are equal, share a card, or the board has one of their cards.
        """
        cards = board.sum()
        strong = strengths.of_sets(self._hands | cards)
        left = self._hands & cards == 0
        disjoint = (self._hands[:, None] & self._hands == 0) & left & left[:, None]
        beats: np.ndarray = np.sign(strong[:, None] - strong) * disjoint
        return beats.astype(np.float32)

    def _grow(self) -> None:
        """Add the boards of one more card, with their multiplicities."""
        boards, weight = self._boards[-1][:, None], self._weights[-1][:, None]
        fits = boards & self._cards == 0
        ordered, _ = self._in_order((boards | self._cards)[fits])
        grown, place = np.unique(ordered, return_inverse=True)
        mass = np.bincount(place, np.broadcast_to(weight, fits.shape)[fits])
        self._boards.append(grown)
        # Each card of a board may be the last one dealt.
        self._weights.append(mass / np.bitwise_count(grown[0]))

    def _compare(self) -> None:
        """Compute the buckets of all rounds, from the last one to the first."""
        levels = np.empty(self._labels[-1].shape, np.uint16)
        for some in self._chunks(-1):
            levels[some] = self._levels(some)
        # Hands that share a card with the board sort first, and each hand ties itself.
        dead = int(np.count_nonzero(self._boards[-1][0] & self._hands))
        twice = np.arange(len(self._last), dtype=np.float32) - 2 * dead - 1
        values = (twice / (2 * max(len(self._hands) - dead - 1, 1))).clip(0) ** 2
        numbers = _Numbers(levels, values)
        for size in reversed(range(len(self._boards))):
            if size < self._sizes[-1]:
                numbers = self._means(size, numbers)
            for at in np.flatnonzero(self._sizes == size).tolist():
                label = self._labels[at]
                bucket = self._percentiles(size, numbers, self._counts[at])
                bucket = bucket.astype(label.dtype)
                for some in self._chunks(size):
                    label[some] = bucket[numbers.levels[some]]
                if at == len(self._sizes) - 1:
                    self._last[:] = bucket
        self._known[:] = True

    def _chunks(self, size: int) -> Iterator[slice]:
        """Yield slices of the boards with `size` cards that are processed together."""
        for begin in range(0, len(self._boards[size]), _TOGETHER):
            self._tick()
            yield slice(begin, begin + _TOGETHER)

    def _levels(self, places: slice | np.ndarray) -> np.ndarray:
        """Return twice the weaker hands plus ties, on final boards, uint16 [n, H]."""
        boards = self._boards[-1][places, None]
        levels = np.empty((len(boards), len(self._hands)), np.uint16)
        strong = strengths.of_sets(boards | self._hands)
        strong[boards & self._hands != 0] = -1
        for row, level in zip(strong, levels, strict=True):
            ordered = np.sort(row)
            level[:] = ordered.searchsorted(row) + ordered.searchsorted(row, "right")
        return levels

    def _means(self, size: int, numbers: _Numbers) -> _Numbers:
        """Return the mean scores over the next card, on boards of `size` cards."""
        boards, grown = self._boards[size], self._boards[size + 1]
        levels = np.empty((len(boards), len(self._hands)), np.int32)
        for some in self._chunks(size):
            board = boards[some]
            total = np.zeros((len(board), len(self._hands)))
            count = np.zeros_like(total)
            for card in self._cards:
                rows = np.flatnonzero(board & card == 0)
                ordered, order = self._in_order(board[rows] | card)
                place = np.searchsorted(grown, ordered)
                level = numbers.levels[place[:, None], self._becomes[order]]
                free = self._hands & card == 0
                total[rows] += numbers.values[level] * free
                count[rows] += free
            mean = total / np.maximum(count, 1)
            levels[some] = np.rint(mean * (_LEVELS - 1))
        return _Numbers(levels, np.arange(_LEVELS, dtype=np.float32) / (_LEVELS - 1))

    def _percentiles(self, size: int, numbers: _Numbers, count: int) -> np.ndarray:
        """Return the bucket of each level, int64; boards have their probabilities."""
        boards, weight = self._boards[size], self._weights[size]
        mass = np.zeros(len(numbers.values))
        for some in self._chunks(size):
            free = boards[some, None] & self._hands == 0
            likely = (weight[some, None] * free).ravel()
            level = numbers.levels[some].ravel()
            mass += np.bincount(level, likely, len(mass))
        has_mass = np.flatnonzero(mass)
        bucket = np.zeros(len(mass), np.int64)
        bucket[has_mass] = np.arange(len(has_mass))
        if len(has_mass) > count:
            middle = np.cumsum(mass[has_mass]) - mass[has_mass] / 2
            bucket[has_mass] = count * middle / mass.sum()
        return bucket

    def _in_order(self, boards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return boards with their suits in ascending order, and rows of `_orders`."""
        suits = self._orders.shape[1]
        masks = strengths.split(boards)[..., :suits]
        order = np.argsort(masks, axis=-1, kind="stable")
        ordered = _joined(np.take_along_axis(masks, order, axis=-1))
        powers = suits ** np.arange(suits)[::-1]
        return ordered, np.searchsorted(self._orders @ powers, order @ powers)


def _joined(masks: np.ndarray) -> np.ndarray:
    """Join masks int16 [..., suits] of up to four suits into sets int64 [...]."""
    four = np.zeros((*masks.shape[:-1], strengths.NUM_SUITS), np.int16)
    four[..., : masks.shape[-1]] = masks
    sets: np.ndarray = four.view("<i8")[..., 0]
    return sets
