"""Matrices as integers: exact, or refused."""

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
from tests.abstraction.gameshrink.test_partition import SMALL, alone
from tests.support.kuhn_public_tree import kuhn


@pytest.fixture(scope="module")
def game():
    return public_tree_game(SMALL)


def test_numbers_of_deals(game):
    """30, 120 and 360 deals of two, three and four cards, over common factors."""
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


def test_rounds_without_kernels(game):
    """A signal is dealt as often as those that refine it."""
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
    """The same with another last matrix, in the places of its first entries."""
    last = game.payoff_matrices[-1]
    entries = Payoffs(*(e[: len(values)] for e in last.coordinates()))
    matrix = SparseMatrix(last.round, last.shape, entries._replace(values=values))
    return dataclasses.replace(
        game, payoff_matrices=(*game.payoff_matrices[:-1], matrix)
    )


def test_what_is_no_count_is_refused(game):
    unit = game.payoff_matrices[-1].coordinates().values
    fine = with_last(game, np.abs(unit).min() * np.array([1.0, 2 / 3]))
    assert gameshrink.count(fine).payoff_matrices[-1].sum() == 5
    with pytest.raises(
        InvalidGameError, match="probabilities of round 2 are not multip"
    ):
        gameshrink.count(with_last(game, np.abs(unit).min() * np.array([1.0, np.pi])))


def test_what_does_not_fit_is_refused(game):
    """Differences of products beyond 64 bits are not trusted."""
    small = np.abs(game.payoff_matrices[-1].coordinates().values).min()
    huge = with_last(game, small * np.array([1.0, 2.0**50]))
    with pytest.raises(GameTooLargeError, match="do not fit into 64 bits"):
        gameshrink.difference(huge, alone(game))


@pytest.mark.parametrize("player", [0, 1])
def test_sums_of_counts_that_wrap_are_refused(player):
    """Two signals meet 4096 others each: 2^52 times every one, and once."""
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


def test_too_many_hands_are_refused(game):
    """Ten thousand hands on one board."""
    n = np.zeros(10_000, np.int32)
    hands = BoardHands(n, n, np.arange(10_000)[:, None] % 100, n, np.ones(10_000))
    matrix = HandMatrix(2, game.payoff_matrices[-1].shape, (hands, hands), True)
    large = dataclasses.replace(
        game, payoff_matrices=(*game.payoff_matrices[:-1], matrix)
    )
    for refused in (gameshrink.count, gameshrink.lp_size):
        with pytest.raises(GameTooLargeError, match="compares 100,000,000 pairs of"):
            refused(large)
