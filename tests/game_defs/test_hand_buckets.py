"""Buckets of hands, compared with brute force on small decks."""

import itertools

import numpy as np
import pytest

from game_defs.bundled.holdem import buckets, strengths
from game_defs.bundled.holdem.buckets import Buckets
from game_defs.bundled.holdem.cards import HoldemDeck
from game_defs.bundled.holdem.rules import HoldemRules

# Ranks, suits, private cards, and public cards of each round.
SMALL = ((4, 2, 1, (0, 1)), (4, 3, 2, (0, 1, 1)), (5, 2, 2, (1, 2)), (3, 4, 1, (0, 2)))


def make_buckets(ranks, suits, hole, deals, counts=None, arrays=None):
    rules = HoldemRules(HoldemDeck(ranks, suits), hole, (), deals, None)
    return Buckets(rules, counts or (1 << 16,) * len(deals), arrays)


def mean_squared_strengths(ranks, suits, hole, deals):
    """Return {(round, hand, board): mean squared strength over the last boards}."""
    bits = strengths.card_bits(suits)[: ranks * suits].tolist()
    hands = [sum(hand) for hand in itertools.combinations(bits, hole)]
    sizes = np.cumsum(deals)
    last = {}
    for cards in itertools.combinations(bits, int(sizes[-1])):
        board = sum(cards)
        left = [hand for hand in hands if not hand & board]
        strong = strengths.strengths(strengths.split(np.array(left) | board))
        for hand, own in zip(left, strong, strict=True):
            won = (strong < own).sum() + ((strong == own).sum() - 1) / 2
            last[hand, board] = (won / (len(left) - 1)) ** 2
    found = {}
    for at, size in enumerate(sizes):
        for cards in itertools.combinations(bits, int(size)):
            board = sum(cards)
            for hand in hands:
                if not hand & board:
                    values = [
                        value
                        for (own, whole), value in last.items()
                        if own == hand and whole & board == board
                    ]
                    found[at, hand, board] = np.mean(values)
    return found


@pytest.mark.parametrize("game", SMALL)
def test_buckets_are_ordered_by_mean_squared_strength(game):
    """Equal strengths share a bucket; strengths are rounded to 2^-20."""
    expected = mean_squared_strengths(*game)
    at, hand, board = (np.array(part) for part in zip(*expected, strict=True))
    number, found = (
        np.array(list(expected.values())),
        make_buckets(*game)(hand, board, at),
    )
    for each in np.unique(at):
        here = at == each
        order = np.argsort(number[here])
        value, bucket = number[here][order], found[here][order]
        apart = np.diff(value) > 4 / (1 << 20)
        assert (np.diff(bucket)[apart] > 0).all()
        assert (np.diff(bucket)[np.diff(value) < 1e-12] == 0).all()
        # Bucket indices are consecutive.
        assert set(bucket) == set(range(bucket.max() + 1))


@pytest.mark.parametrize("count", [2, 5])
def test_buckets_are_percentiles(count):
    game = SMALL[1]
    expected = mean_squared_strengths(*game)
    at, hand, board = (np.array(part) for part in zip(*expected, strict=True))
    bucket = make_buckets(*game, counts=(count,) * 3)(hand, board, at)
    for each in range(3):
        here = at == each
        number = np.array(list(expected.values()))[here]
        # The middle rank of the hands with equal strength.
        below = (number[:, None] > number + 1e-6).sum(axis=1)
        middle = below + (abs(number[:, None] - number) < 1e-6).sum(axis=1) / 2
        if len(np.unique(number.round(6))) > count:
            wanted = (count * middle / here.sum()).astype(int)
            np.testing.assert_array_equal(bucket[here], wanted)
        assert bucket[here].max() < count


def test_buckets_are_restored_from_arrays():
    """Strengths on the last boards are recomputed on demand."""
    game, counts = SMALL[1], (4, 7, 300)
    first = make_buckets(*game, counts)
    again = make_buckets(*game, counts, first.arrays())
    at, hand, board = (
        np.array(part) for part in zip(*mean_squared_strengths(*game), strict=True)
    )
    np.testing.assert_array_equal(again(hand, board, at), first(hand, board, at))
    assert {array.dtype for array in first.arrays().values()} == {
        np.dtype(np.uint8),
        np.dtype(np.uint16),
    }
    with pytest.raises(ValueError, match="last_buckets must be uint8"):
        make_buckets(*game, (4, 7, 200), first.arrays())
    with pytest.raises(ValueError, match="buckets0 must be"):
        make_buckets(*game, counts, {})


def test_buckets_do_not_depend_on_the_chunk_size(monkeypatch):
    first = make_buckets(*SMALL[1])
    monkeypatch.setattr(buckets, "_TOGETHER", 3)
    again = make_buckets(*SMALL[1])
    for name, array in first.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)


def test_sampled_boards_and_showdowns():
    ranks, suits, hole, deals = SMALL[1]
    found, random = make_buckets(ranks, suits, hole, deals), np.random.default_rng(0)
    bits = strengths.card_bits(suits)[: ranks * suits]
    drawn = np.array([found.draw_board(random) for _ in range(3000)])
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == len(bits) * (len(bits) - 1)
    assert abs(counts / len(drawn) - 1 / len(counts)).max() < 0.006
    again = np.array([found.draw_board(random, drawn[0, :1]) for _ in range(50)])
    assert (again[:, 0] == drawn[0, 0]).all()
    assert (again[:, 1] != drawn[0, 0]).all()

    board, beats = drawn[0], found.beats(drawn[0])
    hands = np.sort([sum(pair) for pair in itertools.combinations(bits, hole)])
    assert (found.held @ bits == hands).all()
    bucket, left = found.on_board(board, 2)
    np.testing.assert_array_equal(left, hands & board.sum() == 0)
    np.testing.assert_array_equal(
        bucket[left],
        found(hands[left], np.full(left.sum(), board.sum()), np.full(left.sum(), 2)),
    )
    for one, other in itertools.product(range(len(hands)), repeat=2):
        strong = strengths.strengths(
            strengths.split(hands[[one, other]] | board.sum())
        ).astype(int)
        apart = left[one] and left[other] and not hands[one] & hands[other]
        assert beats[one, other] == apart * np.sign(strong[0] - strong[1])
