"""Exact evaluation of Flop Hold'em in public-tree form, on decks of several sizes."""

import pytest

import spiel_cr
from tests.support import flop_holdem


def game_string(ranks: int, suits: int) -> str:
    return (
        f"universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=100 50,"
        f"firstPlayer=2 1,numSuits={suits},numRanks={ranks},numHoleCards=2,"
        f"numBoardCards=0 3,raiseSize=100 100,maxRaises=3 3)"
    )


@pytest.mark.parametrize(
    "deck",
    [
        *((5, 2), (4, 3)),
        *(pytest.param(x, marks=pytest.mark.slow) for x in ((3, 4), (6, 3), (13, 4))),
    ],
)
@pytest.mark.parametrize("name", ["uniform", "always_call"])
def test_policies_that_ignore_their_cards(deck, name):
    game = flop_holdem.FlopHoldem(*deck)
    opponent = getattr(flop_holdem, name)
    values = [game.best_response_value(player, opponent) for player in range(2)]
    assert game.leaves == 98
    nash_conv = spiel_cr.nash_conv(game_string(*deck), name, memory_limit="4GB")
    assert nash_conv == pytest.approx(sum(values), rel=1e-9)
