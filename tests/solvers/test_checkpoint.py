"""Checkpoints: resumed runs, and rejection of corrupt files and of other runs."""

import errno
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import spiel_cr
from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError, FileInUseError, UnsavedWarning
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers import checkpoint
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.iterative_solver import settings_text
from tests.support import games
from tests.support.solving import assert_same, solve_with

ROOT = pathlib.Path(__file__).parents[2]
PLAYERS = (0, 1)

_SOLVE = """
import sys, spiel_cr
game, algorithm, form, path = sys.argv[1:]
spiel_cr.solve(game, algorithm, 200_000, seed=5, options=spiel_cr.GameOptions(form),
               checkpoint=spiel_cr.Checkpoint(path, 0.2))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        ("leduc_poker", "pcfr+", "tree"),
        ("phantom_ttt", "vr-mccfr(batch=256)", "simulator"),
    ],
)
def test_killed_run_resumes_bitwise_identically(tmp_path, how):
    path = tmp_path / "new" / "checkpoint"
    words = [sys.executable, "-c", _SOLVE, *how, path]
    process = subprocess.Popen(words, cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    _, metadata = storage.load(path)
    done = metadata["iterations"]
    assert 0 < done < 200_000
    assert metadata["versions"] == storage.versions()
    more = 1000 if how[2] == "tree" else 20
    resumed, expected = (
        solve_with(*(*how[:2], done + more), form=how[2], seed=5, checkpoint_path=place)
        for place in (path, None)
    )
    if how[2] == "tree":
        assert_same(resumed, expected)
    else:
        tables = [r.average_policy().strategy for r in (resumed, expected)]
        np.testing.assert_array_equal(tables[0].probability, tables[1].probability)
    assert resumed.seconds > metadata["seconds"] > 0
    assert storage.load(path)[1]["iterations"] == done + more


def test_resumed_run_with_until_stops_at_the_same_iteration(tmp_path):
    """Repeating a run that is complete gives the same result again."""
    compiled, path = games.compiled("kuhn"), tmp_path / "checkpoint"
    expected = spiel_cr.solve(compiled, "pcfr+", spiel_cr.Goal(until=0.01))
    spiel_cr.solve(compiled, "pcfr+", 17, checkpoint=path)
    for _ in range(2):
        resumed = spiel_cr.solve(
            compiled, "pcfr+", spiel_cr.Goal(until=0.01), checkpoint=path
        )
        assert_same(resumed, expected)


def test_resumed_run_keeps_earlier_points_of_the_curve(tmp_path):
    """The curve equals that of an uninterrupted run, except for seconds."""
    compiled, path = games.compiled("kuhn"), tmp_path / "checkpoint"
    whole = spiel_cr.solve(compiled, "cfr+", spiel_cr.Goal(60, eval_every=20))
    spiel_cr.solve(compiled, "cfr+", spiel_cr.Goal(40, eval_every=20), checkpoint=path)
    resumed = spiel_cr.solve(
        compiled, "cfr+", spiel_cr.Goal(60, eval_every=20), checkpoint=path
    )
    points = [[(p.iterations, p.nash_conv) for p in r.curve] for r in (whole, resumed)]
    assert points[0] == points[1] and len(points[0]) == 3


def test_keyboard_interrupt_writes_the_current_state(tmp_path, monkeypatch):
    compiled, path = games.compiled("kuhn"), tmp_path / "checkpoint"

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Solver, "nash_conv", interrupt)
        with pytest.raises(KeyboardInterrupt):
            goal = spiel_cr.Goal(eval_every=40)
            spiel_cr.solve(compiled, "cfr+", goal, checkpoint=path)
    assert storage.load(path)[1]["iterations"] == 40
    resumed = spiel_cr.solve(compiled, "cfr+", 90, checkpoint=path)
    assert_same(resumed, spiel_cr.solve(compiled, "cfr+", 90))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Return a checkpoint of 20 iterations of cfr+ on Kuhn poker, as bytes."""
    path = tmp_path_factory.mktemp("checkpoint") / "checkpoint"
    spiel_cr.solve(games.compiled("kuhn"), "cfr+", 20, checkpoint=path)
    return path.read_bytes()


