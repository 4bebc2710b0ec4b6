"""Tables of all-in hands: sampled and enumerated boards, and files."""

import itertools

import numpy as np
import pytest

from game_defs.bundled.holdem import strengths
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.push_fold import equities, hand_classes
from spiel_cr.push_fold.hands import ORDERS


def strength(sets):
    return strengths.strengths(strengths.split(sets))


def test_table_is_cached_in_a_file(tmp_path):
    made = equities.through(tmp_path, strength, equities.Draws(2, 1))
    assert made.boards == 512 and made.above.size == 0
    # Strengths are not computed again.
    again = equities.through(tmp_path, None, equities.Draws(2, 1))
    for mine, theirs in zip(made, again, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    tables = equities.hand_tables(made)
    np.testing.assert_allclose(
        tables.win + tables.win.T + tables.tie, tables.deal, atol=1e-9
    )
    path = tmp_path / "table.npz"
    equities.storage.save(path, {"win": made.win}, {})
    with pytest.raises(CorruptFileError, match="table"):
        equities.load(path)


def enumerated(first: list[int], second: list[int]) -> np.ndarray:
    """Return the probabilities that the first hand wins and ties, over all boards."""
    bits = strengths.card_bits(4)
    rest = [c for c in range(52) if c not in first + second]
    boards = np.array(list(itertools.combinations(range(48), 5)), np.int8)
    sets = bits[np.array(rest)[boards]].sum(axis=1)
    mine, theirs = (strength(sets | bits[hand].sum()) for hand in (first, second))
    return np.array([(mine > theirs).mean(), (mine == theirs).mean()])


@pytest.mark.slow
def test_sampled_pair_equities_equal_enumerated_boards():
    table = equities.sample(strength, equities.Draws(2, 30_000, 1))
    index = hand_classes.class_names().index
    # Of 36 deals of aces and kings, 6 share both suits, 24 one, 6 none.
    aces = [50, 51]
    share = [enumerated(aces, kings) for kings in ([46, 47], [44, 46], [44, 45])]
    win, tie = np.average(share, axis=0, weights=[1, 4, 1])
    # Six independent deals per board of 0.66 that fit; boards are shared by them, at
    # worst completely. Five standard errors: one false alarm in 1.7 million.
    error = 5 * 0.5 / np.sqrt(0.66 * table.boards)
    assert abs(table.win[index("AA"), index("KK")] - win) < error
    assert abs(table.tie[index("AA"), index("KK")] - tie) < error
    assert table.error[0] < 0.02 and 0 < table.error[1] < error / 5


@pytest.mark.slow
def test_three_hand_table_agrees_with_the_pair_table():
    table = equities.sample(strength, equities.Draws(3, 20_000, 2))
    tables = equities.hand_tables(table)
    c = hand_classes.NUM_CLASSES
    orders = dict(zip(ORDERS, tables.order3.reshape(-1, c, c, c), strict=True))
    # The first hand beats the second, for any third hand.
    better = [ranks for ranks in ORDERS if ranks[0] < ranks[1]]
    assert len(better) == 5
    win = sum(orders[ranks].sum(axis=2) for ranks in better)
    there = tables.deal > 0
    found, expected = (x[there] / tables.deal[there] for x in (win, tables.win))
    # Both tables come from the same boards, so noise of boards cancels. The rest is
    # noise of the suits that each block drew.
    assert np.abs(found - expected).mean() < 0.005
    assert np.abs(found - expected).max() < 0.08
    total = sum(x.sum(dtype=float) for x in orders.values())
    twice = sum(orders[r].sum(dtype=float) for r in ORDERS if r[0] != r[1])
    assert total + twice == pytest.approx(1, abs=1e-4)
