"""Sums of hand matrices over classes of hands, board by board."""

import numpy as np
import pytest

from spiel_cr.games.public_tree import hands_by_board
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game

# Two private cards, two public rounds; hands of a shared deck as matrices.
PAIRS = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=5 10,"
    "firstPlayer=2 1,numSuits=2,numRanks=4,numHoleCards=2,numBoardCards=0 2,"
    "raiseSize=10 20,maxRaises=1 1)"
)


@pytest.mark.parametrize("pairs", [hands_by_board._PAIRS, 100])
def test_sums_over_classes_equal_sums_of_matrix_entries(pairs, monkeypatch):
    monkeypatch.setattr(hands_by_board, "_PAIRS", pairs)
    game = public_tree_game(PAIRS.replace("Suits=2", "Suits=3"))
    rng = np.random.default_rng(3)
    for matrix in game.payoff_matrices:
        assert isinstance(matrix, HandMatrix)
        labels = tuple(rng.integers(0, 5, size) for size in matrix.shape)
        found = dense(hands_by_board.summed(matrix, labels))
        rows, columns, values = matrix.coordinates()
        expected = np.zeros((5, 5))
        np.add.at(expected, (labels[0][rows], labels[1][columns]), values)
        np.testing.assert_allclose(found, expected, atol=1e-15)


def dense(matrix):
    rows, columns, values = matrix.coordinates()
    found = np.zeros(matrix.shape)
    np.add.at(found, (rows, columns), values)
    return found
