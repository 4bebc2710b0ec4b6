"""Learned responses: network, episodes, training."""

import dataclasses
import functools
import sys

import numpy as np
import pyspiel
import pytest

pytest.importorskip("optax")

import jax  # noqa: E402

from spiel_cr.common import networks  # noqa: E402
from spiel_cr.evaluation import response_matches  # noqa: E402
from spiel_cr.evaluation.best_response import played_strategy, respond  # noqa: E402
from spiel_cr.evaluation.opponent import open_opponent  # noqa: E402
from spiel_cr.evaluation.response_config import (
    ResponseConfig,  # noqa: E402
    SearchConfig,  # noqa: E402
)
from spiel_cr.evaluation.response_matches import expected_reward  # noqa: E402
from spiel_cr.evaluation.responses import learned_response as network  # noqa: E402
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor  # noqa: E402
from spiel_cr.evaluation.responses.learned_response import LearningConfig  # noqa: E402
from tests.support import games  # noqa: E402
from tests.support.made_games import TERMINAL, MadeGame, Node  # noqa: E402
from tests.support.named_opponents import load_opponent  # noqa: E402

QUICK = LearningConfig(
    search=SearchConfig(simulations=12),
    rounds=4,
    episodes=24,
    hidden=(32,),
    steps=40,
    minibatch=32,
    replay=60,
    learning_rate=0.01,
)


def made_up(random):
    """Return samples of seven decisions with two or three of three actions legal."""
    legal = np.arange(3) < random.integers(2, 4, size=7)[:, None]
    visits = np.where(legal, random.random(legal.shape), 0)
    return network.Samples(
        random.normal(size=(7, 5)).astype(np.float32),
        legal,
        (visits / visits.sum(axis=1, keepdims=True)).astype(np.float32),
        random.uniform(-1, 1, len(legal)).astype(np.float32),
    )


def by_hand(samples, weights, l2):
    """Compute the loss in numpy: AlphaZero's equation 1 on a perceptron, row by row."""
    (bias0, kernel0), (bias1, kernel1) = weights
    total = 0.0
    for features, legal, visits, returned in zip(*samples, strict=True):
        out = np.maximum(features @ kernel0 + bias0, 0) @ kernel1 + bias1
        odds = np.exp(out[:-1][legal])
        total -= float(visits[legal] @ np.log(odds / odds.sum()))
        total += float(out[-1] - returned) ** 2
    squares = sum(float((w**2).sum()) for pair in weights for w in pair)
    return total / len(samples.returned) + l2 * squares


def test_loss_and_gradient_equal_alphazeros():
    """The gradient along a random direction equals a central difference in numpy."""
    random = np.random.default_rng(3)
    samples = made_up(random)
    parameters = jax.tree.map(
        lambda leaf: leaf + random.normal(size=leaf.shape).astype(np.float32),
        networks.make((5, 8, 4), seed=1),
    )
    found, slope = jax.jit(
        jax.value_and_grad(lambda p: network.loss(p, samples, 0.01).total)
    )(parameters)
    leaves, slopes = (
        [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(t)]
        for t in (parameters, slope)
    )
    way = [random.normal(size=leaf.shape) for leaf in leaves]

    def at(step):
        moved = [leaf + step * w for leaf, w in zip(leaves, way, strict=True)]
        return by_hand(samples, [(moved[0], moved[1]), (moved[2], moved[3])], 0.01)

    # float32 sums of a few dozen terms.
    assert float(found) == pytest.approx(at(0.0), rel=1e-5)
    expected = (at(1e-6) - at(-1e-6)) / 2e-6
    along = sum(float((s * w).sum()) for s, w in zip(slopes, way, strict=True))
    assert along == pytest.approx(expected, rel=1e-4)


def learn(opponent="always_call", seed=5, **changes):
    game = games.compiled("kuhn").game
    policy = load_opponent(opponent, game)
    config = dataclasses.replace(QUICK, **changes)
    return network.learn_response(game, 1, policy, config, seed=seed)


