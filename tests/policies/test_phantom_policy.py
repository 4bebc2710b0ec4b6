"""Policies of phantom games: conversion, files, and evaluation."""

import dataclasses

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.common.errors import MoreKnowledgeError
from spiel_cr.evaluation import opponent
from spiel_cr.games.phantom import phantom_game, phantom_queries
from spiel_cr.policies import queries
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.queries import query
from spiel_cr.solvers.representation import Reason
from tests.support.hidden_boards import Drawn

TINY, SMALL = "dark_hex(num_rows=2,num_cols=2)", "dark_hex(num_rows=2,num_cols=3)"
PHANTOM = spiel_cr.GameOptions("phantom")


@pytest.fixture(scope="module")
def solved():
    return spiel_cr.solve(TINY, "pcfr+", 5, options=PHANTOM)


@pytest.fixture
def evaluated_in_phantom_form(monkeypatch):
    """Evaluate small games in phantom form, too."""
    monkeypatch.setattr(opponent, "choose_form", lambda *_: Reason("phantom"))


def test_nash_conv_equals_openspiels(solved):
    found = exploitability.nash_conv(pyspiel.load_game(TINY), solved.average_policy())
    assert found == pytest.approx(solved.nash_conv(), abs=1e-12)
    assert found < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_values_of_openspiel_policies_equal_openspiels(seed, evaluated_in_phantom_form):
    game = pyspiel.load_game(TINY)
    policy = Drawn(game, seed)
    wanted = exploitability.nash_conv(game, policy)
    assert spiel_cr.nash_conv(TINY, policy) == pytest.approx(wanted, abs=1e-12)
    assert spiel_cr.evaluate(TINY, policy).nash_conv == pytest.approx(wanted, abs=1e-12)
    best = [spiel_cr.best_response(TINY, policy, player) for player in range(2)]
    assert sum(one.value for one in best) == pytest.approx(wanted, abs=1e-12)
    found = spiel_cr.exploit(TINY, policy)
    assert found.is_exact and found.value == pytest.approx(wanted, abs=1e-12)


def test_policies_with_more_information_are_rejected():
    """Strings reveal the number of turns, and so the opponent's rejected moves."""
    policy = Drawn(pyspiel.load_game(SMALL), 1, turns=True)
    with pytest.raises(MoreKnowledgeError, match="approximate best responses"):
        spiel_cr.nash_conv(SMALL, policy)
    assert opponent.open_opponent(policy, SMALL).form is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_bounds_of_a_search_do_not_exceed_nash_conv(seed):
    """A false alarm needs a bound that is too high and a search that is optimal."""
    policy = Drawn(pyspiel.load_game(SMALL), seed)
    found = spiel_cr.exploit(SMALL, policy, seconds=5, methods=["table"], seed=seed)
    assert not found.is_exact
    assert found.at_least <= spiel_cr.nash_conv(SMALL, policy)


def test_best_response_policy_attains_its_value(evaluated_in_phantom_form):
    game = pyspiel.load_game(TINY)
    found = spiel_cr.best_response(TINY, Drawn(game, 5), 1)
    assert found.is_exact
    worth = exploitability.best_response(game, found.responses[0], 0)
    assert worth["on_policy_value"] == pytest.approx(-found.value, abs=1e-12)


def test_batched_queries_equal_queries_at_states():
    way = spiel_cr.GameOptions("simulator")
    settings = "os-mccfr(averaging=sampled,batch=64)"
    policy = spiel_cr.solve(SMALL, settings, 20, options=way).average_policy()
    worlds = phantom_game(SMALL)
    for player in range(2):
        batch = next(phantom_queries.queries(worlds, player))
        at_once = queries.query_batch(policy, batch)
        one_by_one = queries.query_batch(policy, dataclasses.replace(batch, rows=None))
        rows = policy.array_probabilities(batch.rules, batch.rows(), player)
        reached = rows.any(axis=1)
        assert 20 < reached.sum() < len(reached)
        np.testing.assert_allclose(at_once, one_by_one, atol=1e-7)


def test_policies_are_restored_from_files(solved, tmp_path):
    solved.save(tmp_path / "policy.npz")
    policy = spiel_cr.load_policy(tmp_path / "policy.npz")
    for player in range(2):
        assert (policy.behaviour[player] == solved.average[player]).all()
    assert spiel_cr.nash_conv(TINY, policy) == solved.nash_conv()
    with pytest.raises(ValueError, match="was given for dark_hex"):
        spiel_cr.load_policy(tmp_path / "policy.npz", SMALL)
    bot = spiel_cr.load_bot(TINY, f"policy(path={tmp_path / 'policy.npz'})", 0)
    state = pyspiel.load_game(TINY).new_initial_state()
    assert dict(bot.get_policy(state)) == policy.action_probabilities(state)


def test_rejects_invalid_policies(solved):
    worlds = solved.game_form
    first, second = solved.average
    for wrong in (first[:-1], first.astype(np.int64), 2 * first, -first):
        with pytest.raises(ValueError, match="behaviour of player 0"):
            FormPolicy(worlds, (wrong, second))
    state = worlds.game.new_initial_state()
    with pytest.raises(ValueError, match="player 0 acts"):
        solved.average_policy().action_probabilities(state, 1)

    class Wrong(openspiel_policy.UniformRandomPolicy):
        def action_probabilities(self, state, player_id=None):
            return {action: 0.9 for action in state.legal_actions()}

    with pytest.raises(
        ValueError, match="Wrong: at the information state .* of player 0"
    ):
        query(worlds, Wrong(worlds.game))