@pytest.fixture
def written(tmp_path, content):
    """Write `content` to a file and return its path."""
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "name,arguments,what",
    [
        ("leduc7", {}, "game"),
        ("kuhn", {"algorithm": "cfr"}, "algorithm"),
        ("kuhn", {"algorithm": "dcfr(alpha=1.25)"}, "algorithm"),
        ("kuhn", {"dtype": "float32"}, "dtype"),
        ("kuhn", {"iterations": 19}, "20 iterations already"),
    ],
)
def test_checkpoint_rejects_a_run_with_other_settings(written, name, arguments, what):
    content = written.read_bytes()
    with pytest.raises(ValueError, match=f"checkpoint.*{what}"):
        solve_with(games.compiled(name), checkpoint_path=written, **arguments)
    assert written.read_bytes() == content


def test_rejects_a_policy_file_as_checkpoint(tmp_path):
    path, compiled = tmp_path / "policy", games.compiled("kuhn")
    spiel_cr.solve(compiled, goal=5).save(path)
    with pytest.raises(ValueError, match="kind 'tree policy'"):
        spiel_cr.solve(compiled, checkpoint=path)


def test_rejects_a_checkpoint_as_policy(written):
    with pytest.raises(ValueError, match="holds a checkpoint"):
        spiel_cr.load_policy(written)


@pytest.mark.parametrize("keep", [0, 100, 0.5, -1])
def test_rejects_truncated_checkpoints(written, keep):
    content = written.read_bytes()
    length = int(keep * len(content)) if isinstance(keep, float) else keep
    written.write_bytes(content[:length])
    with pytest.raises(ValueError, match="corrupt"):
        spiel_cr.solve(games.compiled("kuhn"), "cfr+", checkpoint=written)


@pytest.mark.parametrize("missing", ["first", "last", "all"])
def test_rejects_checkpoints_with_missing_arrays(written, missing):
    arrays, metadata = storage.load(written)
    names = {"first": ["leaf0"], "last": [f"leaf{len(arrays) - 1}"], "all": [*arrays]}
    left = {name: a for name, a in arrays.items() if name not in names[missing]}
    storage.save(written, left, metadata)
    with pytest.raises(ValueError, match=re.escape(str(written))):
        spiel_cr.solve(games.compiled("kuhn"), "cfr+", checkpoint=written)


def test_rejects_a_checkpoint_with_a_flipped_bit(written):
    content = bytearray(written.read_bytes())
    arrays, _ = storage.load(written)
    largest = max(arrays.values(), key=lambda array: array.nbytes)
    content[content.find(largest.tobytes()) + 7] ^= 0x40
    written.write_bytes(content)
    with pytest.raises(ValueError, match="corrupt"):
        spiel_cr.solve(games.compiled("kuhn"), "cfr+", checkpoint=written)


_POINT = [20, 0.5, 0.01]


@pytest.fixture(scope="module")
def solver():
    return cfr.make_solver(
        games.compiled("kuhn").sequence_form, config=find("cfr+").config
    )


def keeper_of(solver, path):
    """Return the object that reads and writes checkpoints of a Kuhn poker solver."""
    tree = games.compiled("kuhn")
    solver.solved = SolvedForm(tree, tree.sequence_form)
    identity = {"kind": "checkpoint", **solver.identity()}
    return checkpoint.Keeper(path, identity, solver, 60)


@pytest.mark.parametrize(
    "name,value",
    [
        *(("iterations", value) for value in (-1, True, 20.0, "20", None, 19, 10**30)),
        *(("seconds", value) for value in (-1, "1", None, float("nan"), [])),
        *(("curve", value) for value in (None, {}, [7], [_POINT[:2]], ["abc"])),
        *(("curve", [[*_POINT[:i], "x", *_POINT[i + 1 :]]]) for i in range(3)),
        *(("iterations", ...), ("seconds", ...), ("curve", ...)),
    ],
)
def test_rejects_checkpoints_with_invalid_metadata(written, solver, name, value):
    """The checksum is valid, and the curve of the run does not change."""
    arrays, metadata = storage.load(written)
    metadata.pop(name)
    storage.save(written, arrays, metadata | ({name: value} if value != ... else {}))
    keeper = keeper_of(solver, written)
    with pytest.raises(CorruptFileError, match=f"{written} is a corrupt.*{name}"):
        keeper.resume()
    assert keeper.curve == []


