"""Strengths of poker hands of up to seven cards, for arrays of hands.

A set of cards is stored as four masks of ranks, one per suit. The highest cards and the
straights of all 2^13 masks are tabulated, so that a hand needs only a few look-ups.
"""

import numpy as np

NUM_RANKS, NUM_SUITS = 13, 4

# Categories in ascending order; hands without a category have high cards only.
_PAIR, _TWO_PAIRS, _TRIPS, _STRAIGHT, _FLUSH, _FULL_HOUSE, _QUADS, _STRAIGHT_FLUSH = (
    range(1, 9)
)
_MASKS = 1 << NUM_RANKS


def _highest(count: int) -> np.ndarray:
    """Return masks of the up to `count` highest ranks of each mask, int32 [2^13]."""
    left, top = np.arange(_MASKS), np.zeros(_MASKS, np.int32)
    for _ in range(count):
        # The exponent of frexp is one more than the index of the highest bit.
        bit = np.where(left > 0, 1 << (np.frexp(left)[1] - 1).clip(0), 0)
        top |= bit.astype(np.int32)
        left ^= bit
    return top


def _straights() -> np.ndarray:
    """Return the top rank of each mask's best straight as a mask, or 0, int32 [2^13].

    An ace also counts as the rank below a two.
    """
    with_ace_low = np.arange(_MASKS) << 1 | np.arange(_MASKS) >> NUM_RANKS - 1
    best = np.zeros(_MASKS, np.int32)
    for top in range(3, NUM_RANKS):
        five = 0b11111 << top - 3
        best[with_ace_low & five == five] = 1 << top
    return best


_TOP = {count: _highest(count) for count in (1, 2, 3, 5)}
_STRAIGHTS = _straights()
# The five highest cards of a flush; 0 for fewer than five cards.
_FLUSHES = np.where(np.bitwise_count(np.arange(_MASKS)) >= 5, _TOP[5], 0)


def suit_masks(cards: np.ndarray, num_suits: int) -> np.ndarray:
    """Return sets of cards as masks of ranks.

    Args:
      cards: Different cards, integers [..., c], rank times `num_suits` plus suit.
      num_suits: Number of suits of the deck, at most four.

    Returns:
      int16 [..., 4]; bit r is set if the set has the card of rank r and this suit.
    """
    # The sum of different bits is their union.
    return split(card_bits(num_suits)[cards].sum(axis=-1, dtype="<i8"))


def card_bits(num_suits: int) -> np.ndarray:
    """Return the bit of each card in four concatenated masks, int64 [13 num_suits].

    Args:
      num_suits: Number of suits of the deck, at most four.
    """
    rank, suit = np.divmod(np.arange(num_suits * NUM_RANKS), num_suits)
    return np.left_shift(1, 16 * suit + rank, dtype="<i8")


def split(sets: np.ndarray) -> np.ndarray:
    """Return the four masks int16 [..., 4] of sets of `card_bits`, int64 [...]."""
    masks: np.ndarray = np.asarray(sets, "<i8")[..., None].view("<i2")
    return masks


def of_cards(cards: np.ndarray, num_suits: int) -> np.ndarray:
    """Return `strengths` of cards; for the arguments see `suit_masks`."""
    return strengths(suit_masks(cards, num_suits))


def of_sets(sets: np.ndarray) -> np.ndarray:
    """Return `strengths` of sets of `card_bits`, int64 [...]."""
    return strengths(split(sets))


def strengths(masks: np.ndarray) -> np.ndarray:
    """Return the strengths of hands, which are those of the best five cards.

    Hands of fewer than five cards have no straights and no flushes.

    Args:
      masks: The result of `suit_masks`, int16 [..., 4].

    Returns:
      int32 [...]; a higher number wins, and equal numbers tie. Only hands with the same
      number of cards are comparable.
    """
    c, d, h, s = np.ascontiguousarray(np.moveaxis(masks, -1, 0))
    some, cd, hs = c | d | h | s, c & d, h & s
    # Ranks with at least two cards, at least three cards, and four cards.
    pairs = cd | hs | (c | d) & (h | s)
    trips = cd & (h | s) | hs & (c | d)
    quads = cd & hs
    value = _value(0, 0, _TOP[5][some])

    def better(where: np.ndarray, *parts: int | np.ndarray) -> None:
        np.copyto(value, _value(*parts), where=where)

    pair = _TOP[1][pairs]
    better(pairs > 0, _PAIR, pair, _TOP[3][some & ~pair])
    two = _TOP[2][pairs]
    better(pairs & ~pair > 0, _TWO_PAIRS, two, _TOP[1][some & ~two])
    trip = _TOP[1][trips]
    better(trips > 0, _TRIPS, trip, _TOP[2][some & ~trip])
    straight = _STRAIGHTS[some]
    better(straight > 0, _STRAIGHT, straight, 0)
    flush = _FLUSHES[masks].max(axis=-1)
    better(flush > 0, _FLUSH, flush, 0)
    under = _TOP[1][pairs & ~trip]
    better((trips > 0) & (under > 0), _FULL_HOUSE, trip, under)
    quad = _TOP[1][quads]
    better(quads > 0, _QUADS, quad, _TOP[1][some & ~quad])
    suited = _STRAIGHTS[masks].max(axis=-1)
    better(suited > 0, _STRAIGHT_FLUSH, suited, 0)
    return value


def _value(
    category: int | np.ndarray, first: int | np.ndarray, second: int | np.ndarray
) -> np.ndarray:
    """Return the strength that orders by category and then by two masks of ranks.

    The masks of a category have the same numbers of ranks, so the larger mask wins.
    """
    value: np.ndarray = np.asarray(
        (category << 2 * NUM_RANKS) | (first << NUM_RANKS) | second, np.int32
    )
    return value
