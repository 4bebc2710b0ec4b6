"""The early rounds alone: worth what checking down is worth, deal by deal."""

import numpy as np
import pytest

import game_defs  # noqa: F401
from spiel_cr.abstraction import first_phase
from spiel_cr.games.signals import public_nodes
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.signal_loading import signal_game
from spiel_cr.policies import best_responses, conversions

RHODE_ISLAND = "python_rhode_island_holdem(num_ranks=3,num_suits=2,max_bets=1)"
# Two private cards, two public rounds; hands of a shared deck as kernels.
PAIRS = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=5 10,"
    "firstPlayer=2 1,numSuits=2,numRanks=4,numHoleCards=2,numBoardCards=0 2,"
    "raiseSize=10 20,maxRaises=1 1)"
)
# No limit: all-in before the cards are out is a showdown at once.
ALL_IN = (
    "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=2,"
    "blind=5 10,firstPlayer=2 1,numSuits=2,numRanks=4,numHoleCards=1,numBoardCards=0 1,"
    "stack=60 60)"
)


def mixed_behaviour(form, seed):
    """Random action probabilities for both players."""
    rng = np.random.default_rng(seed)
    return [
        conversions.behaviour_from_reach(own, rng.uniform(0.05, 1, own.num_sequences))
        for own in form.decisions
    ]


def value(form, behaviour):
    reach = best_responses.reach_of(form, behaviour)
    return best_responses.expected_value(form, reach)


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        (RHODE_ISLAND, 1),
        (RHODE_ISLAND, 2),
        (PAIRS, 1),
        (ALL_IN, 1),
        ("python_leduc_poker(stack0=5,stack1=5,num_ranks=3)", 1),
    ],
)
def test_worth_what_checking_down_is_worth(name, rounds):
    """Of any strategies; by the whole game, which knows nothing of cuts."""
    game = signal_game(name)
    shorter = first_phase.early_rounds(game, rounds)
    shorter.check()
    assert shorter.num_rounds == rounds
    assert shorter.num_signals(0) == game.num_signals(0)[:rounds]
    short, whole = form_of(shorter), form_of(game)
    for seed in range(3):
        behaviour = mixed_behaviour(short, seed)
        continued = first_phase.check_down(game, behaviour)
        assert value(short, behaviour) == pytest.approx(
            value(whole, continued), abs=1e-12
        )


def test_checks_or_calls_later_on():
    """Nobody raises or folds, and the early rounds are as they were."""
    game = signal_game(RHODE_ISLAND)
    shorter = first_phase.early_rounds(game, 2)
    behaviour = mixed_behaviour(form_of(shorter), 1)
    continued = first_phase.check_down(game, behaviour)
    finder = public_nodes.Finder(game)
    for player in range(2):
        whole = public_nodes.public_decisions(game, player)
        short = public_nodes.public_decisions(shorter, player)
        early_nodes = whole.node[game.betting.round[whole.node] < 2]
        for a, b in zip(early_nodes, short.node, strict=True):
            np.testing.assert_array_equal(
                whole.block(continued[player], a), short.block(behaviour[player], b)
            )
        for node in whole.node[game.betting.round[whole.node] == 2]:
            block = whole.block(continued[player], node)
            taken = finder.children(node)[block.argmax(axis=1)]
            assert (block.max(axis=1) == 1).all() and len(np.unique(taken)) == 1
            # OpenSpiel's name of it; fold is 0 and a bet is 2.
            assert game.betting.action[taken[0]] == 1


def test_refused():
    game = signal_game(RHODE_ISLAND)
    with pytest.raises(ValueError, match="rounds=3"):
        first_phase.early_rounds(game, 3)
    with pytest.raises(ValueError, match="rounds=0"):
        first_phase.early_rounds(game, 0)
    with pytest.raises(ValueError, match="has 5 sequences"):
        first_phase.check_down(game, [np.ones(5), np.ones(5)])
