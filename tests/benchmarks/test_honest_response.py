"""Responses to the honest player: its rule, the choices, and sessions."""

import numpy as np
import pytest

from benchmarks import honest_response
from benchmarks.honest_response import Deals, Responder


def _deals(calls, sign):
    """All hands look alike to the responder."""
    number = len(sign)
    return Deals(np.array(calls), np.full((number, 4), 0.5), np.array(sign))


def test_who_never_calls_loses_its_blind_to_every_bet():
    deals = _deals([[False] * 4] * 4, [-1] * 4)
    responder = Responder(deals, deals, 2)
    # In the small blind a raise wins the big one; in the big one nothing is to be done.
    for seat, chips in ((0, 2), (1, 1)):
        for results in responder.play(seat, lambda x: x):
            assert (results == chips).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_who_calls_everything_is_paid_off_by_the_showdown(sign):
    deals = _deals([[True] * 4] * 4, [sign] * 4)
    responder = Responder(deals, deals, 2)
    # Bets 2, 2, 4 and 4 above the blind where it wins; else it folds, or checks down.
    expected = {1: (14, 14), -1: (-1, -2)}[sign]
    for seat in (0, 1):
        results, _ = responder.play(seat, lambda x: x)
        assert (results == expected[seat]).all()


def test_a_session_is_won_by_chance_as_a_random_walk_is():
    def hand(seat, worth):
        return np.array([1, -1])

    won, drawn = honest_response.session(hand, 0, 80, 2)
    assert (won, drawn) == (0.25, 0.5)
    # Who is broke stays so: with one chip the first hand decides.
    assert honest_response.session(hand, 1, 1, 9) == (0.5, 0.0)


def test_who_plays_for_the_session_wins_more_of_them():
    random = np.random.default_rng(1)
    deals = honest_response.deal(200, 20, random)
    responder = Responder(deals, deals, 4)
    chips = [responder.play(seat, lambda x: x)[0] for seat in (0, 1)]
    assert all(x.mean() > 0.3 for x in chips)
    hands = [
        lambda seat, _: chips[seat],
        lambda seat, worth: responder.play(seat, worth)[0],
    ]
    values = []
    for hand in hands:
        won, drawn = honest_response.session(hand, 0, 80, 2)
        values.append(won + drawn / 2)
    assert values[1] > values[0] > 0.55
