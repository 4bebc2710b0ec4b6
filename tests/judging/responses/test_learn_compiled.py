"""Learned best responses: network, episodes, training, checkpoints."""

import dataclasses
import errno
import sys

import numpy as np
import pyspiel
import pytest

pytest.importorskip("optax")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from spiel_cr.common import atomic, networks, storage
from spiel_cr.common.errors import DamagedFileError, FileInUseError, UnsavedWarning
from spiel_cr.games.tree import compiler as tree_lib  # noqa: E402
from spiel_cr.judging.responses import (
    episodes,
    ismcts_br,
    learn_compiled,
    posterior,
)
from spiel_cr.judging.responses import (
    response_network as network,
)
from spiel_cr.judging.responses.ismcts_config import SearchConfig  # noqa: E402
from spiel_cr.judging.responses.learning import LearningConfig, Stage  # noqa: E402
from spiel_cr.players import opponent_strings
from spiel_cr.policies import conversions as policy_lib  # noqa: E402
from tests.support.made_games import TERMINAL, MadeGame, Node

# Few programs, which are most of the time here.
QUICK = LearningConfig(
    search=SearchConfig(simulations=32, batch=1),
    episodes=32,
    hidden=(32,),
    steps=20,
    minibatch=32,
    replay=150,
    learning_rate=0.01,
)


@pytest.fixture(scope="module")
def kuhn():
    return tree_lib.compile_game("kuhn_poker")


@pytest.fixture(scope="module")
def small(kuhn):
    """A network of Kuhn poker with parameters that are not special."""
    seen = network.inputs(kuhn, 1)
    parameters = networks.make((seen.features.shape[1], 8, 3), seed=1)
    random = np.random.default_rng(2)
    shaken = jax.tree.map(
        lambda leaf: leaf + random.normal(size=leaf.shape).astype(np.float32),
        parameters,
    )
    return shaken, seen


def behaviour(tree, name, player):
    opponent = opponent_strings.load_opponent(name, tree)
    return policy_lib.behaviour_from_policy(tree, opponent)[player]


def samples_of(seen, random):
    """Made-up samples, one for each infoset."""
    legal = np.asarray(seen.legal)
    visits = np.where(legal, random.random(legal.shape), 0)
    return network.Samples(
        np.arange(len(legal), dtype=np.int32),
        (visits / visits.sum(axis=1, keepdims=True)).astype(np.float32),
        random.uniform(-1, 1, len(legal)).astype(np.float32),
    )


@jax.jit
def slope_of(parameters, seen, samples, l2):
    return jax.grad(lambda p: network.loss(p, seen, samples, l2).total)(parameters)


def by_hand(seen, samples, weights, l2):
    """The loss in numpy: AlphaZero's equation 1 on a perceptron, infoset by infoset."""
    (bias0, kernel0), (bias1, kernel1) = weights
    total = 0.0
    for i in range(len(samples.infoset)):
        features, actions, legal = (np.asarray(a[i]) for a in seen)
        out = np.maximum(features @ kernel0 + bias0, 0) @ kernel1 + bias1
        odds = np.exp(out[actions[legal]])
        visits = np.asarray(samples.visits[i])[legal]
        total -= float(visits @ np.log(odds / odds.sum()))
        total += float(out[-1] - samples.returned[i]) ** 2
    squares = sum(float((w**2).sum()) for pair in weights for w in pair)
    return total / len(samples.infoset) + l2 * squares


def test_loss_is_cross_entropy_plus_squared_error_plus_l2(small):
    parameters, seen = small
    samples = samples_of(seen, np.random.default_rng(0))
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(parameters)]
    weights = [(leaves[0], leaves[1]), (leaves[2], leaves[3])]
    found = network.loss(parameters, seen, samples, 0.01)
    # float32 sums of a few dozen terms.
    expected = by_hand(seen, samples, weights, 0.01)
    assert float(found.total) == pytest.approx(expected, rel=1e-5)


