"""Batched rules of OpenSpiel's games, compared with OpenSpiel node by node."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import spiel_cr
from game_defs.bundled.packing import Packing
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.tree import batched_check

HIDDEN = (
    "phantom_ttt",
    "phantom_ttt(gameversion=abrupt)",
    "phantom_ttt(gameversion=abrupt,obstype=reveal-numturns)",
    "phantom_ttt(obstype=reveal-numturns)",
    "dark_hex(board_size=2)",
    "dark_hex(num_rows=2,num_cols=3,gameversion=adh)",
    "dark_hex(num_rows=3,num_cols=2,obstype=reveal-numturns)",
    "dark_hex(num_rows=5,num_cols=4)",
)
DICE = (
    "liars_dice(numdice=1,dice_sides=3)",
    "liars_dice(numdice=2,dice_sides=2)",
    "liars_dice(numdice=1,dice_sides=4,bidding_rule=reset-quantity)",
    # More actions than an integer has bits.
    "liars_dice(numdice=6,dice_sides=6)",
)
SHIPS = "battleship(board_height={},board_width={},ship_sizes={},ship_values={},{})"
BATTLESHIPS = (
    SHIPS.format(2, 2, "[1;2]", "[1;2]", "num_shots=2"),
    # Each cell may be shot at only once.
    SHIPS.format(3, 4, "[2;3]", "[1;2.5]", "num_shots=4,allow_repeated_shots=false"),
    # Enough shots to sink all ships and to shoot at sunk ships.
    SHIPS.format(5, 6, "[3;1;2]", "[1;2;1]", "num_shots=20"),
    SHIPS.format(10, 10, "[2;3;3;4;5]", "[1;1;1;1;1]", "num_shots=5"),
)
GOOFSPIEL = "goofspiel(imp_info=true,num_cards={},num_turns={},points_order={},{})"
POKER = (
    "universal_poker(betting=limit,bettingAbstraction=fcpa,numPlayers=2,numRounds={},"
    "blind={},firstPlayer={},numSuits={},numRanks={},numHoleCards={},"
    "numBoardCards={},raiseSize={},maxRaises={}{})"
)
HOLDEM = POKER.format(
    *(4, "10 5", "2 1 1 1", 4, 13, 2, "0 3 1 1", "10 10 20 20", "3 4 4 4", "")
)
POKERS = (
    POKER.format(2, "1 1", "1 1", 2, 3, 1, "0 1", "1 2", "2 2", ""),
    # Unequal blinds, and straights with two private cards each.
    POKER.format(2, "2 1", "2 1", 2, 4, 2, "0 1", "1 1", "1 1", ""),
    # A player is all-in before the last card.
    POKER.format(3, "2 1", "2 1 1", 3, 4, 1, "0 1 1", "2 4 4", "1 1 1", ",stack=6 5"),
)
WIN_LOSS, DIFFERENCE = "returns_type=win_loss", "returns_type=point_difference"
CARDS = (
    GOOFSPIEL.format(1, -1, "random", WIN_LOSS),
    GOOFSPIEL.format(3, -1, "random", WIN_LOSS),
    GOOFSPIEL.format(4, 2, "random", DIFFERENCE),
    GOOFSPIEL.format(4, -1, "ascending", WIN_LOSS),
    GOOFSPIEL.format(4, -1, "descending", DIFFERENCE),
    GOOFSPIEL.format(13, -1, "random", DIFFERENCE),
)
# All combinations of parameters, and sizes that exercise special cases.
MORE = (
    *(
        GOOFSPIEL.format(cards, turns, order, returns)
        for cards, turns in ((1, -1), (2, -1), (3, -1), (3, 1), (4, -1), (5, 3))
        for order in ("random", "ascending", "descending")
        for returns in (WIN_LOSS, DIFFERENCE)
    ),
    *(
        f"dark_hex(num_rows={rows},num_cols={cols},gameversion={version},obstype={see})"
        for rows, cols in ((2, 2), (2, 4), (4, 2), (3, 3), (5, 6))
        for version in ("cdh", "adh")
        for see in ("reveal-nothing", "reveal-numturns")
    ),
    "dark_hex(board_size=7)",
    *(
        f"liars_dice(numdice={dice},dice_sides={sides},bidding_rule={rule})"
        for dice, sides in ((1, 1), (1, 2), (1, 6), (2, 3), (3, 2), (4, 6))
        for rule in ("reset-face", "reset-quantity")
    ),
)


USUAL = (*HIDDEN, *DICE, *BATTLESHIPS, *CARDS, *POKERS)
_OFTEN = (
    pytest.param(game, 1, 1_000, 100_000, marks=pytest.mark.slow)
    for game in (*USUAL, *MORE, HOLDEM)
)


@pytest.mark.parametrize(
    ("game", "seed", "rollouts", "most"),
    [*((game, 0, 40, 5_000) for game in USUAL), *_OFTEN],
)
def test_batched_rules_equal_openspiel(game, seed, rollouts, most):
    random = np.random.default_rng(seed)
    batched_check.check(game, random, rollouts=rollouts, max_histories=most)


LONG_POKER = (
    "universal_poker(numRounds=2,blind=2 1,stack=100 3,numSuits=3,numRanks=4,"
    "firstPlayer=2 1,numBoardCards=1 1,raiseSize=10 1,betting=limit)"
)


@pytest.mark.parametrize(
    "game",
    [
        "goofspiel(num_cards=3)",
        # OpenSpiel's states never end.
        GOOFSPIEL.format(4, 3, "ascending", WIN_LOSS),
        GOOFSPIEL.format(16, -1, "ascending", WIN_LOSS),
        "dark_hex(board_size=8)",
        "dark_hex(num_rows=1,num_cols=3)",
        "dark_hex(board_size=6,obstype=reveal-numturns)",
        "misere(game=liars_dice())",
        # The second ship may not fit.
        SHIPS.format(2, 3, "[2;3]", "[1;1]", "num_shots=3"),
        "kuhn_poker",
        "universal_poker",
        POKERS[0].replace("=limit", "=nolimit"),
        HOLDEM.replace("3 1 1,", "3 1 2,"),
        # OpenSpiel's tensor is too small for 255 raises.
        LONG_POKER,
        HOLDEM.replace("fcpa", "fcpa,potSize=20,boardCards=2c3c4c"),
    ],
)
def test_unsupported_games_have_no_batched_rules(game):
    assert batched_rules.of_game(spiel_cr.load_game(game)) is None


@hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=50)
@hypothesis.given(strategies.data())
def test_packed_sequences_are_unpacked_unchanged(data):
    most = data.draw(strategies.integers(1, 200))
    sequence = data.draw(
        strategies.lists(strategies.integers(0, most), min_size=1, max_size=80)
    )
    packing = Packing(len(sequence), most)
    columns = np.zeros((2, packing.width), np.int64)
    for place, entry in enumerate(sequence):
        packing.put(columns, place, np.array([entry, 0]))
    found = packing.unpack(columns, len(sequence))
    assert found.tolist() == [sequence, [0] * len(sequence)]
