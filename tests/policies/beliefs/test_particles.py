"""Particle filters: comparison with enumeration, empty beliefs, limits, and seeds."""

import collections
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot
from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.games.simulation.observations import observations
from spiel_cr.policies.beliefs import particles as particles_lib
from spiel_cr.policies.beliefs.particles import (
    Belief,
    ParticleFilter,
)
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.rollouts import Answers
from tests.support import games
from tests.support.states import after


class Leaning(policy_lib.Policy):
    """A policy that prefers larger actions and avoids the first of three or more."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions()
        weights = [float(place + (len(legal) < 3)) for place in range(len(legal))]
        return {a: w / sum(weights) for a, w in zip(legal, weights, strict=True)}


def make(name, opponent=Leaning, *, count=500, player=0):
    """Return a game and a particle filter for it."""
    game = pyspiel.load_game(name)
    answers = Answers(opponent(game), 1 - player)
    return game, ParticleFilter(game, player, answers, count, between=True)


def by_history(states, weights):
    return {
        tuple(state.history()): weight
        for state, weight in zip(states, weights, strict=True)
    }


def exact(game, player, state):
    """Return the belief by enumeration, which shares no code with the particles."""
    posterior = StatePosterior(game, player, Leaning(game), compare="always")
    posterior.update(state)
    return by_history(posterior.states, posterior.weights)


GOOFSPIEL = games.goofspiel(4, "descending")
# Two bids were lost, and the opponent's bids are hidden.
PLAYED = (0, 3, 1, 2)


def third_bid():
    return after(pyspiel.load_game(GOOFSPIEL), *PLAYED)


def test_beliefs_are_exact_if_all_histories_fit():
    state = third_bid()
    game, source = make(GOOFSPIEL)
    belief, stages = source.start(), observations(state, 0)
    for number in range(len(stages)):
        random = np.random.default_rng(0)
        belief = source.follow(belief, stages[: number + 1], random)
    assert belief.complete
    expected = exact(game, 0, state)
    assert len(expected) > 2
    assert by_history(belief.states, belief.weights) == pytest.approx(expected)


def test_weights_are_unbiased():
    """Each history's weight, before it is normalised, has its probability as its mean.

    There are 3000 filters of two particles; five standard errors for each of a few
    histories give a false alarm in 1e5.
    """
    state = third_bid()
    game, source = make(GOOFSPIEL, count=2)
    stages, runs = observations(state, 0), 3000
    every = make(GOOFSPIEL)[1]
    whole = every.start()
    for number, stage in enumerate(stages):
        action = stages[number - 1].action if number else None
        whole = every.step(whole, action, stage.seen, random=np.random.default_rng(0))
    assert whole.complete
    expected = by_history(whole.states, whole.weights)
    total, squares, dropped = collections.Counter(), collections.Counter(), 0
    for run in range(runs):
        random = np.random.default_rng(run)
        belief = source.start()
        for number, stage in enumerate(stages):
            action = stages[number - 1].action if number else None
            belief = source.step(belief, action, stage.seen, random=random)
        dropped += not belief.complete
        assert math.exp(belief.log_reach) == pytest.approx(belief.weights.sum())
        for key, weight in by_history(belief.states, belief.weights).items():
            total[key] += weight
            squares[key] += weight**2
    assert dropped > runs / 2, "nothing was drawn"
    assert total.keys() == expected.keys()
    for key, weight in expected.items():
        mean = total[key] / runs
        error = math.sqrt(max(squares[key] / runs - mean**2, 0) / runs)
        assert abs(mean - weight) <= 5 * error + 1e-12, key


def test_particles_above_the_limit_approximate_the_exact_belief():
    """The probability of an event is compared, by the error of independent draws."""
    game = pyspiel.load_game("phantom_ttt")
    opponent = policy_lib.UniformRandomPolicy(game)
    state = after(game, 4, 0, 1, 2)
    assert state.current_player() == 0
    truth = StatePosterior(game, 0, opponent)
    truth.update(state)
    assert not truth.approximate and len(truth.states) > 200
    settings = {"max_histories": 50, "particles": 100}
    few = StatePosterior(game, 0, opponent, **settings, seed=3)
    few.update(state)
    assert few.approximate and not few.surprised
    assert 20 < few.effective_size <= len(few.states) <= 100
    assert few.weights.sum() == pytest.approx(1)
    expected = by_history(truth.states, truth.weights)
    found = by_history(few.states, few.weights)
    assert found.keys() <= expected.keys()
    # The event is that the opponent has the corner 2.
    share = [sum(w for p, w in b.items() if 2 in p[1::1]) for b in (expected, found)]
    assert share[1] == pytest.approx(share[0], abs=5 * math.sqrt(0.25 / 40))
    few.restart()
    assert not few.approximate, "a new match starts with an exact belief"


def test_beliefs_depend_on_the_seed_and_not_on_earlier_queries():
    game = pyspiel.load_game("phantom_ttt")
    opponent = policy_lib.UniformRandomPolicy(game)
    settings = {"max_histories": 20, "particles": 40}
    beliefs = []
    for seed, steps in ((0, (2, 4, 6)), (0, (6,)), (1, (6,))):
        posterior = StatePosterior(game, 0, opponent, seed=seed, **settings)
        for length in steps:
            state = after(game, *(4, 0, 1, 2, 3, 5)[:length])
            assert state.current_player() == 0
            posterior.update(state)
        beliefs.append(by_history(posterior.states, posterior.weights))
    assert beliefs[0] == beliefs[1] != beliefs[2]


def test_bots_act_if_no_history_fits_the_observations(monkeypatch):
    """The belief assumes a uniform opponent, and bots act even if it remains empty."""
    game = pyspiel.load_game("phantom_ttt")
    state = after(game, 4, 0, 0)
    # Player 1 never plays the first of many actions, but player 0 found it occupied.
    assert state.current_player() == 0
    settings = {"max_histories": 3, "particles": 30}
    posterior = StatePosterior(game, 0, Leaning(game), **settings)
    posterior.update(state)
    assert posterior.surprised and len(posterior.states) > 0
    for found in posterior.states:
        assert found.information_state_string(0) == state.information_state_string(0)

    def nothing(self, belief, stages, random):
        return Belief([], np.zeros(0), False)

    monkeypatch.setattr(ParticleFilter, "follow", nothing)
    for kind, more in (
        (ISMCTSBRBot, {"config": SearchConfig(3)}),
        (LBRBot, {"leaf": "uniform", "rollouts": 2}),
    ):
        belief = StatePosterior(game, 0, Leaning(game), **settings)
        bot = kind(game, 0, Leaning(game), belief=belief, **more)
        assert bot.step(state) in state.legal_actions()
        assert bot.beliefs.decisions == bot.beliefs.empty == 1
        assert bot.belief.effective_size == 0 and bot.simulations == 0


def test_number_of_states_is_limited(monkeypatch):
    """In a match with hidden moves, both stored and created states are limited."""
    count, built, most = 20, collections.Counter(), []
    fitting = ParticleFilter._fitting

    def counting(self, state, weight, seen, above):
        built[len(seen)] += 1
        return fitting(self, state, weight, seen, above)

    kept = particles_lib._kept

    def watching(entries, limit, random):
        result = kept(entries, limit, random)
        most.append(len(result))
        return result

    monkeypatch.setattr(ParticleFilter, "_fitting", counting)
    monkeypatch.setattr(particles_lib, "_kept", watching)
    game = pyspiel.load_game("dark_hex(board_size=4)")
    opponent = policy_lib.UniformRandomPolicy(game)
    settings = {"max_histories": 10, "particles": count}
    bot = ISMCTSBRBot(
        *(game, 0, opponent, SearchConfig(2)),
        belief=StatePosterior(game, 0, opponent, compare="always", **settings),
    )
    random, state = np.random.default_rng(0), game.new_initial_state()
    while not state.is_terminal():
        if state.current_player() == 0:
            state.apply_action(bot.step(state))
            assert len(bot.belief.states) <= count
        else:
            state.apply_action(int(random.choice(state.legal_actions())))
    assert bot.beliefs.approximate > 3 and max(most) == count
    assert bot.beliefs.least_effective_size <= bot.beliefs.mean_effective_size <= count
    # Limits of the opponent's moves between two decisions, and of retries of a step.
    levels, tries = 16, 1 + particles_lib._MOST_RETRIES
    per_step = levels * particles_lib._TRIED * count * tries
    assert sum(built.values()) < bot.beliefs.decisions * per_step


def test_rejects_invalid_settings():
    game = pyspiel.load_game("kuhn_poker")
    with pytest.raises(ValueError, match="particles=0"):
        StatePosterior(game, 0, Leaning(game), particles=0)