def test_error_names_a_file_that_is_not_a_checkpoint(tmp_path, solver):
    path = tmp_path / "text.npz"
    path.write_text("some text\n")
    keeper = keeper_of(solver, path)
    with pytest.raises(CorruptFileError, match=f"^checkpoint {path} is not a file"):
        keeper.resume()


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("regrets", np.nan, "not finite"),
        ("average", np.inf, "not finite"),
        ("average", -0.5, "negative average"),
        ("strategy", -0.5, "probabilities"),
        ("reach", 2.0, "probabilities"),
        ("iteration", -1, "iteration=-1"),
    ],
)
def test_solver_rejects_invalid_states(solver, field, value, what):
    """If `restore` raises an error, the solver keeps its own state."""
    state = jax.tree.map(np.array, solver.state)
    at_player = field in state.players[1]._fields
    changed = jax.tree.leaves(getattr(state.players[1] if at_player else state, field))
    changed[-1].reshape(-1)[-1:] = value
    before = jax.tree.leaves(solver.state)
    with pytest.raises(ValueError, match=f"the state.*{what}"):
        leaves = enumerate(jax.tree.leaves(state))
        solver.restore({f"leaf{i}": leaf for i, leaf in leaves}, seconds=1.0)
    for leaf, old in zip(jax.tree.leaves(solver.state), before, strict=True):
        assert leaf is old


def test_rejects_a_checkpoint_in_use_by_another_run(written):
    """The error is raised before the game is loaded."""
    with (
        atomic.lock(written),
        pytest.raises(FileInUseError, match="checkpoint_path=.*in use by another run"),
    ):
        spiel_cr.solve("no_such_game", checkpoint=written)


def test_rejects_a_checkpoint_that_is_not_a_regular_file(tmp_path):
    """The error is raised before the game is loaded."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="checkpoint_path=.*is a FIFO"):
        spiel_cr.solve("no_such_game", checkpoint=tmp_path / "pipe")


def test_full_disk_warns_and_does_not_lose_the_result(written, content, monkeypatch):
    compiled = games.compiled("kuhn")
    expected = spiel_cr.solve(compiled, "cfr+", 30)

    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.np, "savez", full)
    with pytest.warns(UnsavedWarning, match=f"No space left on device: '{written}'"):
        result = spiel_cr.solve(compiled, "cfr+", 30, checkpoint=written)
    assert_same(result, expected)
    assert written.read_bytes() == content


@pytest.mark.parametrize("every", [0, -1, float("nan")])
def test_rejects_invalid_checkpoint_every(tmp_path, every):
    with pytest.raises(ValueError, match="checkpoint_every"):
        spiel_cr.solve(
            games.compiled("kuhn"),
            checkpoint=spiel_cr.Checkpoint(tmp_path / "checkpoint", every),
        )
    assert list(tmp_path.iterdir()) == []


def test_interrupt_waits_until_the_final_checkpoint_is_written(tmp_path, monkeypatch):
    write, path = checkpoint.Keeper.write, tmp_path / "state.npz"

    def disturbed(keeper):
        signal.raise_signal(signal.SIGINT)
        write(keeper)

    monkeypatch.setattr(checkpoint.Keeper, "write", disturbed)
    with pytest.raises(KeyboardInterrupt):
        spiel_cr.solve("kuhn_poker", "cfr+", 10, checkpoint=path)
    assert storage.load_metadata(path)["iterations"] == 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "dcfr",
            "{'rule': {'alpha': 1.5, 'beta': 0.0, 'predictive': False, "
            "'exploration': 0.0}, 'gamma': 2.0, 'alternating': True}",
        ),
        (
            "sapcfr+",
            "{'rule': {'alpha': inf, 'beta': -inf, 'predictive': True, "
            "'prediction': 0.5, 'exploration': 0.0}, 'gamma': 15.0, "
            "'alternating': True}",
        ),
    ],
)
def test_settings_text_equals_that_of_earlier_versions(name, text):
    """Checkpoints of earlier versions store these texts and must stay valid."""
    assert settings_text(find(name).config) == text
