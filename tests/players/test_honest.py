"""The honest player: its shares of won showdowns, and the actions that follow."""

import itertools
import math

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.games.opening.opened import load_game
from spiel_cr.players.fixed_policies import NotPokerError
from spiel_cr.players.honest_policy import HonestPolicy
from tests.support.states import after

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=2 1,firstPlayer=2 1 "
    "1 1,raiseSize=2 2 4 4,maxRaises=3 4 4 4,numSuits=4,numRanks=13,numHoleCards=2,"
    "numBoardCards=0 3 1 1)"
)


def leduc_share(own, public):
    """Return the share of showdowns that a card wins against all other cards.

    If `public` is None, all public cards are averaged. Cards are numbered in pairs of
    one rank: 0 and 1 are jacks.
    """
    rank = [card // 2 for card in range(6)]
    points = []
    for other, board in itertools.permutations(set(range(6)) - {own}, 2):
        if public is None or board == public:
            strength = [
                (rank[card] == rank[board], rank[card]) for card in (own, other)
            ]
            points.append((strength[0] > strength[1]) + (strength[0] >= strength[1]))
    return np.mean(points) / 2


@pytest.mark.parametrize(
    ("actions", "player", "own", "public"),
    [
        ((5, 0), 0, 5, None),
        ((0, 3, 1), 1, 3, None),
        ((2, 5, 1, 1, 4), 0, 2, 4),
        # Player 0's card is dealt first, and the public card is another one.
        ((4, 2, 1, 1, 3, 1), 1, 2, 3),
    ],
)
def test_win_shares_equal_enumeration(actions, player, own, public):
    """With 1000 rollouts, 4.5 standard errors of at most 0.0159: 3e-5 false alarms."""
    state = after("leduc_poker", *actions)
    assert state.current_player() == player
    found = HonestPolicy(load_game("leduc_poker"), rollouts=1000).win_share(
        state, player
    )
    assert abs(found - leduc_share(own, public)) < 4.5 * 0.5 / math.sqrt(1000)


@pytest.mark.parametrize("player", [0, 1])
def test_win_share_of_aces_in_holdem(player):
    """A pair of aces wins 0.852 of showdowns against any hand (published tables).

    300 rollouts: 4.5 standard errors of 0.0205.
    """
    cards = [50, 51, 5, 0] if player == 0 else [0, 5, 51, 50]
    moves = [1] * (1 - player)
    state = after(HOLDEM, *cards, *moves)
    assert state.current_player() == player
    found = HonestPolicy(load_game(HOLDEM), rollouts=300).win_share(state, player)
    assert abs(found - 0.852) < 4.5 * math.sqrt(0.852 * 0.148 / 300)


def test_win_share_does_not_depend_on_the_opponents_cards():
    """On the river, two hands of the opponent give the same share."""
    shares = set()
    for other in ([4, 9], [10, 14]):
        # Cards are rank * 4 + suit; the opponent, in seat 0, has one pair of cards or
        # the other.
        cards = [*other, 48, 49]
        state = after(HOLDEM, *cards, 1, 1, 50, 20, 5, 1, 1, 31, 1, 1, 45, 1)
        assert state.current_player() == 1
        shares.add(HonestPolicy(load_game(HOLDEM), rollouts=50).win_share(state, 1))
    # Three aces, and no straight, flush or pair on the table.
    assert shares == {1.0}


def test_calls_checks_or_folds_by_win_share():
    policy = HonestPolicy(load_game("leduc_poker"), rollouts=50)
    fold, call, bet = range(3)
    good, bad = after("leduc_poker", 5, 0, bet), after("leduc_poker", 5, 0)
    # A jack faces a king's bet, or no bet.
    assert policy.action_probabilities(good)[fold] == 1
    bad = after("leduc_poker", 0, 5)
    assert policy.action_probabilities(bad) == {call: 1, bet: 0}
    king = after("leduc_poker", 0, 5, bet)
    assert policy.action_probabilities(king) == {fold: 0, call: 1, bet: 0}
    # In Kuhn poker actions mean different things after a bet: 0 passes, 1 bets.
    kuhn = HonestPolicy(load_game("kuhn_poker"), rollouts=50)
    for cards, best in (((2, 0), 1), ((0, 2), 0)):
        called = after("kuhn_poker", *cards, 0, 1)
        assert kuhn.action_probabilities(called)[best] == 1
        assert kuhn.action_probabilities(after("kuhn_poker", *cards))[0] == 1


def test_win_shares_depend_on_the_seed():
    # A queen wins half of the showdowns, so rollouts differ.
    state, game = after("leduc_poker", 2, 5), load_game("leduc_poker")
    shares = [
        HonestPolicy(game, rollouts=20, seed=seed).win_share(state, 0)
        for seed in (1, 1, 2, 3, 4)
    ]
    assert shares[0] == shares[1]
    assert len(set(shares)) > 1


def test_honest_bots_play_python_games():
    game = "python_leduc_poker"
    bots = [
        spiel_cr.load_bot(game, f"honest(rollouts={n})", p) for p, n in ((0, 5), (1, 7))
    ]
    state = pyspiel.load_game(game).new_initial_state()
    asked = 0
    while not state.is_terminal():
        player = state.current_player()
        if player < 0:
            state.apply_action(state.legal_actions()[0])
            continue
        # It never folds if there is nothing to call, although the rules allow it.
        (chosen,) = [a for a, p in bots[player].get_policy(state) if p]
        assert state.action_to_string(player, chosen) == "Call"
        state.apply_action(chosen)
        asked += 1
    assert asked == 4


@pytest.mark.parametrize(
    ("text", "game", "words"),
    [
        ("honest", "liars_dice", "bot='honest': .* is not a game of poker"),
        ("honest(rollouts=0)", "kuhn_poker", "rollouts=0 must be a whole number"),
        ("honest(games=1)", "kuhn_poker", "unknown parameter 'games'"),
    ],
)
def test_rejects_invalid_strings(text, game, words):
    with pytest.raises(ValueError, match=words):
        spiel_cr.load_bot(game, text, 0)


def test_other_games_raise_not_poker_error():
    with pytest.raises(NotPokerError):
        HonestPolicy(load_game("tic_tac_toe"))
