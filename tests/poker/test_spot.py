"""Spots, compared with equal games of OpenSpiel and with their declarations."""

import dataclasses

import numpy as np
import pyspiel
import pytest

import spiel_cr
from game_defs.bundled.holdem.cards import HoldemDeck
from game_defs.bundled.holdem.declaration import declare
from game_defs.bundled.holdem.public_tree import HoldemDeals
from spiel_cr import poker
from spiel_cr.games.public_tree import (
    PublicTreeGame,
    check_tree,
    public_tree_game,
    public_tree_loading,
)
from tests.support import public_tree_walks as walks
from tests.support.strategies import solver_of

slow = pytest.mark.slow


def of_openspiel(board: str, pot: int, more: str) -> pyspiel.Game:
    return pyspiel.load_game(
        "universal_poker(numPlayers=2,numRounds=4,firstPlayer=1 1 1 1,numSuits=4,"
        "numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
        f"blind={pot // 2} {pot // 2},potSize={pot},boardCards={board},{more})"
    )


def check_same(ours: PublicTreeGame, theirs: PublicTreeGame) -> None:
    """Check that two games are equal, except for the numbers of actions."""
    action = theirs.betting.action
    betting = dataclasses.replace(ours.betting, action=action)
    renamed = dataclasses.replace(ours, betting=betting)
    assert renamed.game_id == theirs.game_id


def check_iterates(
    ours: PublicTreeGame, theirs: PublicTreeGame, iterations: int
) -> None:
    averages = []
    for game in (ours, theirs):  # In sequence, because turns use gigabytes.
        solver = solver_of(game.sequence_form, "dcfr")
        solver.run(iterations)
        averages.append([solver.average(player) for player in range(2)])
        del solver
    for one, other in zip(*averages, strict=True):
        assert np.abs(one - other).max() <= 1e-12
        assert one.std() > 0


