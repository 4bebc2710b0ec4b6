"""Table of the strengths of all hands of three cards.

From high to low, the categories are straight flush, three of a kind, straight, flush,
pair and high card. With three cards a straight is rarer than a flush, and three of a
kind is rarer than both. In straights the ace is high or low; a straight with a low ace
is the lowest one. Hands of one category are compared first by the ranks that form the
category, then by the other ranks in descending order; suits do not matter.
"""

import numpy as np

# In ascending order; the index of a category is its number.
CATEGORIES = ("high card", "pair", "flush", "straight", "trips", "straight flush")
HAND_SIZE = 3
_HIGH_CARD, _PAIR, _FLUSH, _STRAIGHT, _TRIPS, _STRAIGHT_FLUSH = range(len(CATEGORIES))


def strengths(num_ranks: int, num_suits: int) -> np.ndarray:
    """Return the strengths of all hands.

    Args:
      num_ranks: Number of ranks in the deck; the highest is the ace.
      num_suits: Number of suits in the deck.

    Returns:
      int16 [C, C, C] for C = num_ranks * num_suits cards, where a card is its rank *
      num_suits + its suit: 0 for the weakest hands, one more for each stronger class of
      hands; -1 if a card occurs twice.
    """
    num_cards = num_ranks * num_suits
    cards = np.indices((num_cards,) * HAND_SIZE).reshape(HAND_SIZE, -1)
    kind, ranks = categories(cards // num_suits, cards % num_suits, num_ranks)
    order = kind
    for rank in ranks:
        order = order * num_ranks + rank
    first, second, third = cards
    distinct = (first != second) & (second != third) & (first != third)
    strength = np.full(len(order), -1, np.int16)
    _, strength[distinct] = np.unique(order[distinct], return_inverse=True)
    return strength.reshape((num_cards,) * HAND_SIZE)


def categories(
    ranks: np.ndarray, suits: np.ndarray, num_ranks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the category of each hand and the ranks that decide within it.

    Args:
      ranks: Ranks of the cards, from 0, int [3, n]; num_ranks - 1 is the ace.
      suits: Suits of the cards, int [3, n].
      num_ranks: Number of ranks in the deck.

    Returns:
      Indices into `CATEGORIES`, int [n], and ranks to compare in turn, int [3, n].
    """
    low, middle, high = np.sort(ranks, axis=0)
    flush = (suits[0] == suits[1]) & (suits[1] == suits[2])
    trips = low == high
    pair = ((low == middle) | (middle == high)) & ~trips
    # In this straight the ace is low, so the second-lowest rank is the highest.
    ace_low = (low == 0) & (middle == 1) & (high == num_ranks - 1) & (high > middle)
    straight = ace_low | ((middle == low + 1) & (high == middle + 1))
    kind = np.select(
        [straight & flush, trips, straight, flush, pair],
        [_STRAIGHT_FLUSH, _TRIPS, _STRAIGHT, _FLUSH, _PAIR],
        _HIGH_CARD,
    )
    nothing = np.zeros_like(low)
    # The middle one of three sorted ranks always belongs to the pair.
    deciding = np.select(
        [straight, pair],
        [
            np.stack([np.where(ace_low, middle, high), nothing, nothing]),
            np.stack([middle, low + high - middle, nothing]),
        ],
        np.stack([high, middle, low]),
    )
    return kind, deciding
