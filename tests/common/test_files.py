"""Policies in files: exact copies, and rejection of other and corrupt files."""

import dataclasses
import hashlib
import io
import zipfile

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.games.tree import tree as tree_lib
from spiel_cr.players import bots
from spiel_cr.policies import rollouts
from spiel_cr.policies.queries import query
from tests.support import games


@pytest.fixture(scope="module")
def kuhn():
    return spiel_cr.solve(games.compiled("kuhn"), "cfr+", 50)


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "matrix_rps"])
@pytest.mark.parametrize("given", ["nothing", "string", "compiled"])
def test_saved_policies_are_loaded_unchanged(tmp_path, name, given):
    compiled = games.compiled(name, observations=False)
    result = spiel_cr.solve(compiled, "cfr+", 20)
    # The folder is created.
    path = tmp_path / "folder" / "policy.npz"
    result.save(path)
    game = {"nothing": None, "string": games.BY_NAME[name].string, "compiled": compiled}
    back, table = spiel_cr.load_policy(path, game[given]), result.average_policy()
    assert back.state_lookup == table.state_lookup
    np.testing.assert_array_equal(
        back.action_probability_array, table.action_probability_array
    )


def test_metadata_of_saved_policies(kuhn, tmp_path):
    kuhn.save(tmp_path / "policy")
    arrays, metadata = storage.load(tmp_path / "policy")
    assert set(arrays) == {"player0", "player1"}
    assert metadata["kind"] == "tree policy"
    assert metadata["game"] == str(kuhn.tree.game)
    assert metadata["algorithm"] == "cfr+"
    assert metadata["iterations"] == 50
    assert metadata["nash_conv"] == kuhn.nash_conv()
    assert {"spiel_cr", "open_spiel", "jax", "numpy"} <= set(metadata["versions"])


@pytest.mark.parametrize("other", ["leduc_poker", "leduc_poker(players=2)", "compiled"])
def test_rejects_policies_of_other_games(kuhn, tmp_path, other):
    kuhn.save(tmp_path / "policy")
    game = games.compiled("leduc7") if other == "compiled" else other
    with pytest.raises(ValueError, match="policy of kuhn_poker"):
        spiel_cr.load_policy(tmp_path / "policy", game)


@pytest.mark.parametrize("at_once", [1, 5, 1 << 14])
def test_game_id_does_not_depend_on_the_chunk_size(at_once, monkeypatch):
    compiled = dataclasses.replace(games.compiled("leduc7"))
    digest = hashlib.sha256()
    for decisions in compiled.sequence_form.decisions:
        digest.update(decisions.parent.tobytes() + decisions.num_actions.tobytes())
    for array in compiled.sequence_form.payoffs:
        digest.update(array.tobytes())
    for infosets in compiled.infosets:
        digest.update("\0".join(infosets.keys).encode())
    monkeypatch.setattr(tree_lib, "_STRINGS_AT_ONCE", at_once)
    assert compiled.game_id == digest.hexdigest()


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_game_id_does_not_store_strings(most, monkeypatch):
    """For many infosets, the id uses some strings, which still distinguish games."""
    monkeypatch.setattr(tree_lib, "_MOST_STRINGS", most)
    monkeypatch.setattr(tree_lib, "_SOME_STRINGS", 7)
    game = "python_leduc_poker"
    compiled = spiel_cr.build_tree(game)
    before = compiled.nbytes
    found = compiled.game_id
    assert compiled.nbytes == before
    # A tree from a walk over states already has strings.
    walked = spiel_cr.build_tree(game, batched_rules=False)
    assert walked.game_id == found
    renamed = dataclasses.replace(
        walked.infosets[1], keys=[f"{key}!" for key in walked.infosets[1].keys]
    )
    other = dataclasses.replace(walked, infosets=(walked.infosets[0], renamed))
    assert other.game_id != found


def test_rejects_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        spiel_cr.load_policy(tmp_path / "nothing")


def test_rejects_folders(tmp_path):
    with pytest.raises(OSError):
        spiel_cr.load_policy(tmp_path)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def other_archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata", "{}")
    return file.getvalue()


def text(json):
    return np.frombuffer(json, np.uint8)


