"""Policies of networks: probabilities, files and bots."""

import dataclasses
import functools
import re
import types

import numpy as np
import pytest

import spiel_cr
from spiel_cr import load_bot, load_policy
from spiel_cr.common import networks, storage
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.games.opening import batched_rules
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies.queries import query
from spiel_cr.solvers.deep.averages import Networks
from spiel_cr.solvers.deep.deep_config import PRESETS
from spiel_cr.solvers.deep.infosets import TreeKnowledge
from spiel_cr.solvers.deep.network_policy import (
    DeepPolicy,
    check_file,
    load_deep_policy,
)
from spiel_cr.solvers.deep.outputs import PerceptronShape, softmax
from spiel_cr.solvers.deep.strategies import behaviour_of
from tests.support import games
from tests.support.named_opponents import load_opponent

ITERATES = 4
WEIGHTS = np.array([1.0, 2.0, 0.5, 4.0])


@functools.cache
def knowledge() -> TreeKnowledge:
    return TreeKnowledge(games.compiled("kuhn"))


@functools.cache
def shape() -> PerceptronShape:
    return PerceptronShape(knowledge().num_features, knowledge().num_actions, 4, 1)


def leaves(seed: int, factor: float = 30.0) -> list[np.ndarray]:
    """Return the parameters of a network whose policy is far from uniform."""
    return [
        factor * leaf for leaf in networks.leaves(networks.make(shape().widths, seed))
    ]


@functools.cache
def ensemble() -> Networks:
    """Return iterates of both players, of which the first has not been fitted."""
    stacked = []
    for player in range(2):
        each = [leaves(10 * player + t) for t in range(ITERATES)]
        each[0] = [np.zeros_like(leaf) for leaf in each[0]]
        stacked.append([np.stack(own) for own in zip(*each, strict=True)])
    return Networks(
        *(shape(), "information_state", "argmax"),
        *((stacked[0], stacked[1]), (WEIGHTS, WEIGHTS[::-1].copy())),
    )


def network() -> Networks:
    """Return networks of both players; player 1's is zero, so it plays uniformly."""
    return Networks.single(shape(), "information_state", (leaves(1), leaves(1, 0.0)))


def game():
    return games.compiled("kuhn").game


def test_ensemble_plays_the_mixture_of_its_iterates():
    """Probabilities equal those of the iterates' sequence forms, mixed by weight."""
    policy = DeepPolicy(game(), ensemble())
    played = query(games.compiled("kuhn"), policy)
    config = dataclasses.replace(PRESETS["sd-cfr"], hidden=4, layers=1)
    for player in range(2):
        expected = behaviour_of(ensemble(), knowledge(), player, config)
        # Networks compute in float32.
        np.testing.assert_allclose(played[player], expected, atol=1e-6)
    assert [len(own) for own in policy.average.weights] == [ITERATES, ITERATES]
    # The iterates differ, so weights that ignore the reach would give other results.
    assert np.ptp(ensemble().leaves[0][1], axis=0).max() > 1


def test_network_policy_is_the_softmax_of_its_outputs():
    policy = DeepPolicy(game(), network())
    state = game().new_initial_state()
    for card in (1, 2):
        state.apply_action(card)
    tensor = np.array([state.information_state_tensor(0)], np.float32)
    found = networks.evaluate(networks.assembled(leaves(1)), tensor)
    expected = softmax(found, np.ones((1, 2), bool))[0]
    given = policy.action_probabilities(state)
    np.testing.assert_allclose([given[0], given[1]], expected, atol=1e-6)
    assert policy.action_probabilities(state, 0) == given
    # Player 1's network plays uniformly.
    state.apply_action(0)
    assert policy.action_probabilities(state) == {0: 0.5, 1: 0.5}
    with pytest.raises(ValueError, match="player_id=0: .* player 1 acts"):
        policy.action_probabilities(state, 0)
    state.apply_action(0)
    with pytest.raises(ValueError, match="query the acting player"):
        policy.action_probabilities(state)


