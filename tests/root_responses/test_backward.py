"""Responses computed backwards: nearly the best ones, by what the player sees alone."""

import functools

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from benchmarks.holdem import HOLDEM
from benchmarks.uncompiled.holdem_bets import BetsJudge
from spiel_cr.compilation import vectorised
from spiel_cr.policies.best_responses import (
    best_response_value,
    expected_value,
    reach_of,
)
from spiel_cr.policies.conversions import behaviour_from_policy
from spiel_cr.responses import opponents
from spiel_cr.responses.local_best_response import lbr
from spiel_cr.root_responses import setting as settings
from spiel_cr.root_responses.backward import BackwardResponder
from tests.support import games

# One private and one public card.
SMALL = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    "numSuits=2,numRanks={},numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,"
    "maxRaises=2 2,stack=100 100,bettingAbstraction=fcpa)"
)


class BothPolicy(openspiel_policy.Policy):
    """A response in one seat, its opponent in the other."""

    def __init__(self, game, policies):
        super().__init__(game, [0, 1])
        self._policies = policies

    def action_probabilities(self, state, player_id=None):
        player = state.current_player()
        return self._policies[player].action_probabilities(state)


@functools.cache
def small(ranks):
    return spiel_cr.compile_game(SMALL.format(ranks))


def values(name, player, ranks, deals):
    """What the response, the best one and local best response get, exactly."""
    tree = small(ranks)
    policy = opponents.chump(tree.game, name)
    other = behaviour_from_policy(tree, policy)
    responder = BackwardResponder(settings.on_states(tree.game, policy), player)
    in_sample = responder.learn(deals)
    assert responder.simulations == deals
    both = [policy, policy]
    both[player] = responder.policy()
    sign = 1 if player == 0 else -1

    def value(own):
        pair = [own, own]
        pair[1 - player] = other[1 - player]
        return sign * expected_value(tree.form, reach_of(tree.form, pair))

    own = behaviour_from_policy(tree, BothPolicy(tree.game, both))[player]
    best = best_response_value(
        tree.form, player, reach_of(tree.form, other)[1 - player]
    )
    local = value(lbr(tree, player, other[1 - player]))
    return value(own), best, local, in_sample


@pytest.mark.parametrize(
    ("name", "player", "ranks", "deals"),
    [
        ("call_raise", 1, 3, 1000),
        pytest.param("call_raise", 1, 5, 4000, marks=pytest.mark.slow),
        pytest.param("always_raise", 1, 5, 4000, marks=pytest.mark.slow),
    ],
)
def test_it_is_nearly_a_best_response(name, player, ranks, deals):
    """Judged exactly on the compiled game; the deals it learned from are not all."""
    own, best, local, in_sample = values(name, player, ranks, deals)
    assert best - 0.02 < own <= best + 1e-9
    # It sees what is bet later, which local best response does not.
    assert own > local + 0.01
    # Deals differ by less than 6 chips.
    assert abs(in_sample - best) < 4 * 6 / np.sqrt(deals)


def test_matches_on_arrays_agree_with_the_policy():
    tree = small(3)
    policy = opponents.chump(tree.game, "always_call")
    responder = BackwardResponder(settings.on_states(tree.game, policy), 0)
    responder.learn(200)
    returns = responder.play(300, np.random.default_rng(0))
    best = best_response_value(
        tree.form, 0, reach_of(tree.form, behaviour_from_policy(tree, policy))[1]
    )
    # Five standard errors: a false alarm in two million.
    assert abs(returns.mean() - best) < 5 * returns.std() / np.sqrt(len(returns))


def test_the_other_hand_is_not_looked_at():
    """Aces raise and the worst hand does not, whatever the opponent has."""
    tree = small(3)
    policy = opponents.chump(tree.game, "always_call")
    responder = BackwardResponder(settings.on_states(tree.game, policy), 0)
    responder.learn(200)
    played = responder.policy()
    for own, wanted in ((5, 2), (0, 1)):
        found = []
        for hidden in (1, 2, 3, 4):
            state = tree.game.new_initial_state()
            for card in (own, hidden):
                state.apply_action(card)
            found.append(played.action_probabilities(state))
        assert all(one == found[0] for one in found) and found[0][wanted] == 1
    state.apply_action(1)
    with pytest.raises(ValueError, match="player 1 acts"):
        played.action_probabilities(state)


def test_strength_of_hands():
    """Published equities of aces and of 7-2; on the river all hands by OpenSpiel.

    A standard error is at most 0.02, with 150 boards or 600 hands.
    """
    rules = vectorised.of_game(spiel_cr.load_game(HOLDEM))
    random = np.random.default_rng(1)
    root = 0
    deals = np.array([[48, 49, 10, 20], [0, 22, 10, 20]])
    deals = np.pad(deals, ((0, 0), (0, 5)))
    found = rules.hand_strength(rules.states_at(root, deals), 0, random)
    assert found[:, 0] == pytest.approx([0.852, 0.346], abs=0.08)
    assert (found[:, 1] > 0).all()
    river = int(np.flatnonzero((rules.bets.cards == 9) & (rules.bets.player == 0))[0])
    cards, game = rules.deals(2, random), pyspiel.load_game(HOLDEM)
    found = rules.hand_strength(rules.states_at(river, cards), 0, random)
    for deal, (equity, spread) in zip(cards.tolist(), found.tolist(), strict=True):
        known = {*deal[:2], *deal[4:]}
        left = [card for card in range(52) if card not in known]
        pairs = random.permuted(np.tile(left, (400, 1)), axis=1)[:, :2].tolist()
        won = []
        for pair in pairs:
            state = game.new_initial_state()
            order = [*deal[:2], *pair, *deal[4:]]
            while not state.is_terminal():
                state.apply_action(order.pop(0) if state.is_chance_node() else 1)
            won.append((1 + np.sign(state.player_return(0))) / 2)
        assert equity == pytest.approx(np.mean(won), abs=4 * 0.032)
        assert spread == 0


def test_what_it_refuses():
    tree = games.compiled("kuhn")
    chump = opponents.chump(tree.game, "always_call")
    with pytest.raises(ValueError, match="do not say what all bets are"):
        BackwardResponder(settings.on_states(tree.game, chump), 0)
    game = small(3).game
    looks = openspiel_policy.TabularPolicy(game)
    setting = settings.on_states(game, looks)
    with pytest.raises(ValueError, match="GradientResponder"):
        BackwardResponder(setting, 0)
    blind = settings.on_states(game, opponents.chump(game, "always_call"))
    with pytest.raises(ValueError, match="deals=99"):
        BackwardResponder(blind, 0).learn(99)


def test_judged_by_bets_as_by_the_compiled_game():
    """Local best response and this one, on deals that neither was made from."""
    tree = small(3)
    policy = opponents.chump(tree.game, "call_raise")
    setting, other = (
        settings.on_states(tree.game, policy),
        behaviour_from_policy(tree, policy),
    )
    judge = BetsJudge(setting, 1, 400, seed=1)
    pair = other[0], lbr(tree, 1, other[0])
    exact = -expected_value(tree.form, reach_of(tree.form, pair))
    found = judge.values(judge.local)
    # Five standard errors: a false alarm in two million.
    assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(len(found))
    responder = BackwardResponder(setting, 1)
    responder.learn(400)
    assert (judge.values(responder.choose) - found).mean() > 0