def test_learns_a_best_response_reproducibly():
    """Against an opponent that always calls, the response bets the king, not the jack.

    The same seed gives bitwise identical parameters.
    """
    learned, again = learn(), learn()
    assert learned.losses[-1].total < learned.losses[0].total
    # Each decision of an episode is searched.
    assert 0 < learned.simulations <= 12 * 24 * 4
    chosen = {}
    for cards in ((1, 0), (1, 2)):
        state = pyspiel.load_game("kuhn_poker").new_initial_state()
        for action in (*cards, 0):
            state.apply_action(action)
        prior, value = learned.prior_and_value(state, 1)
        assert sum(prior) == pytest.approx(1)
        chosen[cards[1]] = int(np.argmax(prior)), value
    assert chosen[0][0] == 0 and chosen[2][0] == 1
    assert chosen[0][1] < -0.5 < 1 < chosen[2][1]
    assert learned.losses == again.losses
    for mine, its in zip(
        *map(jax.tree.leaves, (learned.parameters, again.parameters)), strict=True
    ):
        np.testing.assert_array_equal(mine, its)


def test_replay_buffer_keeps_the_newest_samples():
    """Samples are padded to a fixed size, so that one compiled function is enough."""
    random = np.random.default_rng(0)
    first, second = made_up(random), made_up(random)
    kept = network._newest([first, second], 10)
    np.testing.assert_array_equal(kept.returned[:3], first.returned[4:])
    np.testing.assert_array_equal(kept.features[3:], second.features)
    assert {len(array) for array in network._padded(kept, 12)} == {12}


def test_rejects_invalid_arguments():
    game = pyspiel.load_game("kuhn_poker")
    uniform = load_opponent("uniform", game)
    with pytest.raises(ValueError, match="player=2"):
        network.learn_response(game, 2, uniform)
    for field, value in (
        ("rounds", 0),
        ("hidden", (0,)),
        ("learning_rate", float("nan")),
    ):
        with pytest.raises(ValueError, match=field):
            LearningConfig(**{field: value})
    with pytest.raises(ValueError, match="learning a table"):
        LearningConfig(search=SearchConfig(learn=5))


def test_missing_tensors_and_packages_are_named(monkeypatch):
    game = pyspiel.load_game("tic_tac_toe")
    with pytest.raises(ValueError, match="information_state_tensor"):
        network.check_tensor(game)
    # A Python game that declares tensors but has no observer that makes them.
    rules = {(): Node(0, (0, 1), ("start", "start"))}
    blind = MadeGame(lambda path: rules.get(path, Node(TERMINAL)), "blind", tensor=True)
    with pytest.raises(ValueError, match="has none .*give the game a make_py_obs"):
        network.check_tensor(blind)
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"pip install 'spiel_cr\[deep\]'"):
        learn()


@pytest.mark.slow
def test_the_network_helps_a_short_search_on_leduc():
    """Values are compared with the exact one on the game tree."""
    tree = games.compiled("leduc")
    target = open_opponent("always_raise", tree)
    policy = target.policy
    search = SearchConfig(simulations=50)
    config = LearningConfig(search=search, rounds=6)
    learned = network.learn_response(tree.game, 0, policy, config, seed=1)
    exact = respond(target, 0, ResponseConfig("exact")).value
    one = SearchConfig(simulations=1, histories="drawn")
    values = []
    for predicted in (None, learned.prior_and_value):
        more = {} if predicted is None else {"predictor": Predictor(predicted)}
        bot = ISMCTSBRBot(tree.game, 0, policy, one, seed=1, **more)
        found = played_strategy(target, bot, most=10_000)
        values.append(
            expected_reward(tree.sequence_form, 0, found, target.behaviour[1])
        )
    assert values[0] < 0.5 * exact < 0.9 * exact < values[1] <= exact + 1e-9


def test_learned_response_is_evaluated_exactly_on_a_game_tree(monkeypatch):
    quick = functools.partial(dataclasses.replace, QUICK)
    monkeypatch.setattr(response_matches, "LearningConfig", quick)
    tree = games.compiled("kuhn")
    config = ResponseConfig("learned", SearchConfig(20), rounds=2, matches=10)
    seat = respond(open_opponent("always_call", tree), 1, config)
    assert seat.is_exact and seat.exact_value == pytest.approx(1 / 3)
    assert 0.3 < seat.value <= 1 / 3 + 1e-12
