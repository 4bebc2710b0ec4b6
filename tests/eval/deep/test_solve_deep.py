"""`spiel-cr solve` and `compare` with networks."""

import pytest

from spiel_cr.eval.adapters import registry
from spiel_cr.eval.common.game_instance import GameInstance, MissingError
from spiel_cr.solvers.deep import deep_footprint
from tests.support.commands import outputs

SMALL = "sd-cfr(traversals=16,steps=4,batch=64,hidden=8,layers=1)"


@pytest.mark.slow
def test_solve_with_networks_on_a_game_tree(tmp_path, capsys):
    saved = tmp_path / "policy.npz"
    words = ["solve", "--game", "kuhn_poker", "--algorithm", SMALL]
    words += ["--iterations", 2, "--eval-every", 1, "--save", saved]
    found, out, _ = outputs(capsys, *words)
    assert found["form"] == "tree" and found["evaluator"] == "openspiel"
    assert [point["iterations"] for point in found["curve"]] == [1, 2]
    assert found["curve"][-1]["nash_conv"] == pytest.approx(found["nash_conv"])
    assert "2 iterations, 64 trajectories" in out and saved.exists()


@pytest.mark.slow
def test_solve_with_networks_without_a_tree_is_resumed(tmp_path, capsys):
    saved, kept = tmp_path / "policy.npz", tmp_path / "state.npz"
    words = ["solve", "--game", "kuhn_poker", "--algorithm", SMALL, "--save", saved]
    words += ["--checkpoint", kept, "--form", "simulator", "--iterations"]
    found, out, _ = outputs(capsys, *words, 2)
    assert found["form"] == "simulator" and found["iterations"] == 2
    assert "no game tree" in out and saved.exists()
    more, _, _ = outputs(capsys, *words, 3)
    assert (more["iterations"], more["trajectories"]) == (3, 96)


@pytest.mark.slow
def test_deep_entry_of_comparisons_is_reproducible():
    entry = registry.find(SMALL)
    assert entry.is_spiel_cr and entry.samples and entry.extra == "deep"
    assert "16 trajectories for each player, all of whose" in entry.how
    adapter = entry.make(GameInstance("kuhn_poker"), 1)
    adapter.run(2)
    first, second = adapter.strategy()
    assert (len(first), len(second)) == (13, 13)
    assert adapter.note.startswith("64 episodes")
    # Compiling the functions has left no state behind.
    again = entry.make(GameInstance("kuhn_poker"), 1)
    again.run(2)
    assert (again.strategy()[0] == first).all()


def test_rejects_unknown_parameters():
    with pytest.raises(ValueError, match="unknown parameter 'speed'"):
        registry.find("dream(speed=2)")


def test_game_without_tensors_is_reported_as_missing(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("offers no information_state_tensor")

    monkeypatch.setattr(deep_footprint, "check_tree", refuse)
    with pytest.raises(MissingError, match="information_state_tensor"):
        registry.find("sd-cfr").make(GameInstance("kuhn_poker"), 0)
