"""The contract of every game in `game_defs`, on full trees and random playouts."""

import pytest

from tests.game_defs import (
    test_ii_goofspiel,
    test_latent_tic_tac_toe,
    test_leduc_poker,
    test_princess_and_monster,
    test_rhode_island_holdem,
    test_rock_paper_scissors,
    test_scotland_yard,
    test_spots,
)
from tests.support import game_contract

slow = pytest.mark.slow
FULL = (
    *test_ii_goofspiel.SETTINGS,
    *(test_leduc_poker.game_string(*given) for given in test_leduc_poker.SETTINGS),
    *test_princess_and_monster.SETTINGS,
    # It shares its state class with Leduc poker, which is smaller.
    *(pytest.param(s, marks=slow) for s in test_rhode_island_holdem.SETTINGS),
    *test_rock_paper_scissors.SETTINGS,
    *test_scotland_yard.SETTINGS,
)
SAMPLED = (
    *test_ii_goofspiel.LARGE_SETTINGS,
    *test_latent_tic_tac_toe.GAMES,
    *(test_leduc_poker.game_string(*given) for given in test_leduc_poker.LARGE),
    *test_princess_and_monster.LARGE_SETTINGS,
    *test_rhode_island_holdem.LARGE_SETTINGS,
    *test_scotland_yard.LARGE_SETTINGS,
    *test_spots.SETTINGS,
)
SIMULATED = ("python_rock_paper_scissors(num_actions=99)", *FULL, *SAMPLED)
CHECKS = pytest.mark.parametrize(
    "check", game_contract.TREE_CHECKS, ids=lambda check: check.__name__
)


@CHECKS
@pytest.mark.parametrize("game_string", FULL)
def test_full_tree_satisfies_the_contract(game_string, check):
    check(game_contract.full_tree(game_string))


@CHECKS
@pytest.mark.parametrize("game_string", SAMPLED)
def test_random_playouts_satisfy_the_contract(game_string, check):
    check(game_contract.sampled_tree(game_string, num_games=8))


@pytest.mark.parametrize("game_string", SIMULATED)
def test_openspiel_simulations_succeed(game_string):
    game_contract.check_simulations(game_string, num_sims=3)


@pytest.mark.parametrize(
    "game_string",
    [
        "python_ii_goofspiel",
        *test_latent_tic_tac_toe.GAMES,
        "python_leduc_poker",
        test_leduc_poker.ODD,
        "python_princess_and_monster",
        "python_rhode_island_holdem",
        "python_rhode_island_holdem(max_bets=1,num_ranks=2,num_suits=2)",
        "python_rock_paper_scissors",
        "python_scotland_yard",
    ],
)
def test_playthrough_is_consistent(game_string):
    game_contract.check_playthrough(game_string)
