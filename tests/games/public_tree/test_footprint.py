"""How much memory a public-tree game is said to take."""

import numpy as np
import pytest

from spiel_cr.games.public_tree import public_tree_footprint as footprint
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from tests.support.kuhn_public_tree import kuhn

_GAME = "python_rhode_island_holdem(num_ranks=6,num_suits=3)"


def test_sizes_are_those_of_the_form():
    form = kuhn().sequence_form
    for player in range(2):
        size = footprint.size_of(kuhn(), player)
        assert size.infosets == len(form.decisions[player])
        assert size.sequences == form.decisions[player].num_sequences
    # Each player decides first, and player 0 again; nobody in between.
    assert footprint.num_kinds(kuhn()) == 3


def test_the_estimate_is_near_measured_peaks():
    """Peaks of processes: the lab note on public trees; 30% is promised."""
    public_tree = public_tree_game(_GAME)
    assert footprint.peak_bytes(public_tree, np.float32) == pytest.approx(
        639e6, rel=0.3
    )


def test_kernels_of_hands_count_as_they_are_laid_out():
    """A limit turn, 48 rivers of 1 081 hands: what the benchmark's process took."""
    turn = public_tree_game(
        "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=40 40,"
        "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3 1 1,raiseSize=10 10 20 20,"
        "maxRaises=3 4 4 4,bettingAbstraction=fcpa,potSize=80,"
        "boardCards=5c9dJs2h)"
    )
    assert footprint.peak_bytes(turn, np.float32) == pytest.approx(1.06e9, rel=0.3)


def test_what_programs_keep_counts():
    """A turn of few bets: its process took 763 MB, a quarter of it for matrices."""
    turn = public_tree_game(
        "python_poker_spot(board=5c9dJs2h,bets=none; river allin; turn allin; cap 1)"
    )
    assert footprint.peak_bytes(turn, np.float32) == pytest.approx(763e6, rel=0.3)
    assert footprint.peak_bytes(turn, np.float64) > footprint.peak_bytes(
        turn, np.float32
    )
