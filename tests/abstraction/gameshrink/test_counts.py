"""Payoff matrices as exact integers, and errors if they cannot be."""

import dataclasses

import numpy as np
import pytest

from spiel_cr.abstraction import gameshrink
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.public_tree.payoff_matrices import (
    BoardHands,
    HandMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.sequence_form.decisions import Payoffs
from tests.abstraction.gameshrink.test_partition import SMALL, trivial_partition
from tests.support.kuhn_public_tree import kuhn


@pytest.fixture(scope="module")
def game():
    return public_tree_game(SMALL)


def test_counts_are_proportional_to_numbers_of_deals(game):
    """There are 30, 120 and 360 deals; counts are divided by common factors."""
    counts = gameshrink.count(game)
    assert [int(w.sum()) for w in counts.weights[0]] == [15, 60, 180]
    for matrix, whole in zip(game.payoff_matrices, counts.payoff_matrices, strict=True):
        rows, columns, values = matrix.coordinates()
        units = values / whole[rows, columns]
        np.testing.assert_allclose(units, units[0], rtol=1e-12)


def without_round_0(game):
    terms = game.terms
    kept = [term[game.betting.round[terms.leaf] > 0] for term in terms]
    return dataclasses.replace(
        game,
        payoff_matrices=game.payoff_matrices[1:],
        terms=type(terms)(kept[0], kept[1] - 1, kept[2]),
    )


def test_counts_of_rounds_without_payoff_matrices(game):
    """The count of a private state is the sum of its refinements' counts."""
    assert [matrix.round for matrix in game.payoff_matrices] == [
        0,
        1,
        2,
        2,
    ]
    fewer = without_round_0(game)
    fewer.check()
    found = gameshrink.count(fewer).weights[1][0]
    expected = gameshrink.count(game).weights[1][0]
    assert (found * expected[0] == expected * found[0]).all()
    partition = gameshrink.lossless_partition(fewer)
    assert partition.num_classes(0)[0] == 3


def with_last(game, values, entries=None):
    """Return the game with a last matrix that has `values` as its only entries."""
    last = game.payoff_matrices[-1]
    entries = Payoffs(*(e[: len(values)] for e in last.coordinates()))
    matrix = SparseMatrix(last.round, last.shape, entries._replace(values=values))
    return dataclasses.replace(
        game, payoff_matrices=(*game.payoff_matrices[:-1], matrix)
    )


def test_rejects_probabilities_without_a_common_unit(game):
    unit = game.payoff_matrices[-1].coordinates().values
    fine = with_last(game, np.abs(unit).min() * np.array([1.0, 2 / 3]))
    assert gameshrink.count(fine).payoff_matrices[-1].sum() == 5
    with pytest.raises(
        InvalidGameError, match="probabilities of round 2 are not multip"
    ):
        gameshrink.count(with_last(game, np.abs(unit).min() * np.array([1.0, np.pi])))


def test_raises_if_differences_exceed_64_bits(game):
    small = np.abs(game.payoff_matrices[-1].coordinates().values).min()
    huge = with_last(game, small * np.array([1.0, 2.0**50]))
    with pytest.raises(GameTooLargeError, match="do not fit into 64 bits"):
        gameshrink.difference(huge, trivial_partition(game))


@pytest.mark.parametrize("player", [0, 1])
def test_raises_if_sums_of_counts_overflow(player):
    """Two private states meet 4,096 others each, with counts of 2^52 and 1."""
    count = 4096
    own = np.repeat(np.array([0, 1], np.int32), count)
    other = np.tile(np.arange(count, dtype=np.int32), 2)
    values = np.repeat([2.0**52, 1.0], count) / 2.0**64
    pairs, shape = (own, other), (2, count)
    if player:
        pairs, shape = (other, own), (count, 2)
    matrix = SparseMatrix(0, shape, Payoffs(*pairs, values))
    parents = [(np.zeros(size, np.int32),) for size in shape]
    game = kuhn()
    game = dataclasses.replace(
        game,
        parents=(parents[0], parents[1]),
        payoff_matrices=(matrix,),
        terms=game.terms._replace(matrix=np.zeros_like(game.terms.matrix)),
    )
    game.check()
    for refused in (gameshrink.count, gameshrink.lossless_partition):
        with pytest.raises(GameTooLargeError, match="use the game without a partition"):
            refused(game)


def test_raises_if_there_are_too_many_pairs_of_hands(game):
    """There are ten thousand hands on one board."""
    n = np.zeros(10_000, np.int32)
    hands = BoardHands(n, n, np.arange(10_000)[:, None] % 100, n, np.ones(10_000))
    matrix = HandMatrix(2, game.payoff_matrices[-1].shape, (hands, hands), True)
    large = dataclasses.replace(
        game, payoff_matrices=(*game.payoff_matrices[:-1], matrix)
    )
    for refused in (gameshrink.count, gameshrink.lp_size):
        with pytest.raises(GameTooLargeError, match="compares 100,000,000 pairs of"):
            refused(large)