def test_gradient_is_that_of_the_loss(small):
    """Along a random direction, against a central difference of the loss by hand."""
    parameters, seen = small
    random = np.random.default_rng(3)
    samples = samples_of(seen, random)
    slope = slope_of(parameters, seen, samples, 0.01)
    leaves, slopes = (
        [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(t)]
        for t in (parameters, slope)
    )
    way = [random.normal(size=leaf.shape) for leaf in leaves]

    def at(step):
        moved = [leaf + step * w for leaf, w in zip(leaves, way, strict=True)]
        weights = [(moved[0], moved[1]), (moved[2], moved[3])]
        return by_hand(seen, samples, weights, 0.01)

    expected = (at(1e-6) - at(-1e-6)) / 2e-6
    found = sum(float((s * w).sum()) for s, w in zip(slopes, way, strict=True))
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_network_that_is_right_does_not_move(small):
    parameters, seen = small
    log_prior, value = network.evaluate(parameters, seen)
    visits = np.where(seen.legal, np.exp(log_prior), 0)
    at = np.arange(len(visits), dtype=np.int32)
    samples = network.Samples(at, visits, np.asarray(value))
    slope = slope_of(parameters, seen, samples, 0.0)
    assert all(abs(np.asarray(leaf)).max() < 1e-5 for leaf in jax.tree.leaves(slope))


def test_predictions_on_states_are_those_on_arrays(kuhn):
    learned = run(kuhn, 1)
    on_states = network.NetworkPriorAndValue(
        kuhn.game, learned.parameters, network.scale(kuhn, 1)
    )
    infosets = kuhn.infosets[1]
    for i, history in enumerate(infosets.history):
        state = kuhn.game.new_initial_state()
        for action in kuhn.histories.actions_to(int(history)):
            state.apply_action(action)
        prior, value = on_states(state, 1)
        first = int(infosets.decisions.first_sequence[i])
        assert sum(prior) == pytest.approx(1)
        expected = np.asarray(learned.prior_and_value.prior)[first : first + 2]
        assert prior == pytest.approx(expected, abs=1e-6)
        assert value == pytest.approx(float(learned.prior_and_value.value[i]), abs=1e-5)


def test_episodes_follow_chance_and_the_opponent(kuhn):
    """First decisions of the second player come as often as the exact law says.

    n = 20000; the largest of 6 deviations stays within 4.5 standard errors, but for a
    chance of 4e-5.
    """
    random = np.random.default_rng(1)
    decisions = kuhn.infosets[0].decisions
    reach = policy_lib.uniform_behaviour(decisions) * random.random(
        decisions.num_sequences
    )
    reach[0] = 1
    other = policy_lib.behaviour_from_reach(decisions, reach)
    process = episodes.decision_process(kuhn, 1, other)
    predicted = ismcts_br.uniform_prior(process.arrays)
    predicted = predicted._replace(value=jnp.zeros(7, np.float32))
    played = episodes.play(
        process,
        predicted,
        QUICK.search,
        20_000,
        episodes.Exploring(temperature=1.0),
        key=jax.random.key(0),
        random=np.random.default_rng(0),
    )
    weight = posterior.weights(kuhn, 1, other)
    here = np.flatnonzero(kuhn.histories.player == 1)
    law = np.bincount(kuhn.histories.infoset[here], weight[here], minlength=6)
    assert law.sum() == pytest.approx(1)
    count = np.bincount(played.infoset, minlength=6)
    error = np.sqrt(20_000 * law * (1 - law))
    assert (abs(count - 20_000 * law) <= 4.5 * error + 1e-9).all()
    assert sorted(played.episode) == list(range(20_000))
    # Kuhn poker pays 1 or 2, to either side.
    assert set(np.unique(played.returned)) == {-2, -1, 1, 2}
    assert played.visits.sum(axis=1) == pytest.approx(1)


def test_actions_are_drawn_by_temperature():
    visits = np.array([[1.0, 3.0, 0.0]] * 40_000)
    random = np.random.default_rng(0)
    for temperature, expected in ((1.0, 0.75), (0.5, 0.9)):
        drawn = episodes.choose(visits, temperature, random)
        # Five standard errors of at most 0.0022.
        assert (drawn == 1).mean() == pytest.approx(expected, abs=0.011)
        assert drawn.max() == 1
    assert (episodes.choose(visits, 0.0, random) == 1).all()


