"""Strengths of hands of three cards, compared with an independent ranking."""

import collections
import functools
import itertools

import numpy as np
import pytest

from game_defs import three_card_hands

# The number of hands of 52 cards in each category, from low to high, counted by two
# independent programs.
COUNTS = (16_440, 3_744, 1_096, 720, 52, 48)


def hand_value(hand, num_ranks):
    """Return a tuple that orders hands, which are three pairs of rank and suit."""
    ranks = sorted((rank for rank, _ in hand), reverse=True)
    times = collections.Counter(ranks)
    alike = sorted(times, key=lambda rank: (times[rank], rank), reverse=True)
    ace = num_ranks - 1
    tops = [top for top in range(2, num_ranks) if ranks == [top, top - 1, top - 2]]
    if len(times) == 3 and ranks == [ace, 1, 0]:
        tops = tops or [1]
    suited = len({suit for _, suit in hand}) == 1
    if tops:
        return 5 if suited else 3, *tops
    if len(times) == 1:
        return 4, *alike
    if suited:
        return 2, *alike
    return int(len(times) == 2), *alike


@functools.cache
def hands(num_ranks, num_suits):
    """Return the cards of all hands, int [n, 3], and their `hand_value`."""
    cards = list(itertools.product(range(num_ranks), range(num_suits)))
    numbers = list(itertools.combinations(range(len(cards)), 3))
    hand_values = [
        hand_value([cards[i] for i in three], num_ranks) for three in numbers
    ]
    return np.array(numbers), hand_values


@pytest.mark.parametrize(
    ("num_ranks", "num_suits"),
    [(13, 4), (2, 2), (2, 4), (3, 1), (3, 2), (4, 3), (5, 4), (12, 2), (13, 1)],
)
def test_strengths_equal_an_independent_ranking(num_ranks, num_suits):
    table = three_card_hands.strengths(num_ranks, num_suits)
    assert table.dtype == np.int16
    numbers, hand_values = hands(num_ranks, num_suits)
    places = {value: place for place, value in enumerate(sorted(set(hand_values)))}
    wanted = [places[value] for value in hand_values]
    for order in itertools.permutations(range(3)):
        first, second, third = numbers[:, order].T
        np.testing.assert_array_equal(table[first, second, third], wanted)
    assert (table >= 0).sum() == 6 * len(numbers)
    ranks, suits = numbers.T // num_suits, numbers.T % num_suits
    kinds, _ = three_card_hands.categories(ranks, suits, num_ranks)
    assert kinds.tolist() == [kind for kind, *_ in hand_values]


def test_full_deck_has_the_known_number_of_hands_per_category():
    _, hand_values = hands(13, 4)
    kinds = collections.Counter(kind for kind, *_ in hand_values)
    assert tuple(kinds[kind] for kind in range(6)) == COUNTS
    assert len(three_card_hands.CATEGORIES) == len(COUNTS)
    assert three_card_hands.strengths(13, 4).max() + 1 == 741