@pytest.mark.parametrize("make", [ensemble, network])
def test_saved_network_policies_can_be_loaded(tmp_path, make):
    path, average = tmp_path / "deep.npz", make()
    DeepPolicy(game(), average).save(path, {"algorithm": "sd-cfr"})
    assert storage.load_metadata(path)["algorithm"] == "sd-cfr"
    expected = query(games.compiled("kuhn"), DeepPolicy(game(), average))
    for policy in (
        load_deep_policy(path),
        load_policy(path, games.compiled("kuhn")),
        load_opponent(f"deep(path={path})", "kuhn_poker"),
        load_opponent(str(path), "kuhn_poker"),
    ):
        assert isinstance(policy, DeepPolicy)
        found = query(games.compiled("kuhn"), policy)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ValueError, match="policy of kuhn_poker.* was given for leduc"):
        load_deep_policy(path, "leduc_poker")
    kuhn = games.compiled("kuhn").game
    assert read_string(f"deep(path={path})").bots_behind(kuhn, 0) is None


def test_rejects_tables_and_files_of_another_kind(tmp_path):
    path = tmp_path / "table.npz"
    tables = dataclasses.replace(ensemble(), shape=None)
    with pytest.raises(ValueError, match="are tables, not networks"):
        DeepPolicy(game(), tables)
    storage.save(path, {"player0": np.ones(3)}, {"kind": "tree policy"})
    for refuse in (check_file, load_deep_policy):
        with pytest.raises(
            ValueError, match="holds a tree policy, not a policy of netw"
        ):
            refuse(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, m: m["shape"].update(hidden=0), "networks have the shape"),
        (lambda a, m: m["shape"].update(hidden=9), "arrays of the shapes"),
        # A network of that shape would take a terabyte.
        (lambda a, m: m["shape"].update(hidden=65536, layers=64), "hidden=65536"),
        (lambda a, m: m.update(features="none"), "features 'none'"),
        (lambda a, m: m.update(fallback="best"), "fallback is 'best'"),
        (lambda a, m: a.pop("weights1"), "weights of player 1"),
        (lambda a, m: a["weights0"].fill(np.nan), "weights of player 0"),
        (lambda a, m: a["player1_0"].fill(np.inf), "player1_0 contains values"),
        (lambda a, m: a.pop("player0_1"), "arrays of the shapes"),
    ],
)
def test_rejects_corrupt_files(tmp_path, change, words):
    path = tmp_path / "deep.npz"
    DeepPolicy(game(), ensemble()).save(path, {})
    arrays, metadata = storage.load(path)
    change(arrays, metadata)
    storage.save(path, arrays, metadata)
    with pytest.raises(CorruptFileError, match=re.escape(words)):
        check_file(path)
    with pytest.raises(CorruptFileError, match=re.escape(words)):
        load_deep_policy(path)


def test_rejects_networks_of_another_game():
    other = games.compiled("leduc7").game
    with pytest.raises(ValueError, match="use the game for which they were trained"):
        DeepPolicy(other, network())


def test_deep_bot_requires_a_file():
    with pytest.raises(ValueError, match="bot='deep' needs a file"):
        load_bot("kuhn_poker", "deep", 0)


def test_network_probabilities_of_batched_states_equal_single_states():
    """All decisions of II-goofspiel with three cards are compared."""
    loaded = spiel_cr.load_game("python_ii_goofspiel(num_cards=3)")
    rules = batched_rules.of_game(loaded)
    size = loaded.information_state_tensor_size()
    wide = PerceptronShape(size, 3, 4, 1)
    own = [
        [30 * x for x in networks.leaves(networks.make(wide.widths, seed))]
        for seed in (1, 2)
    ]
    average = Networks.single(wide, "information_state", own)
    policy = DeepPolicy(loaded, average)
    pairs = [(loaded.new_initial_state(), rules.new_initial_states())]
    num_queries = 0
    while pairs:
        state, rows = pairs.pop()
        if state.is_terminal():
            continue
        player = state.current_player()
        found = policy.array_probabilities(rules, rows, player)[0]
        for action, share in policy.action_probabilities(state).items():
            assert found[action] == pytest.approx(share, abs=1e-6)
            pairs.append((state.child(action), rules.child(rows, np.array([action]))))
        assert found.sum() == pytest.approx(1)
        num_queries += 1
    assert num_queries > 50
    rules.information_state_tensor = None
    with pytest.raises(
        ValueError, match="information_state tensors, which its batched rules"
    ):
        policy.array_probabilities(rules, rules.new_initial_states(), 0)


def test_ensembles_reject_batched_states():
    rules = types.SimpleNamespace(information_state_tensor=lambda *_: None)
    with pytest.raises(ValueError, match="mixture depends on earlier actions"):
        DeepPolicy(game(), ensemble()).array_probabilities(rules, np.zeros((1, 2)), 0)
