"""Responses learned on states: episodes, training, checkpoints."""

import dataclasses

import numpy as np
import pyspiel
import pytest

pytest.importorskip("optax")

import jax  # noqa: E402

from spiel_cr.common import storage  # noqa: E402
from spiel_cr.games.tree import compiler as tree_lib  # noqa: E402
from spiel_cr.judging.response_config import ResponseConfig  # noqa: E402
from spiel_cr.judging.responses import learn_states
from spiel_cr.judging.responses.ismcts_config import SearchConfig  # noqa: E402
from spiel_cr.judging.responses.learning import LearningConfig, Stage  # noqa: E402
from spiel_cr.judging.tree_responses import on_tree, opponent_behaviour  # noqa: E402
from spiel_cr.players import opponent_strings

QUICK = LearningConfig(
    search=SearchConfig(simulations=12),
    episodes=24,
    hidden=(32,),
    steps=40,
    minibatch=32,
    replay=60,
    learning_rate=0.01,
    matches=20,
)


def run(rounds, path=None, seed=5, **changes):
    game = pyspiel.load_game("kuhn_poker")
    stages = [
        Stage("uniform", opponent_strings.load_opponent("uniform", game), 1),
        Stage("call", opponent_strings.load_opponent("always_call", game), rounds),
    ]
    config = dataclasses.replace(QUICK, **changes)
    return learn_states.learn_on_states(
        game, 1, stages, config, seed=seed, checkpoint_path=path
    )


def test_it_learns_a_best_response():
    """Against who never folds nor bets: bet the king, not the knave."""
    learned = run(4)
    first, last = learned.curve[0], learned.curve[-1]
    assert [point.opponent for point in learned.curve] == ["uniform"] * 2 + ["call"] * 4
    assert last.loss < learned.curve[1].loss
    assert last.round == 5 and last.episodes == 5 * QUICK.episodes
    # Each decision of an episode is searched.
    assert 0 < last.simulations <= 12 * 24 * 5
    # Equal deals: the best response gets 1/3 in expectation, on these cards as much as
    # nobody beats; the first network bets or checks everything.
    game = pyspiel.load_game("kuhn_poker")
    chosen = {}
    for cards in ((1, 0), (1, 2)):
        state = game.new_initial_state()
        for action in (*cards, 0):
            state.apply_action(action)
        prior, value = learned.prior_and_value(state, 1)
        chosen[cards[1]] = int(np.argmax(prior)), value
    assert chosen[0][0] == 0 and chosen[2][0] == 1
    assert chosen[0][1] < -0.5 < 1 < chosen[2][1]
    assert last.network_value >= first.network_value
    assert last.network_error > 0


def test_a_resumed_run_has_the_same_bits(tmp_path):
    path = tmp_path / "learning.npz"
    straight = run(2)
    run(1, path)
    resumed = run(2, path)
    assert straight.curve == resumed.curve
    assert all(
        np.array_equal(mine, its)
        for mine, its in zip(
            jax.tree.leaves(straight.parameters),
            jax.tree.leaves(resumed.parameters),
            strict=True,
        )
    )
    with pytest.raises(ValueError, match="seed"):
        run(2, path, seed=6)
    with pytest.raises(ValueError, match="rounds"):
        run(1, path)
    arrays, _ = storage.load(path)
    # 24 episodes of one decision each a round, since the opponent changed.
    assert len(arrays["returned"]) == len(arrays["features"]) == 48
    assert (arrays["visits"].sum(axis=1) == pytest.approx(1)) and arrays["legal"].all()


def test_bad_arguments():
    game = pyspiel.load_game("kuhn_poker")
    stage = Stage("uniform", opponent_strings.load_opponent("uniform", game), 1)
    with pytest.raises(ValueError, match="opponents is empty"):
        learn_states.learn_on_states(game, 0, [])
    with pytest.raises(ValueError, match="player=2"):
        learn_states.learn_on_states(game, 2, [stage])
    with pytest.raises(ValueError, match="matches=0"):
        LearningConfig(matches=0)
    with pytest.raises(ValueError, match="rounds of 'uniform'=0"):
        learn_states.learn_on_states(game, 0, [stage._replace(rounds=0)])
    with pytest.raises(ValueError, match="learns a table"):
        LearningConfig(search=SearchConfig(learn=5))


@pytest.mark.slow
def test_the_network_helps_a_short_search_on_leduc():
    """Beside exact values, which the compiled game has."""
    game = pyspiel.load_game("leduc_poker")
    policy = opponent_strings.load_opponent("always_raise", game)
    config = LearningConfig(
        search=SearchConfig(simulations=50), episodes=64, steps=200, matches=500
    )
    learned = learn_states.learn_on_states(
        game, 0, [Stage("raise", policy, 6)], config, seed=1
    )
    first, last = learned.curve[0], learned.curve[-1]
    tree = tree_lib.compile_game(game)
    behaviour = opponent_behaviour(tree, "always_raise")
    exact = on_tree(tree, 0, behaviour, ResponseConfig("exact")).value
    assert first.network_value + 2 * first.network_error < 0.5 * exact
    assert abs(last.search_value - exact) < 2 * last.search_error + 0.2
    assert last.network_value > first.network_value + 0.5