GARBAGE = {
    "empty": b"",
    "text": b"no policy at all\n" * 100,
    "zip magic": b"PK\x03\x04" + bytes(100),
    "other zip": other_archive(),
    "npy": npy(np.arange(3)),
    "no metadata": npz(player0=np.ones(3)),
    "no json": npz(metadata=text(b"{")),
    "no utf-8": npz(metadata=text(b"\xff\xfe")),
    "json list": npz(metadata=text(b"[]")),
    "other kind": npz(metadata=text(b"{}")),
    "only a kind": npz(metadata=text(b'{"kind": "tree policy"}')),
    "objects": npz(player0=np.array([{}], object), metadata=text(b"{}")),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_rejects_files_without_a_policy(tmp_path, content):
    path = tmp_path / "policy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="policy"):
        spiel_cr.load_policy(path)


def test_pickled_objects_are_neither_read_nor_written(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, ("raise SystemExit('unpickled')",))

    bomb = np.array([Bomb()], object)
    path = tmp_path / "bomb"
    path.write_bytes(npz(player0=bomb, metadata=text(b'{"kind": "tree policy"}')))
    with pytest.raises(ValueError, match="corrupt") as error:
        spiel_cr.load_policy(path)
    assert "allow_pickle" not in str(error.value)  # numpy's advice
    with pytest.raises(ValueError, match="'player0' has dtype object"):
        storage.save(tmp_path / "new", {"player0": bomb}, {})
    assert list(tmp_path.iterdir()) == [path]


INVALID_PROBABILITIES = [
    *(float("nan"), float("inf"), -0.5, 0.0, 2.0, 0.999),
    *("0.5", 0.5 + 0.5j),
]


def _with_probability(kuhn, value):
    """Return player 0's strategy with one probability replaced by `value`."""
    first = kuhn.average[0].astype(np.result_type(np.asarray(value), np.float64))
    first[2] = value
    return first


@pytest.mark.parametrize("value", INVALID_PROBABILITIES)
def test_rejects_files_with_invalid_probabilities(kuhn, tmp_path, value):
    """The checksum is valid; the error contains the infoset and the probabilities."""
    path = tmp_path / "policy"
    kuhn.save(path)
    arrays, metadata = storage.load(path)
    storage.save(path, {**arrays, "player0": _with_probability(kuhn, value)}, metadata)
    named = "player 0" if isinstance(value, str | complex) else rf"{value}\].*'0'"
    with pytest.raises(CorruptFileError, match=f"policy is a corrupt.*{named}"):
        spiel_cr.load_policy(path)


@pytest.mark.parametrize("value", INVALID_PROBABILITIES)
def test_rejects_policies_with_invalid_probabilities(kuhn, value):
    """Policies in Python are checked at infosets and at single states."""

    class InvalidPolicy(openspiel_policy.TabularPolicy):
        def action_probabilities(self, state, player_id=None):
            return {0: 0.9 - value, 1: value} if type(value) is float else {0: value}

    policy = InvalidPolicy(kuhn.tree.game)
    with pytest.raises(ValueError, match="information state .*sum to 1"):
        query(kuhn.tree, policy)
    state = kuhn.tree.state_at(int(kuhn.tree.infosets[0].history[0]))
    for ask in (
        rollouts.Answers(policy, state.current_player()),
        bots.PolicyBot(state.current_player(), policy).step,
    ):
        with pytest.raises(ValueError, match="policy.*sum to 1"):
            ask(state)


def test_tiny_negative_probabilities_count_as_zero(kuhn):
    """OpenSpiel's linear program returns such strategies."""

    class RoundedPolicy(openspiel_policy.TabularPolicy):
        def action_probabilities(self, state, player_id=None):
            return {0: 1.0 + 2e-12, 1: -2e-12}

    policy = RoundedPolicy(kuhn.tree.game)
    behaviours = query(kuhn.tree, policy)
    assert min(behaviour.min() for behaviour in behaviours) == 0
    state = kuhn.tree.state_at(int(kuhn.tree.infosets[0].history[0]))
    assert bots.PolicyBot(state.current_player(), policy).step(state) == 0


def test_policies_of_unregistered_games_need_the_game(tmp_path):
    """The policy is loaded if the caller passes the game."""
    game = spiel_cr.load_game("restricted_nash_response(game=kuhn_poker())")
    result = spiel_cr.solve(game, "lp")
    result.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="policy.* its game rnr_kuhn.*give the game"):
        spiel_cr.load_policy(tmp_path / "policy")
    back = spiel_cr.load_policy(tmp_path / "policy", game)
    table = result.average_policy().action_probability_array
    np.testing.assert_array_equal(back.action_probability_array, table)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("fails", ["savez", "replace"])
def test_failed_writes_keep_the_previous_file(
    kuhn, tmp_path, monkeypatch, error, fails
):
    path = tmp_path / "policy"
    kuhn.save(path)
    content = path.read_bytes()

    def fail(file, *args, **kwargs):
        if fails == "savez":
            file.write(b"half")
        raise error

    monkeypatch.setattr(
        *((np, fails) if fails == "savez" else (atomic.os, fails)), fail
    )
    with pytest.raises(type(error)):
        kuhn.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == content
