"""Memory estimates of public-tree games."""

import numpy as np
import pytest

from spiel_cr.games.public_tree import public_tree_footprint as footprint
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from tests.support.kuhn_public_tree import kuhn

_GAME = "python_rhode_island_holdem(num_ranks=6,num_suits=3)"


def test_sizes_equal_those_of_the_form():
    form = kuhn().sequence_form
    for player in range(2):
        decisions = kuhn().public_decisions[player]
        assert decisions.num_infosets == len(form.decisions[player])
        assert decisions.num_sequences == form.decisions[player].num_sequences
    # Kinds: the first decision of each player, and the second one of player 0.
    assert footprint.num_kinds(kuhn()) == 3


def test_estimate_is_close_to_measured_peaks():
    """The lab note on public trees has the measurement and an error of 30%."""
    public_tree = public_tree_game(_GAME)
    assert footprint.peak_bytes(public_tree, np.float32) == pytest.approx(
        639e6, rel=0.3
    )


def test_estimate_counts_hand_matrices_in_operator_form():
    """A limit turn (48 rivers of 1,081 hands), compared with a benchmark's peak."""
    turn = public_tree_game(
        "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=40 40,"
        "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3 1 1,raiseSize=10 10 20 20,"
        "maxRaises=3 4 4 4,bettingAbstraction=fcpa,potSize=80,"
        "boardCards=5c9dJs2h)"
    )
    assert footprint.peak_bytes(turn, np.float32) == pytest.approx(1.06e9, rel=0.3)


def test_estimate_includes_memory_of_compiled_functions():
    """A turn with few bets needed 763 MB, a quarter of which was for matrices."""
    turn = public_tree_game(
        "python_poker_spot(board=5c9dJs2h,bets=none; river allin; turn allin; cap 1)"
    )
    assert footprint.peak_bytes(turn, np.float32) == pytest.approx(763e6, rel=0.3)
    assert footprint.peak_bytes(turn, np.float64) > footprint.peak_bytes(
        turn, np.float32
    )
