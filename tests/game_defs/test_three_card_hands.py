"""Tests of hands of three cards, against a ranking of single hands told anew."""

import collections
import functools
import itertools

import numpy as np
import pytest

from game_defs import three_card_hands

# Categories from low to high, and how many hands of 52 cards each has: counted by two
# programs that are not part of the project.
COUNTS = (16_440, 3_744, 1_096, 720, 52, 48)


def worth(hand, num_ranks):
    """A tuple that compares as a hand does: three pairs of rank and suit."""
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
    """The numbers of the cards of all hands, int [n, 3], and what each is worth."""
    cards = list(itertools.product(range(num_ranks), range(num_suits)))
    numbers = list(itertools.combinations(range(len(cards)), 3))
    worths = [worth([cards[i] for i in three], num_ranks) for three in numbers]
    return np.array(numbers), worths


@pytest.mark.parametrize(
    ("num_ranks", "num_suits"),
    [(13, 4), (2, 2), (2, 4), (3, 1), (3, 2), (4, 3), (5, 4), (12, 2), (13, 1)],
)
def test_hands_compare_as_they_should(num_ranks, num_suits):
    table = three_card_hands.strengths(num_ranks, num_suits)
    assert table.dtype == np.int16
    numbers, worths = hands(num_ranks, num_suits)
    places = {value: place for place, value in enumerate(sorted(set(worths)))}
    wanted = [places[value] for value in worths]
    for order in itertools.permutations(range(3)):
        first, second, third = numbers[:, order].T
        np.testing.assert_array_equal(table[first, second, third], wanted)
    assert (table >= 0).sum() == 6 * len(numbers)
    ranks, suits = numbers.T // num_suits, numbers.T % num_suits
    kinds, _ = three_card_hands.categories(ranks, suits, num_ranks)
    assert kinds.tolist() == [kind for kind, *_ in worths]


def test_a_full_deck_has_as_many_hands_of_each_kind_as_published():
    _, worths = hands(13, 4)
    kinds = collections.Counter(kind for kind, *_ in worths)
    assert tuple(kinds[kind] for kind in range(6)) == COUNTS
    assert len(three_card_hands.CATEGORIES) == len(COUNTS)
    assert three_card_hands.strengths(13, 4).max() + 1 == 741
