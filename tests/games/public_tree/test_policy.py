"""Policies of public-tree games: queries by OpenSpiel's tools, and files."""

import dataclasses

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

from spiel_cr.common.errors import CorruptFileError
from spiel_cr.policies import conversions
from spiel_cr.policies.behaviour_files import read_policy, save_behaviours
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import node_probabilities
from spiel_cr.policies.queries import query
from tests.support import games
from tests.support.kuhn_public_tree import BET, PASS, kuhn

# Kuhn 1950, with alpha = 0.2: rows are cards, columns pass and bet.
_FIRST = {"": (0.2, 0, 0.6), "pb": (0, 0.2 + 1 / 3, 1)}
_SECOND = {"p": (1 / 3, 0, 1), "b": (0, 1 / 3, 1)}


def equilibrium(dtype=np.float64):
    """Return Kuhn's equilibrium, by public node and card."""
    found = []
    for nodes in (_FIRST, _SECOND):
        bets = np.concatenate([np.array(row, dtype) for row in nodes.values()])
        both = np.stack([1 - bets, bets], axis=1).reshape(-1)
        found.append(np.concatenate([np.ones(1, dtype), both]))
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_openspiel_gives_nash_conv_zero_for_the_equilibrium(dtype):
    """OpenSpiel queries the policy at each state."""
    policy = FormPolicy(kuhn(), equilibrium(dtype))
    found = exploitability.nash_conv(pyspiel.load_game("kuhn_poker"), policy)
    assert abs(found) < (1e-12 if dtype is np.float64 else 1e-6)


def test_policy_equals_the_tabular_policy_of_the_game_tree():
    tree, policy = games.compiled("kuhn"), FormPolicy(kuhn(), equilibrium())
    behaviour = query(tree, policy)
    table = conversions.tabular_policy(tree, behaviour)
    state = tree.game.new_initial_state()
    for action in (2, 0, PASS, BET):  # a king that checks, and is bet into
        state.apply_action(action)
    assert policy.action_probabilities(state, 0) == {PASS: 0.0, BET: 1.0}
    assert policy.action_probabilities(state) == table.action_probabilities(state)
    # Rows are cards, independent of the indices in the game tree.
    bets = node_probabilities(policy, policy.form.betting.node_after([PASS]))[:, BET]
    assert np.allclose(bets, _SECOND["p"], atol=1e-15)


def test_rejects_states_of_other_games_and_players():
    policy = FormPolicy(kuhn(), equilibrium())
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    with pytest.raises(ValueError, match="query the acting player"):
        policy.action_probabilities(state)
    state.apply_action(0)
    state.apply_action(1)
    with pytest.raises(ValueError, match="player_id=1"):
        policy.action_probabilities(state, 1)
    other = pyspiel.load_game("leduc_poker").new_initial_state()
    other.apply_action(0)
    other.apply_action(1)
    with pytest.raises(ValueError, match="give a state of kuhn_poker"):
        policy.action_probabilities(other)


def test_public_nodes_are_found_by_actions():
    betting = kuhn().betting
    for node in range(len(betting)):
        assert kuhn().betting.node_after(betting.path(node)) == node
    assert betting.actions(0) == [PASS, BET] and betting.actions(3) == []
    with pytest.raises(ValueError, match="after the players' actions \\[1\\]"):
        kuhn().betting.node_after([BET, 2])


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_rejects_invalid_strategies_with_the_infoset_name(monkeypatch, chunk):
    monkeypatch.setattr("spiel_cr.policies.conversions._CHUNK", chunk)
    FormPolicy(kuhn(), equilibrium())
    wrong = equilibrium()
    wrong[0][1 + 6 + 2] += 0.25  # after pass and bet, with a queen
    where = "at the infoset '0 1: Q'"
    with pytest.raises(ValueError, match=where):
        FormPolicy(kuhn(), wrong)
    wrong = equilibrium()
    wrong[0][1 + 6 + 2 :][:2] = [np.nan, 0.5]
    with pytest.raises(ValueError, match=where):
        FormPolicy(kuhn(), wrong)
    wrong[0][1 + 6 + 2 :][:2] = [-1, 2]
    with pytest.raises(ValueError, match=where):
        FormPolicy(kuhn(), wrong)
    with pytest.raises(ValueError, match="has shape"):
        FormPolicy(kuhn(), [wrong[0][:-1], wrong[1]])
    with pytest.raises(ValueError, match="empty sequence"):
        FormPolicy(kuhn(), [0 * wrong[0], wrong[1]])
    with pytest.raises(ValueError, match="1 arrays were given; give two"):
        FormPolicy(kuhn(), equilibrium()[:1])
    with pytest.raises(ValueError, match="player 0 is of type list"):
        FormPolicy(kuhn(), [own.tolist() for own in equilibrium()])


@pytest.mark.parametrize("node", [9, -1, -10, 1.5, None])
def test_rejects_invalid_nodes(node):
    policy = FormPolicy(kuhn(), equilibrium())
    assert node_probabilities(policy, np.int32(0)).shape == (3, 2)
    with pytest.raises(ValueError, match="must be a whole number from 0 to 8"):
        node_probabilities(policy, node)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_saved_policies_are_bitwise_identical(tmp_path, dtype):
    path = tmp_path / "kuhn.npz"
    policy = FormPolicy(kuhn(), equilibrium(dtype))
    save_behaviours(path, kuhn(), policy.behaviour, {"algorithm": "by hand"})
    again = read_policy(path, kuhn())
    for mine, found in zip(policy.behaviour, again.behaviour, strict=True):
        assert mine.dtype == found.dtype and (mine == found).all()


def test_rejects_files_of_other_games_and_corrupt_files(tmp_path):
    path = tmp_path / "kuhn.npz"
    save_behaviours(path, kuhn(), equilibrium(), {})
    # Policies do not depend on payoffs, but they depend on private states.
    terms = kuhn().terms
    paid = dataclasses.replace(kuhn(), terms=terms._replace(stake=2 * terms.stake))
    assert read_policy(path, paid).form is paid
    parents = tuple((own[0][:2], *own[1:]) for own in kuhn().parents)
    other = dataclasses.replace(kuhn(), parents=parents)
    with pytest.raises(ValueError, match="policy of kuhn_poker.* was given for"):
        read_policy(path, other)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError):
        read_policy(path, kuhn())
