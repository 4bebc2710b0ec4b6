"""Merging of equivalent private states, which are numbered board by board."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses, conversions
from tests.support import games
from tests.support.detection import detect

DECK = "python_rhode_island_holdem(num_ranks=3,num_suits=3,max_bets=1)"


def uniform_nash_conv(game):
    form = game.sequence_form
    behaviour = [conversions.uniform_behaviour(own) for own in form.decisions]
    return best_responses.nash_conv(form, best_responses.reach_of(form, behaviour))


def test_merging_reduces_private_states_and_preserves_the_game():
    whole = public_tree_game(DECK)
    game = merged(whole)
    game.check()
    assert game.num_private_states(0)[2] < whole.num_private_states(0)[2]
    assert uniform_nash_conv(game) == pytest.approx(uniform_nash_conv(whole), abs=1e-12)


def test_private_states_of_a_board_are_contiguous():
    game = merged(public_tree_game(DECK))
    payoff_matrices = [k.coordinates() for k in game.payoff_matrices if k.round == 2]
    count = game.num_private_states(0)[2]
    rows = np.concatenate([entries.rows for entries in payoff_matrices])
    columns = np.concatenate([entries.columns for entries in payoff_matrices])
    meet = sparse.coo_array(
        (np.ones(len(rows)), (rows, count + columns)), shape=(2 * count, 2 * count)
    )
    number, board = csgraph.connected_components(meet, directed=False)
    assert number > 10
    for mine in (board[:count], board[count:]):
        assert (np.diff(mine) != 0).sum() + 1 == number


def test_merging_leduc_removes_suits():
    whole = detect(games.compiled("leduc"))
    game = merged(whole)
    assert (whole.num_private_states(0), game.num_private_states(0)) == (
        [6, 30],
        [3, 9],
    )
    assert uniform_nash_conv(game) == pytest.approx(uniform_nash_conv(whole), abs=1e-12)
