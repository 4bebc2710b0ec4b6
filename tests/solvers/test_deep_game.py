"""`solve` with networks: checkpoints, forms of games, and rejected options."""

import sys

import numpy as np
import pytest

import spiel_cr
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.solvers import algorithms, representation
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.network_policy import load_deep_policy
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from tests.support import games, made_games
from tests.support.solving import solve_with

# Settings with little work and few compiled functions.
SMALL = "sd-cfr(traversals=16,steps=4,batch=64,hidden=8,layers=1)"


def test_resumed_run_is_bitwise_identical(tmp_path):
    kuhn = games.compiled("kuhn")
    whole = spiel_cr.solve(kuhn, SMALL, spiel_cr.Goal(4, eval_every=2), seed=3)
    path = tmp_path / "state.npz"
    spiel_cr.solve(kuhn, SMALL, spiel_cr.Goal(2, eval_every=2), checkpoint=path, seed=3)
    resumed = spiel_cr.solve(
        kuhn, SMALL, spiel_cr.Goal(4, eval_every=2), checkpoint=path, seed=3
    )
    assert whole.tree is kuhn
    for player in range(2):
        np.testing.assert_array_equal(whole.average[player], resumed.average[player])
    curves = [[(p.iterations, p.nash_conv) for p in r.curve] for r in (whole, resumed)]
    assert curves[0] == curves[1] and [n for n, _ in curves[0]] == [2, 4]
    assert curves[0][1][1] == whole.nash_conv()
    assert (whole.iterations, whole.trajectories) == (4, 2 * 4 * 16)
    # Another seed gives another result, and the checkpoint rejects other settings.
    other = spiel_cr.solve(kuhn, SMALL, 4, seed=4)
    assert any((whole.average[p] != other.average[p]).any() for p in range(2))
    with pytest.raises(ValueError, match="more than iterations=3"):
        spiel_cr.solve(kuhn, SMALL, 3, checkpoint=path, seed=3)
    with pytest.raises(ValueError, match="is a checkpoint with seed 3"):
        spiel_cr.solve(kuhn, SMALL, 5, checkpoint=path, seed=5)
    with pytest.raises(ValueError, match="is a checkpoint with algorithm"):
        spiel_cr.solve(kuhn, f"{SMALL[:-1]},ensemble=2)", 5, checkpoint=path, seed=3)


def test_solves_a_simulated_game(tmp_path):
    paths = tmp_path / "state.npz", tmp_path / "policy.npz"
    found = spiel_cr.solve(
        "kuhn_poker",
        SMALL,
        2,
        options=spiel_cr.GameOptions("simulator"),
        checkpoint=paths[0],
        seed=1,
    )
    assert found.tree is None and found.average is None and found.form is None
    with pytest.raises(ValueError, match="was simulated, so exact"):
        found.nash_conv()
    assert (found.iterations, found.trajectories) == (2, 64)
    found.save(paths[1])
    state = found.game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    expected = found.average_policy().action_probabilities(state)
    assert load_deep_policy(paths[1]).action_probabilities(state) == expected
    # A checkpoint of a simulated game cannot be resumed with a game tree.
    with pytest.raises(ValueError, match="is of a simulated game"):
        solve_with(
            "kuhn_poker", SMALL, 3, form="tree", checkpoint_path=paths[0], seed=1
        )


def test_error_in_an_iteration_does_not_change_the_checkpoint(tmp_path, monkeypatch):
    path, kuhn = tmp_path / "state.npz", games.compiled("kuhn")
    spiel_cr.solve(kuhn, SMALL, 1, checkpoint=path)
    before = path.read_bytes()

    def fail(self):
        raise RuntimeError("half of it")

    monkeypatch.setattr(DeepSolver, "_iterate", fail)
    with pytest.raises(RuntimeError, match="half"):
        spiel_cr.solve(kuhn, SMALL, 2, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("solver", "algorithm"),
    [(DeepSolver, SMALL), (SelfPlay, "mmd(network=table,episodes=8)")],
)
def test_error_in_the_first_iteration_leaves_no_checkpoint(
    tmp_path, monkeypatch, solver, algorithm
):
    def fail(self):
        raise RuntimeError("half of it")

    monkeypatch.setattr(solver, "_iterate", fail)
    path = tmp_path / "state.npz"
    with pytest.raises(RuntimeError, match="half"):
        spiel_cr.solve(games.compiled("kuhn"), algorithm, 2, checkpoint=path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": np.float32}, "trains networks and does not support"),
        ({"imperfect_recall": True}, "imperfect_recall=True: algorithm="),
        ({"form": "public-tree"}, "form='public-tree': algorithm="),
        ({"iterations": 0}, "iterations=0 must be a whole number"),
        ({"until": -1.0}, "until=-1.0 must be"),
        ({"seed": -1}, "seed=-1"),
        ({"algorithm": "sd-cfr(speed=1)"}, "unknown parameter 'speed'"),
    ],
)
def test_rejects_invalid_options_before_any_work(options, words):
    with pytest.raises(ValueError, match=words):
        solve_with("no_game", **{"algorithm": "sd-cfr", **options})


def test_rejects_missing_tensors_and_optax_before_building_a_tree(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("compiled")

    monkeypatch.setattr(representation, "build_tree", fail)
    with pytest.raises(ValueError, match="offers no observation_tensor"):
        config = f"{SMALL[:-1]},features=observation)"
        spiel_cr.solve(made_games.random_game(1), config, 1)
    # An import of None fails.
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match="networks need optax"):
        spiel_cr.solve("kuhn_poker", SMALL, 1)


def test_rejects_options_that_need_a_game_tree():
    never = {"form": "simulator"}
    with pytest.raises(ValueError, match="memory=exact requires a game tree"):
        solve_with("kuhn_poker", "sd-cfr(memory=exact)", 1, **never)
    for name, value in (("until", 0.1), ("eval_every", 2)):
        with pytest.raises(ValueError, match=f"{name}=.* needs the game tree"):
            solve_with("kuhn_poker", SMALL, 1, **{name: value}, **never)
    with pytest.raises(ValueError, match="which the public-tree form .* does not have"):
        spiel_cr.solve(public_tree_game("python_leduc_poker"), SMALL, 1)


def test_algorithm_names_map_to_families():
    def family(text):
        return algorithms.find(text).family.name

    assert family("sd-cfr") == family(" dream(hidden=2)") == "deep"
    assert (
        family("mmd") == family(algorithms.find("mmd(trace=1)").config) == "self-play"
    )
    families = [family(text) for text in ("cfr", "lp", "es-mccfr")]
    assert families == ["full-width", "exact", "sampled"]
