"""The check of public-tree games: valid games pass, and errors name the mistake."""

import dataclasses

import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree import comparison
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.tree.tree_builder import build_tree
from tests.support.kuhn_public_tree import kuhn

LEDUC = "python_leduc_poker"
RHODE = (
    "python_rhode_island_holdem(ante=1,bets=1 2 4,max_bets=1,num_ranks=2,num_suits=2)"
)


@pytest.mark.parametrize("string", [LEDUC, RHODE, "liars_dice(numdice=1,dice_sides=3)"])
def test_check_accepts_declared_games(string):
    comparison.check_tree(loading.public_tree_game(string), build_tree(string))


def test_check_accepts_a_hand_written_game():
    comparison.check_tree(kuhn(), build_tree("kuhn_poker"))


def test_tolerance_is_relative_to_the_largest_payoff():
    """In Kuhn poker it is 1/3: 2 chips times the probability of a deal."""
    tree = build_tree("kuhn_poker")
    game = kuhn()

    def compare(factor):
        terms = game.terms._replace(stake=game.terms.stake * factor)
        comparison.check_tree(dataclasses.replace(game, terms=terms), tree)

    compare(1 + 5e-13)
    with pytest.raises(InvalidGameError, match="in the public-tree game and"):
        compare(1 + 2e-12)


def check(game):
    comparison.check_tree(game, build_tree(LEDUC))


def test_check_reports_a_wrong_stake():
    game = loading.public_tree_game(LEDUC)
    stake = game.terms.stake.copy()
    stake[3] *= 2
    terms = game.terms._replace(stake=stake)
    with pytest.raises(InvalidGameError, match=r"action . of player . with '.*' after"):
        check(dataclasses.replace(game, terms=terms))


def test_check_reports_different_actions():
    game = loading.public_tree_game(LEDUC)
    action = np.where(game.betting.action == 2, 3, game.betting.action)
    betting = game.betting
    betting = dataclasses.replace(betting, action=action)
    with pytest.raises(InvalidGameError, match=r"\[0, 1, 2\], but \[0, 1, 3\] in"):
        check(dataclasses.replace(game, betting=betting))


class ConstantReader:
    """A reader that maps all states to one private state."""

    def private_state(self, state, player):
        return 0

    def name(self, player, round, private_state):
        return str(private_state)


def test_check_reports_private_states_that_never_occur():
    game = loading.public_tree_game(LEDUC)
    with pytest.raises(
        InvalidGameError, match="never has private state 1 after actions"
    ):
        check(dataclasses.replace(game, reader=ConstantReader()))
