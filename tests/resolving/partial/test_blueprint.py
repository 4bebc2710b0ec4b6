"""What a player of partial trees takes from a blueprint."""

import functools
import time
from types import SimpleNamespace

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.players import partial_bots
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.partial.blueprint import Blueprint, load_blueprint
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.resolving_config import ResolvingConfig

GOOFSPIEL = "python_ii_goofspiel(num_cards=4)"


@functools.cache
def sampled(game):
    algorithm = "os-mccfr(batch=64)"
    return spiel_cr.solve(
        game, algorithm, 20, layout=spiel_cr.Layout("stepped"), seed=1
    )


@functools.cache
def trained(algorithm):
    return spiel_cr.solve(GOOFSPIEL, algorithm, 1, layout=spiel_cr.Layout("stepped"))


@pytest.fixture
def path(tmp_path):
    sampled(GOOFSPIEL).save(tmp_path / "sampled.npz")
    return str(tmp_path / "sampled.npz")


def read(text, game):
    """The leaf as a player of partial trees has it, with its blueprint."""
    leaf = PartialConfig(9, leaf=text).read_leaf()
    leaf.policy(functools.partial(load_blueprint, game=game))
    return leaf


def test_files_of_both_kinds_are_read(path, tmp_path):
    whole, solved = str(tmp_path / "whole.npz"), "liars_dice(numdice=1,dice_sides=2)"
    spiel_cr.solve(solved, "lp").save(whole)
    for file, name in ((path, GOOFSPIEL), (whole, solved)):
        game = spiel_cr.load_game(name)
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(state.legal_actions()[0])
        leaf = read(f"continuations(path={file},k=2,rollouts=1)", game)
        assert isinstance(leaf, Continuations) and leaf.k == 2
        expected = spiel_cr.load_policy(file, game)
        given = leaf.policy().action_probabilities(state)
        assert given == pytest.approx(expected.action_probabilities(state))
        assert PartialConfig(9, leaf=f"continuations(path={file})").leaf
    with pytest.raises(ValueError, match="holds a policy for"):
        read(f"continuations(path={path})", spiel_cr.load_game(solved))
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(DamagedFileError):
        PartialConfig(9, leaf=f"continuations(path={tmp_path / 'bad.npz'})")


def test_networks_that_play_are_read_and_banks_are_refused(tmp_path):
    path, game = str(tmp_path / "networks.npz"), spiel_cr.load_game(GOOFSPIEL)
    leaf = f"continuations(path={path},k=1,rollouts=1)"
    trained("mmd(hidden=4,episodes=16,epochs=1)").save(path)
    assert PartialConfig(9, leaf=leaf, until_end=True).until_end
    given = read(leaf, game).policy()
    state = game.new_initial_state()
    expected = spiel_cr.load_policy(path, game).action_probabilities(state)
    assert given.action_probabilities(state) == expected
    trained("dream(hidden=4,traversals=8,steps=1,critic_steps=1)").save(path)
    with pytest.raises(ValueError, match="mixture depends on what was played before"):
        read(leaf, game)


@pytest.mark.parametrize("vectorised", [True, False])
@pytest.mark.parametrize("networks", [True, False])
def test_histories_are_asked_for_together_as_one_by_one(networks, vectorised):
    """By rules on arrays, and by OpenSpiel's states: what its policy says of each."""
    policy = sampled(GOOFSPIEL).average_policy()
    if networks:
        policy = trained("mmd(hidden=4,episodes=16,epochs=1)").average_policy()
    partial = PartialTree.start(GOOFSPIEL, 300, vectorised=vectorised)
    partial.grow()
    tree = partial.compile().tree
    blueprint = Blueprint(policy, partial.simulator)
    for player in range(2):
        mine = np.flatnonzero(tree.histories.player == player)
        nodes = partial.nodes(partial.compile().ids[mine])
        odds = np.split(
            blueprint.play(nodes, player), np.cumsum(nodes.num_actions)[:-1]
        )
        for history, found in zip(mine, odds, strict=True):
            given = policy.action_probabilities(tree.state_at(history))
            wanted = [share for _, share in sorted(given.items())]
            assert found == pytest.approx(wanted, abs=1e-6 if networks else 1e-12)


def test_where_a_policy_has_nothing_all_actions_are_alike():
    partial = PartialTree.start(GOOFSPIEL, 9, vectorised=False)
    nothing = SimpleNamespace(action_probabilities=lambda state: {})
    odds = Blueprint(nothing, partial.simulator).play(partial.simulator.root(), 0)
    assert odds == pytest.approx([0.25] * 4)


@pytest.mark.slow
def test_a_blueprint_answers_where_nothing_is_solved(path):
    """Until the end fits; from there on what is solved counts."""
    policy = spiel_cr.load_policy(path, spiel_cr.load_game(GOOFSPIEL))
    leaf = f"continuations(path={path},k=1,rollouts=1)"
    settings = PartialConfig(200, leaf=leaf, until_end=True, warmup_matches=0)
    bot = partial_bots.PartialResolvingBot(
        GOOFSPIEL, 0, ResolvingConfig("cfr+", iterations=50), partial=settings
    )
    state = bot.agent.solved.partial.game.new_initial_state()
    assert dict(bot.get_policy(state)) == policy.action_probabilities(state)
    assert bot.counts.blueprint == 1
    for action in (0, 0, 1, 1):
        state.apply_action(action)
    # Both hold the cards 3 and 4, for point cards 3 and 4: the higher bid is for 4.
    assert dict(bot.get_policy(state))[2] > 0.9
    assert bot.counts.unsafe_restarts == 1 and bot.counts.blueprint == 1
    # What fits no program's shapes is not solved in part.
    bot.restart()
    bot.agent._layers._solver_for = lambda game: None
    given = policy.action_probabilities(state)
    assert dict(bot.get_policy(state)) == pytest.approx(given)
    assert bot.counts.shrunk and bot.counts.unsafe_restarts == 1
    assert bot.counts.blueprint == 2


@pytest.mark.parametrize("seconds", [0, 1000])
def test_what_had_no_time_for_iterations_is_the_blueprint_s(
    seconds, tmp_path, monkeypatch
):
    """A solve that a clock ends at once plays worse than what it began with."""
    kuhn, path = "kuhn_poker", str(tmp_path / "kuhn.npz")
    sampled(kuhn).save(path)
    leaf = f"continuations(path={path},k=1,rollouts=1)"
    settings = PartialConfig(30, leaf=leaf, warmup_matches=0)
    config = ResolvingConfig("cfr+", iterations=20)
    bot = partial_bots.PartialResolvingBot(kuhn, 0, config, partial=settings)
    monkeypatch.setattr(
        bot.agent._clock, "deadline", lambda solves: time.perf_counter() + seconds
    )
    state = bot.agent.solved.partial.game.new_initial_state()
    for action in (0, 1, 0, 1):  # player 0 passes, and is bet into
        state.apply_action(action)
    given = dict(bot.get_policy(state))
    blueprint = spiel_cr.load_policy(path).action_probabilities(state)
    assert (given == pytest.approx(blueprint)) == (not seconds)
    assert bot.counts.blueprint == (not seconds)


def test_without_a_blueprint_no_tree_is_left_out():
    with pytest.raises(ValueError, match="until_end=True plays a blueprint elsewhere"):
        PartialConfig(9, until_end=True)