def random_spots(cards: int, count: int, seed: int) -> list[tuple[str, int, int]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        board = HoldemDeck(13, 4).text(rng.choice(52, cards, replace=False))
        pot = 2 * int(rng.integers(1, 500))
        found.append((board, pot, 1 + int(pot * rng.exponential(1.5))))
    return found


def both(board: str, pot: int, stack: int) -> tuple[PublicTreeGame, PublicTreeGame]:
    """Return a spot with pot and all-in bets, and the equal game of OpenSpiel."""
    chips = stack + pot // 2
    more = f"betting=nolimit,bettingAbstraction=fcpa,stack={chips} {chips}"
    ours = poker.spot(board, pot, stack, bets="pot,allin")
    return public_tree_game(ours), public_tree_game(of_openspiel(board, pot, more))


@pytest.mark.parametrize(
    ("board", "pot", "stack"), random_spots(5, 3, seed=0) + random_spots(4, 1, seed=1)
)
def test_spot_equals_openspiels_game_with_pot_bets(board, pot, stack):
    check_same(*both(board, pot, stack))


@slow
@pytest.mark.parametrize(
    ("board", "pot", "stack"), random_spots(5, 20, seed=2) + random_spots(4, 3, seed=3)
)
def test_iterates_equal_those_of_openspiels_game(board, pot, stack):
    ours, theirs = both(board, pot, stack)
    check_same(ours, theirs)
    check_iterates(ours, theirs, iterations=10 if len(board) == 10 else 3)


def test_spot_equals_openspiels_game_with_limit_bets():
    more = (
        "betting=limit,bettingAbstraction=fcpa,raiseSize=10 10 20 20,maxRaises=3 4 4 4"
    )
    theirs = public_tree_game(of_openspiel("5c9dJs2h", 80, more))
    ours = public_tree_game(poker.spot("5c9dJs2h", 80, 1000, bets="20c; cap 4"))
    check_same(ours, theirs)


@pytest.mark.parametrize(
    ("board", "first"),
    [("5c9dJs2h3c", "oop"), ("5c9dJs2h3c", "ip"), ("5c9dJs2h", "oop")],
)
def test_declared_public_tree_matches_the_game_tree(board, first):
    """The tree of the simulated states equals the declared public tree."""
    ranges = "AhAd,AsKs:0.5", "QQ,AcKc:0.75"
    bets = "50%,allin; raises 3x; cap 2; turn none"
    game = poker.spot(board, 20, 30, ranges=ranges, bets=bets, first=first)
    check_tree(public_tree_game(game), spiel_cr.build_tree(game))


_BETS = "50%; cap 1; flop ip none; river bets pot"
_FEW = "50%; cap 1; flop none; turn ip none; river bets pot; river ip none"


@pytest.mark.parametrize(
    ("board", "ranges", "bets"),
    [
        ("5c9cJc", "AhAd;KhKd", _FEW),  # Hearts and diamonds are equivalent.
        pytest.param("5c9cJc", "AhAd;KhKd", _BETS, marks=slow),
        pytest.param("5c9cJc", "AA:0.5,AhKh;QQ,9h9d", _BETS, marks=slow),
        pytest.param("5h9hJs", "KK,4c3d;AdTd,AcTc", _BETS, marks=slow),
    ],
)
def test_declared_flop_matches_simulated_states(board, ranges, bets):
    """Private states keep the order of turn and river, even for equivalent suits."""
    game = poker.spot(board, 20, 30, ranges=ranges, bets=bets)
    signals = public_tree_game(game)
    policy = walks.random_policy(signals, np.random.default_rng(0))
    value = walks.value_of_states(signals, policy, game.new_initial_state())
    assert abs(walks.value_of_form(signals, policy) - value) < 1e-12


@slow
def test_merging_equivalent_suits_does_not_change_nash_conv():
    """Private states are merged in one game and enumerated in the other."""
    game = poker.spot("5c9cJc", 20, 60, ranges="AA,KcQc;TT", bets="50%")
    bets, rules = game.spot.bets.tree, game.spot.deals.rules
    found = []
    for suits in (True, False):
        declared = declare(HoldemDeals(rules, suits=suits), lambda boards: bets)
        made = public_tree_loading.from_declaration(game, declared)
        made.check()
        solver = solver_of(made.sequence_form, "cfr+")
        solver.run(5)
        found.append((solver.nash_conv(), made.num_private_states(0)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12) != 0
    assert all(a < b for a, b in zip(found[0][1], found[1][1], strict=True))


@pytest.mark.parametrize(("first", "value"), [("AA,65s;KK", 40), ("KK;AA,65s", -40)])
def test_nuts_or_air_has_the_known_value(first, value):
    """Six hands that win against four that lose, and a bet of the pot.

    With one bluff for two value bets, calls win nothing, so a bet wins the half of the
    pot that the opponent has put in. Of 10 hands, 9 bet; the last one checks and loses
    as much.
    """
    game = poker.spot("2s2c7d7h3s", 100, 100, ranges=first, bets="pot")
    result = spiel_cr.solve(game, "lp", options=spiel_cr.GameOptions("tree"))
    assert result.value_bounds() == pytest.approx((value, value), abs=1e-9)


def test_spot_arguments_become_one_game_string():
    game = poker.spot("5c9dJs2h", 200, 1900, ranges="QQ+,AK;22+", bets="50%,pot; cap 3")
    assert str(game) == (
        "python_poker_spot(bets=50% pot; cap 3,board=5c9dJs2h,first=oop,pot=200,"
        "rake=,ranges=QQ+ AK;22+,stack=1900)"
    )
    assert str(spiel_cr.load_game(str(game))) == str(game)


def test_spot_uses_the_smaller_of_two_stacks():
    board = "5c9dJs2h"
    assert str(poker.spot(board, 20, (90, 50))) == str(poker.spot(board, 20, 50))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stack": (90, 0)}, "stack=0"),
        ({"stack": (90, 50, 20)}, "stack=(90, 50, 20): give one number, or one for"),
        ({"pot": 5.5}, "pot=5.5 must be a whole number"),
        ({"stack": 0}, "stack=0"),
        ({"first": "button"}, "first='button'"),
        ({"ranges": ("AA", "KK", "QQ")}, "3 ranges; use two"),
        ({"board": "AsKs"}, "board='AsKs' has 2 cards; use 3 different"),
    ],
)
def test_rejects_invalid_spots(given, said):
    usual = {"board": "5c9dJs2h", "pot": 100, "stack": 100}
    with pytest.raises(ValueError) as refusal:
        poker.spot(**{**usual, **given})
    assert said in str(refusal.value)