def test_noise_goes_to_the_roots_only(kuhn):
    infosets = kuhn.infosets[0]
    process = episodes.decision_process(kuhn, 0, behaviour(kuhn, "uniform", 1))
    predicted = ismcts_br.uniform_prior(process.arrays)
    random = np.random.default_rng(0)
    exploring = episodes.Exploring(0.25, 0.3)
    noisy = episodes.with_noise(
        predicted, infosets, np.array([1, 4]), exploring, random
    )
    before, after = np.asarray(predicted.prior), np.asarray(noisy.prior)
    moved = np.flatnonzero(before != after)
    first = infosets.decisions.first_sequence
    assert set(moved) == {first[1], first[1] + 1, first[4], first[4] + 1}
    for root in (1, 4):
        prior = after[first[root] : first[root] + 2]
        assert prior.sum() == pytest.approx(1)
        # A quarter of noise moves a half by an eighth at most.
        assert (prior >= 0.375 - 1e-6).all()


@pytest.mark.parametrize(
    ("opponent", "exact"),
    # Who folds after any bet loses an ante. Who never folds nor bets: a bet on the king
    # wins 2, the queen nothing in the mean, and the knave loses 1 if it is checked.
    [("always_fold", 1.0), ("always_call", 1 / 3)],
)
def test_it_learns_a_best_response(kuhn, opponent, exact):
    config = dataclasses.replace(QUICK, noise=0.5)
    stages = [Stage(opponent, behaviour(kuhn, opponent, 0), 8)]
    learned = learn_compiled.learn_response(kuhn, 1, stages, config, seed=3)
    first, last = learned.curve[0], learned.curve[-1]
    assert last.exact_value == pytest.approx(exact)
    assert first.network_value / first.exact_value < 0.95
    assert last.network_value / last.exact_value > 0.95
    assert last.search_value / last.exact_value > 0.95
    assert all(p.search_value <= p.exact_value + 1e-9 for p in learned.curve)


@pytest.mark.slow
@pytest.mark.parametrize("player", (0, 1))
def test_it_learns_on_leduc(player):
    """Against an opponent that is not trivial; exact values: NashConv 2.0223 in sum."""
    tree = tree_lib.compile_game("leduc_poker")
    other = behaviour(tree, "cfr+(iterations=7)", 1 - player)
    config = LearningConfig(search=SearchConfig(simulations=500, exploration=0.5))
    stages = [Stage("cfr+", other, 8)]
    learned = learn_compiled.learn_response(tree, player, stages, config, seed=1)
    first, last = learned.curve[0], learned.curve[-1]
    assert last.exact_value == pytest.approx((0.4291, 1.5932)[player], abs=1e-4)
    assert first.network_value / first.exact_value < 0
    assert last.network_value / last.exact_value > 0.9
    assert last.search_value / last.exact_value > 0.95


def run(kuhn, rounds, path=None, seed=5):
    stages = [
        Stage("uniform", behaviour(kuhn, "uniform", 0), 2),
        Stage("call", behaviour(kuhn, "always_call", 0), rounds),
    ]
    return learn_compiled.learn_response(
        kuhn, 1, stages, QUICK, seed=seed, checkpoint_path=path
    )


def bits(learned):
    """All arrays of a learned response."""
    return jax.tree.leaves(
        (
            learned.behaviour,
            learned.network_behaviour,
            learned.prior_and_value,
            learned.parameters,
        )
    )


def test_a_resumed_run_has_the_same_bits(kuhn, tmp_path):
    path = tmp_path / "learning.npz"
    straight = run(kuhn, 3)
    again = run(kuhn, 3)
    run(kuhn, 1, path)
    resumed = run(kuhn, 3, path)
    for other in (again, resumed):
        assert all(
            np.array_equal(mine, its)
            for mine, its in zip(bits(straight), bits(other), strict=True)
        )
        assert straight.curve == other.curve
    assert [p.opponent for p in straight.curve] == ["uniform"] * 3 + ["call"] * 3
    assert not np.array_equal(
        straight.prior_and_value.value, run(kuhn, 3, seed=6).prior_and_value.value
    )
    with pytest.raises(ValueError, match="seed"):
        run(kuhn, 3, path, seed=6)
    with pytest.raises(ValueError, match="rounds"):
        run(kuhn, 1, path)


