"""Blueprints of lookahead players: files, policies and sampled defaults."""

import functools
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common.errors import CorruptFileError, GameTooLargeError
from spiel_cr.resolving.lookahead.blueprint import Blueprint, blueprint_of
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.lookahead.lookahead_resolver import LookaheadResolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import lookahead_trees
from tests.support.solving import solve_with

GOOFSPIEL = "python_ii_goofspiel(num_cards=4)"


def load_blueprint(file, game):
    return blueprint_of(game, file, 1, None, 0)


@functools.cache
def sampled(game):
    algorithm = "os-mccfr(batch=64)"
    return solve_with(game, algorithm, 20, form="simulator", seed=1)


@functools.cache
def trained(algorithm):
    return spiel_cr.solve(
        GOOFSPIEL, algorithm, 1, options=spiel_cr.GameOptions("simulator")
    )


@pytest.fixture
def path(tmp_path):
    sampled(GOOFSPIEL).save(tmp_path / "sampled.npz")
    return str(tmp_path / "sampled.npz")


def test_loads_tabular_and_sampled_policy_files(path, tmp_path):
    whole, solved = str(tmp_path / "whole.npz"), "liars_dice(numdice=1,dice_sides=2)"
    spiel_cr.solve(solved, "lp").save(whole)
    for file, name in ((path, GOOFSPIEL), (whole, solved)):
        game = spiel_cr.load_game(name)
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(state.legal_actions()[0])
        expected = spiel_cr.load_policy(file, game)
        given = load_blueprint(file, game).action_probabilities(state)
        assert given == pytest.approx(expected.action_probabilities(state))
        assert LookaheadConfig(9, file).blueprint == file
    with pytest.raises(ValueError, match="a policy of .* was given for"):
        load_blueprint(path, spiel_cr.load_game(solved))
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(CorruptFileError):
        LookaheadConfig(9, str(tmp_path / "bad.npz"))


def test_loads_network_policies_and_rejects_ensembles(tmp_path):
    path, game = str(tmp_path / "networks.npz"), spiel_cr.load_game(GOOFSPIEL)
    trained("mmd(hidden=4,episodes=16,epochs=1)").save(path)
    given = load_blueprint(path, game)
    state = game.new_initial_state()
    expected = spiel_cr.load_policy(path, game).action_probabilities(state)
    assert given.action_probabilities(state) == expected
    trained("dream(hidden=4,traversals=8,steps=1,critic_steps=1)").save(path)
    config, settings = ResolvingConfig(iterations=1), LookaheadConfig(100, path)
    with pytest.raises(ValueError, match="whose mixture depends on earlier actions"):
        LookaheadResolver(game, 0, config, settings)


@pytest.mark.parametrize("batched_rules", [True, False])
@pytest.mark.parametrize("networks", [True, False])
def test_batched_probabilities_equal_those_of_single_states(networks, batched_rules):
    """Compare with `action_probabilities` of each state, in both implementations."""
    policy = sampled(GOOFSPIEL).average_policy()
    if networks:
        policy = trained("mmd(hidden=4,episodes=16,epochs=1)").average_policy()
    lookahead = lookahead_trees.start(GOOFSPIEL, 300, batched_rules=batched_rules)
    lookahead_trees.by_levels(lookahead)
    tree = lookahead.snapshot().tree
    blueprint = Blueprint(policy, lookahead.simulator.source.rules)
    for player in range(2):
        mine = np.flatnonzero(tree.histories.player == player)
        nodes = lookahead.nodes(lookahead.snapshot().ids[mine])
        odds = np.split(
            blueprint.play(nodes, player), np.cumsum(nodes.num_actions)[:-1]
        )
        for history, found in zip(mine, odds, strict=True):
            given = policy.action_probabilities(tree.state_at(history))
            wanted = [share for _, share in sorted(given.items())]
            assert found == pytest.approx(wanted, abs=1e-6 if networks else 1e-12)


def test_states_without_probabilities_are_played_uniformly():
    lookahead = lookahead_trees.start(GOOFSPIEL, 9, batched_rules=False)
    nothing = SimpleNamespace(action_probabilities=lambda state: {})
    odds = Blueprint(nothing, lookahead.simulator.source.rules).play(
        lookahead.simulator.root(), 0
    )
    assert odds == pytest.approx([0.25] * 4)


def test_default_blueprint_is_sampled_with_the_seed():
    """A policy that is passed as the blueprint is returned unchanged."""
    game, odds = spiel_cr.load_game("kuhn_poker"), []
    state = game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    for seed in (0, 0, 1):
        policy = blueprint_of(game, None, 3, None, seed)
        odds.append(policy.action_probabilities(state))
    assert odds[0] == odds[1] != odds[2]
    assert blueprint_of(game, None, 3, 0.05, 0).action_probabilities(state)
    assert blueprint_of(game, policy, 3, None, 0) is policy


@pytest.mark.parametrize("given", [7, "nothing.npz", b"x"])
def test_rejects_invalid_blueprints(given):
    with pytest.raises((ValueError, OSError), match="blueprint=|nothing.npz"):
        LookaheadConfig(9, given)


@pytest.mark.slow
def test_games_too_large_to_sample_suggest_a_blueprint_file():
    with pytest.raises(GameTooLargeError, match="blueprint=FILE"):
        blueprint_of(pyspiel.load_game("kriegspiel"), None, 1, None, 0)
