"""The contract of public-tree games: right ones pass; each kind of mistake is named."""

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
def test_declared_games_pass(string):
    comparison.check_tree(loading.public_tree_game(string), build_tree(string))


def test_a_game_written_by_hand_passes():
    comparison.check_tree(kuhn(), build_tree("kuhn_poker"))


def test_payoffs_are_held_to_the_largest_one():
    """It is a third in Kuhn poker: 2 chips times the odds of a deal."""
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


def test_a_wrong_stake_is_named():
    game = loading.public_tree_game(LEDUC)
    stake = game.terms.stake.copy()
    stake[3] *= 2
    terms = game.terms._replace(stake=stake)
    with pytest.raises(InvalidGameError, match=r"action . of player . with '.*' after"):
        check(dataclasses.replace(game, terms=terms))


def test_other_actions_are_named():
    game = loading.public_tree_game(LEDUC)
    action = np.where(game.betting.action == 2, 3, game.betting.action)
    betting = game.betting
    betting = dataclasses.replace(betting, action=action)
    with pytest.raises(InvalidGameError, match=r"\[0, 1, 2\], but \[0, 1, 3\] in"):
        check(dataclasses.replace(game, betting=betting))


class Constant:
    """A reader that sees one private state only."""

    def private_state(self, state, player):
        return 0

    def name(self, player, round, private_state):
        return str(private_state)


def test_signals_that_nobody_has_are_named():
    game = loading.public_tree_game(LEDUC)
    with pytest.raises(
        InvalidGameError, match="never has private state 1 after actions"
    ):
        check(dataclasses.replace(game, reader=Constant()))