def test_the_buffer_keeps_the_newest_and_forgets_the_last_opponent(kuhn, tmp_path):
    path = tmp_path / "learning.npz"
    # 32 episodes of one decision each a round, 150 rows of room.
    for rounds, rows in ((1, 32), (2, 64), (6, 150)):
        run(kuhn, rounds, path)
        arrays, _ = storage.load(path)
        assert len(arrays["infoset"]) == len(arrays["visits"]) == rows


def test_bad_files_are_refused(kuhn, tmp_path):
    path = tmp_path / "learning.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="delete it"):
        run(kuhn, 1, path)
    path.unlink()
    run(kuhn, 1, path)
    arrays, metadata = storage.load(path)
    point = metadata["curve"][0]
    for changed in (
        {"leaf0": arrays["leaf0"][:-1]},
        {"leaf0": arrays["leaf0"].astype(np.float64)},
        {"another": arrays["leaf0"]},
        {"visits": arrays["visits"][:-1]},
        {"visits": arrays["visits"][:, :1]},
        {"returned": arrays["returned"].astype(np.float64)},
        {"infoset": arrays["infoset"] + 100},
        {"infoset": arrays["infoset"] - 100},
        {name: np.repeat(arrays[name], 20, 0) for name in ("infoset", "visits")},
        {"round": "1"},
        {"round": -1},
        {"simulations": True},
        {"curve": None},
        {"curve": [7]},
        {"curve": [point[:-1]]},
        {"curve": [["x", *point[1:]]]},
        {"curve": [[*point[:-1], "x"]]},
    ):
        both = {**arrays, **metadata, **changed}
        others = {name: a for name, a in both.items() if isinstance(a, np.ndarray)}
        rest = {name: both[name] for name in metadata}
        storage.save(path, others, rest)
        with pytest.raises(DamagedFileError, match=f"{path}.* is damaged"):
            run(kuhn, 2, path)
    storage.save(path, arrays, metadata)
    with (
        atomic.lock(path),
        pytest.raises(FileInUseError, match="checkpoint_path=.*in use"),
    ):
        run(kuhn, 2, path)


def test_a_full_disk_costs_no_response(kuhn, tmp_path, monkeypatch):
    path = tmp_path / "learning.npz"
    run(kuhn, 1, path)
    content = path.read_bytes()

    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.np, "savez", full)
    with pytest.warns(UnsavedWarning, match=f"No space left on device: '{path}'"):
        assert run(kuhn, 2, path).curve[-1].round == 4
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("noise", 1.5),
        ("concentration", 0.0),
        ("temperature", -1.0),
        ("episodes", 0),
        ("hidden", (0,)),
        ("learning_rate", float("nan")),
    ],
)
def test_bad_settings_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        LearningConfig(**{field: value})


def test_bad_opponents_are_refused(kuhn):
    with pytest.raises(ValueError, match="opponents"):
        learn_compiled.learn_response(kuhn, 0, [])
    uniform = behaviour(kuhn, "uniform", 1)
    with pytest.raises(ValueError, match="rounds"):
        learn_compiled.learn_response(kuhn, 0, [Stage("uniform", uniform, 0)])
    with pytest.raises(ValueError, match="behaviour"):
        learn_compiled.learn_response(kuhn, 0, [Stage("half", uniform / 2, 1)])


def _without_observer():
    """A game in Python that promises tensors and has no observer to make them."""
    rules = {(): Node(0, (0, 1), ("start", "start"))}
    return MadeGame(lambda path: rules.get(path, Node(TERMINAL)), "blind", tensor=True)


def test_what_is_missing_is_named(kuhn, monkeypatch):
    game = pyspiel.load_game("tic_tac_toe")
    with pytest.raises(ValueError, match="information_state_tensor"):
        network.NetworkPriorAndValue(game, None, network.Scale(0.0, 1.0))
    with pytest.raises(ValueError, match="gives none .*give the game a make_py_obs"):
        network.check_tensor(_without_observer())
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"pip install 'spiel_cr\[deep\]'"):
        run(kuhn, 1)
