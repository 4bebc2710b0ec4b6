"""Files of networks: the documented layout, and the examples that load them."""

import functools
import json

import numpy as np
import pytest

import spiel_cr
from tests.project import pages

PAGE = pages.ROOT / "docs/how-to/networks.md"
# Tolerances of float32 probabilities: the libraries sum in other orders.
CLOSE = {"rtol": 0, "atol": 1e-6}


@functools.cache
def trained(form="auto"):
    options = spiel_cr.GameOptions(form)
    algorithm = "mmd(hidden=16,layers=2,episodes=32,schedule=2000)"
    return spiel_cr.solve("kuhn_poker", algorithm, 4, options=options)


def decisions(game):
    """Generate all states at which a player acts."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if state.current_player() >= 0:
            yield state
        stack += [state.child(action) for action in state.legal_actions()]


def by_hand(arrays, state):
    """Compute probabilities from the documented layout with numpy in float64."""
    player = state.current_player()
    hidden = np.array(state.information_state_tensor(player), float)
    count = sum(name.startswith(f"player{player}_") for name in arrays) // 2
    for k in range(count):
        bias, kernel = (arrays[f"player{player}_{2 * k + n}"] for n in (0, 1))
        hidden = hidden @ kernel + bias
        if k < count - 1:
            hidden = np.maximum(hidden, 0)
    shares = np.exp(hidden[state.legal_actions()])
    return shares / shares.sum()


@pytest.mark.parametrize("form", ["auto", "simulator"])
def test_file_has_the_documented_layout(form, tmp_path):
    result, path = trained(form), tmp_path / "network.npz"
    result.save_network(path)
    arrays = np.load(path, allow_pickle=False)
    facts = json.loads(bytes(arrays["metadata"]))
    assert facts["kind"] == "deep policy" and facts["average"] == "network"
    assert facts["features"] == "information_state"
    assert facts["shape"] == {"features": 11, "actions": 2, "hidden": 16, "layers": 2}
    assert facts["algorithm"] == result.algorithm
    policies = result.average_policy(), spiel_cr.load_policy(path)
    spread = []
    for state in decisions(result.game):
        expected = by_hand(arrays, state)
        spread.append(expected[0])
        for policy in policies:
            found = list(policy.action_probabilities(state).values())
            np.testing.assert_allclose(found, expected, **CLOSE)
    assert np.ptp(spread) > 0.01


def test_arrays_of_ensembles_have_a_leading_axis(tmp_path):
    algorithm = "sd-cfr(traversals=16,steps=4,batch=64,hidden=8,layers=1)"
    result, path = spiel_cr.solve("kuhn_poker", algorithm, 3), tmp_path / "network.npz"
    result.save_network(path)
    arrays = np.load(path, allow_pickle=False)
    assert arrays["player1_1"].shape == (3, 11, 8) and len(arrays["weights1"]) == 3
    policy = spiel_cr.load_policy(path)
    for state in decisions(result.game):
        expected = result.average_policy().action_probabilities(state)
        assert policy.action_probabilities(state) == pytest.approx(expected, abs=1e-6)


def test_results_without_networks_cannot_save_them(tmp_path):
    for algorithm in ("cfr+", "sd-cfr(network=table,traversals=8,steps=2)"):
        result = spiel_cr.solve("kuhn_poker", algorithm, 1)
        with pytest.raises(ValueError, match="has no networks; use a deep algorithm"):
            result.save_network(tmp_path / "network.npz")
    assert not (tmp_path / "network.npz").exists()


@pytest.mark.parametrize("library", ["torch", "flax"])
def test_documented_examples_compute_the_same_probabilities(
    library, tmp_path, monkeypatch
):
    """Every decision of player 0 has the probabilities that spiel_cr computes."""
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    result = trained()
    result.save_network("kuhn.npz")
    (text,) = (
        block.text
        for block in pages.blocks(PAGE, "py")
        if f"import {library}" in block.text
    )
    assert len([line for line in text.splitlines() if line]) <= 12
    worst = 0.0
    for state in decisions(result.game):
        if state.current_player() == 0:
            names = {"state": state}
            exec(text, names)
            expected = result.average_policy().action_probabilities(state)
            gap = np.subtract(names["probabilities"], list(expected.values()))
            worst = max(worst, float(np.abs(gap).max()))
    print(f"{library}: largest difference of a probability {worst:.2e}")
    assert worst < 1e-6
