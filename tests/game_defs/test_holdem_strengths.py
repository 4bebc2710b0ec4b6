"""Strengths of hands of up to seven cards, compared with OpenSpiel."""

import itertools
from collections import Counter

import numpy as np
import pyspiel
import pytest

from game_defs.bundled.holdem.cards import HoldemDeck
from game_defs.bundled.holdem.strengths import strengths, suit_masks

HOLDEM = "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 5"


def check_strengths(deck: str, deals: int, rng: np.random.Generator) -> None:
    """Compare the order of strengths with OpenSpiel's returns of random deals."""
    game = pyspiel.load_game(
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,"
        f"firstPlayer=1 1,raiseSize=1 1,maxRaises=1 1,{deck})"
    )
    given = game.get_parameters()
    hole, suits = given["numHoleCards"], given["numSuits"]
    board = sum(map(int, given["numBoardCards"].split()))
    size, size_of_deck = 2 * hole + board, suits * given["numRanks"]
    cards = np.argsort(rng.random((deals, size_of_deck)), axis=1)[:, :size]
    won = np.empty(deals)
    for deal, row in enumerate(cards.tolist()):
        state = game.new_initial_state()
        while not state.is_terminal():
            # Both players check.
            state.apply_action(row.pop(0) if state.is_chance_node() else 1)
        won[deal] = state.returns()[0]
    first, second = (
        strengths(suit_masks(np.delete(cards, other, axis=1), suits)).astype(int)
        for other in (range(hole, 2 * hole), range(hole))
    )
    assert (np.sign(first - second) == np.sign(won)).all()
    assert {-1, 1} <= set(np.sign(won))


def test_strengths_agree_with_openspiel():
    check_strengths(HOLDEM, 1_000, np.random.default_rng(0))


@pytest.mark.slow
def test_strengths_agree_with_openspiel_on_many_deals():
    check_strengths(HOLDEM, 100_000, np.random.default_rng(1))


@pytest.mark.parametrize(
    "deck",
    [
        # Fewer than five cards, fewer ranks, and few suits: many flushes.
        "numSuits=4,numRanks=6,numHoleCards=1,numBoardCards=0 1",
        "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 2",
        "numSuits=2,numRanks=6,numHoleCards=2,numBoardCards=0 3",
        "numSuits=3,numRanks=8,numHoleCards=2,numBoardCards=0 4",
        "numSuits=2,numRanks=13,numHoleCards=2,numBoardCards=0 5",
        "numSuits=4,numRanks=4,numHoleCards=2,numBoardCards=0 5",
    ],
)
def test_strengths_agree_with_openspiel_on_other_decks(deck):
    check_strengths(deck, 300, np.random.default_rng(2))


def strength(text: str) -> int:
    return int(strengths(suit_masks(np.array(HoldemDeck(13, 4).cards(text)), 4)))


def test_hands_of_all_categories_are_ordered():
    """Each category occurs, weakest first, with kickers and low and high aces."""
    hands = (
        "2c3d4h5s7c8d9h",
        "2c3d4h5s7c8dTh",
        "2c2d4h5s7c8d9h",
        "2c2d4h5s7c8dAh",
        "3c3d2h5s7c8d9h",
        "3c3d2h2s7c8d9h",
        # Three pairs: the third one is a kicker at best.
        "3c3d4h4s2c2d9h",
        "3c3d4h4s5c5dAh",
        "2c2d2h5s7c8d9h",
        "2c2d2h5s7c8dAh",
        "Ac2d3h4s5c8d9h",
        "Ac2d3h4s5c6d9h",
        "2c3d4h5s6c7d9h",
        "TcJdQhKsAc2d3h",
        "2c3c4c5c7cAdKh",
        "2c3c4c5c8cAdKh",
        # The best five cards of a flush of seven count.
        "2c3c4c6c8c9cJc",
        "2c2d2h3s3c8d9h",
        # Two triples.
        "2c2d2h3s3c3dAh",
        "2c2d2h2s3c8d9h",
        "2c2d2h2s3c8dTh",
        "Ac2c3c4c5c8d9h",
        "TcJcQcKcAc2d3h",
    )
    ranks = [strength(hand) for hand in hands]
    assert ranks == sorted(set(ranks))


@pytest.mark.slow
def test_counts_of_five_card_hands_equal_published_ones():
    """There are 7,462 different hands in nine categories."""
    cards = np.array(list(itertools.combinations(range(52), 5)))
    found = strengths(suit_masks(cards, 4))
    assert len(np.unique(found)) == 7_462
    lowest = [
        strength(hand)
        for hand in (
            "2c2d3h4s5c",
            "2c2d3h3s4c",
            "2c2d2h3s4c",
            "Ac2d3h4s5c",
            "2c3c4c5c7c",
            "2c2d2h3s3c",
            "2c2d2h2s3c",
            "Ac2c3c4c5c",
        )
    ]
    counts = Counter(np.searchsorted(lowest, found, side="right").tolist())
    # High card first. Flushes and straights exclude straight flushes.
    published = 1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 40
    assert [counts[category] for category in range(9)] == list(published)
