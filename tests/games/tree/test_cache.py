"""The cache of game trees: exact copies, keys, invalid files and failed writes."""

import importlib
import os
import pathlib
import shutil
import sys

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common import memory, storage
from spiel_cr.common.errors import GameTooLargeError, TooManyHistoriesError
from spiel_cr.games.opening import batched_rules, estimate
from spiel_cr.games.tree import batched_walk, cache, state_walk
from spiel_cr.games.tree.tree_builder import build_tree
from tests.games.tree.test_batched_rules import same
from tests.support import games, made_games
from tests.support.commands import report, run

LEDUC = "python_leduc_poker"
STRINGS = (
    "kuhn_poker",
    "matrix_rps",
    games.goofspiel(4, "ascending"),
    "dark_hex(board_size=2)",
    LEDUC,
    "python_princess_and_monster(horizon=3)",
    "python_rock_paper_scissors",
    "python_scotland_yard(rounds=2)",
)
BUNDLED_GAMES = (
    "python_ii_goofspiel(num_cards=3)",
    "python_latent_tic_tac_toe",
    LEDUC,
    "python_princess_and_monster",
    "python_rock_paper_scissors",
    "python_scotland_yard",
)


def entries(folder):
    return sorted(folder.glob("*.npz"))


@pytest.fixture
def forbid_building(monkeypatch):
    """Return a function after whose call building a game tree fails."""

    def forbid():
        def fail(*arguments, **keywords):
            raise AssertionError("compiled")

        monkeypatch.setattr(state_walk, "walk", fail)
        monkeypatch.setattr(batched_walk, "walk", fail)

    return forbid


@pytest.mark.parametrize("observations, batched_rules", [(True, True), (False, False)])
@pytest.mark.parametrize("string", STRINGS)
def test_cached_trees_are_bitwise_identical(
    tmp_path, forbid_building, string, observations, batched_rules
):
    options = {"observations": observations, "batched_rules": batched_rules}
    plain = build_tree(string, **options)
    first = build_tree(string, cache=tmp_path / "new", **options)
    forbid_building()
    second = build_tree(string, cache=tmp_path / "new", **options)
    for tree in (first, second):
        same(tree, plain)
        assert str(tree.game) == str(plain.game)
        assert tree.histories.chance.strides == plain.histories.chance.strides
    assert second.game_id == plain.game_id
    assert len(entries(tmp_path / "new")) == 1
    assert not list(tmp_path.glob("**/*.part"))


def test_cached_trees_create_strings_lazily(tmp_path):
    """Strings that batched rules create are not stored in the file."""
    build_tree(LEDUC, cache=tmp_path)
    (path,) = entries(tmp_path)
    arrays, _ = storage.load(path)
    assert not [name for name in arrays if name.startswith("text")]
    tree = build_tree(LEDUC, cache=tmp_path)
    assert tree.infosets[0].keys.nbytes == 0
    assert tree.infosets[1].keys[-1].startswith("p1 card")


def test_entries_depend_on_options_and_parameters(tmp_path):
    for options in (
        {},
        {"observations": True},
        {"batched_rules": False},
        {"observations": True, "batched_rules": False},
    ):
        build_tree(LEDUC, cache=tmp_path, **options)
    build_tree("python_leduc_poker(stack1=5)", cache=tmp_path)
    # These are the default parameters.
    build_tree("python_leduc_poker(stack0=7,num_ranks=3)", cache=tmp_path)
    assert len(entries(tmp_path)) == 5


@pytest.mark.parametrize("package", ["spiel_cr", "open_spiel", "numpy"])
def test_package_versions_are_part_of_the_key(tmp_path, monkeypatch, package):
    build_tree(LEDUC, cache=tmp_path)
    newer = {**storage.versions(), package: "99"}
    monkeypatch.setattr(storage, "versions", lambda: newer)
    build_tree(LEDUC, cache=tmp_path)
    assert len(entries(tmp_path)) == 2


def test_builder_sources_are_part_of_the_key(tmp_path, monkeypatch):
    game = spiel_cr.load_game(LEDUC)
    before = cache.identify(game, None)
    folder = tmp_path / "spiel_cr"
    shutil.copytree(pathlib.Path(spiel_cr.__file__).parent, folder)
    with (folder / "games" / "tree" / "state_walk.py").open("a") as file:
        file.write("# another walk\n")
    monkeypatch.setattr(cache, "_SOURCES", folder)
    after = cache.identify(game, None)
    assert {k for k in before if before[k] != after[k]} == {"builder"}


@pytest.mark.parametrize("string", BUNDLED_GAMES)
def test_python_games_are_identified_by_sources_and_parameters(string):
    game = spiel_cr.load_game(string)
    identity = cache.identify(game, batched_rules.of_game(game))
    assert identity["sources"] and identity["batched_rules"]
    assert identity["parameters"] == game.get_parameters()


def test_cpp_games_have_no_sources_in_the_key():
    identity = cache.identify(spiel_cr.load_game("leduc_poker"), None)
    assert identity["sources"] is None
    assert identity["parameters"]["suit_isomorphism"] is False


MODULE = """
import pyspiel
from tests.support.made_games import MadeGame, Node, TERMINAL
import {helper}

class {name}(MadeGame):
    def __init__(self, params=None):
        super().__init__(rules, "python_{name}")

def rules(path):
    if len(path) == 2:
        return Node(TERMINAL, utility={helper}.PAYS[path[0]] - path[1])
    return Node(len(path), (0, 1), ("first", "second"))

pyspiel.register_game({name}().get_type(), {name})
"""


def test_changed_game_sources_create_a_new_entry(tmp_path, monkeypatch):
    """This includes modules that the game imports from its own folder."""
    name, helper = "cached_pennies", "cached_payoffs"
    code, folder = tmp_path / "code", tmp_path / "cache"
    code.mkdir()
    (code / f"{name}.py").write_text(MODULE.format(name=name, helper=helper))
    monkeypatch.syspath_prepend(code)
    found = []
    for pays in ([0, 1], [0, 1], [0, 5]):
        (code / f"{helper}.py").write_text(f"PAYS = {pays}\n")
        if helper in sys.modules:
            sys.modules[helper].PAYS = pays  # as a new process would have it
        else:
            importlib.import_module(name)
        tree = build_tree(f"python_{name}", cache=folder)
        found.append((tree.histories.utility.max(), len(entries(folder))))
    assert found == [(1, 1), (1, 1), (5, 2)]


def test_games_without_a_game_string_are_not_cached(tmp_path):
    """These games are not registered, or their string loads a different game."""

    def rules(utility):
        def rule(path):
            if path:
                return made_games.Node(made_games.TERMINAL, utility=utility)
            return made_games.Node(0, (0, 1), ("a", "b"))

        return rule

    for utility in (1.0, 2.0):
        game = made_games.MadeGame(rules(utility), "unknown")
        tree = build_tree(game, cache=tmp_path)
        assert tree.histories.utility.max() == utility
    changed = pyspiel.load_game(LEDUC)
    changed.num_ranks = 2
    with pytest.raises(ValueError, match="does not load this game by the string"):
        cache.identify(changed, None)
    assert not entries(tmp_path)


def test_content_of_parameter_files_is_part_of_the_key(tmp_path):
    path = tmp_path / "game.efg"
    text = 'EFG 2 R "G" {{ "A" "B" }}\np "" 1 1 "" {{ "l" "r" }} 0\n'
    text += 't "" 1 "" {{ {0} -{0} }}\nt "" 2 "" {{ 0 0 }}\n'
    found = []
    for utility in (1, 3):
        path.write_text(text.format(utility))
        game = pyspiel.load_game("efg_game", {"filename": str(path)})
        found.append(cache.identify(game, None)["sources"])
    assert found[0] != found[1]


@pytest.mark.parametrize("missing", ["infoset", "observations", "text1", "parent0"])
def test_incomplete_files_are_replaced(tmp_path, missing):
    plain = build_tree("kuhn_poker", cache=tmp_path)
    (path,) = entries(tmp_path)
    arrays, metadata = storage.load(path)
    storage.save(path, {k: v for k, v in arrays.items() if k != missing}, metadata)
    same(build_tree("kuhn_poker", cache=tmp_path), plain)
    assert set(storage.load(path)[0]) == set(arrays)


@pytest.mark.parametrize(
    ("name", "forged"),
    [("parent0", [-1] * 6), ("parent1", [12] * 6), ("utility", [1.0])],
)
def test_invalid_files_with_valid_checksums_are_replaced(tmp_path, name, forged):
    """The parent infosets are cyclic or out of range, or arrays have wrong lengths."""
    plain = build_tree("kuhn_poker", cache=tmp_path)
    (path,) = entries(tmp_path)
    arrays, metadata = storage.load(path)
    storage.save(path, {**arrays, name: np.array(forged)}, metadata)
    same(build_tree("kuhn_poker", cache=tmp_path), plain)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_unreadable_cache_entries_are_kept_and_ignored(tmp_path, kind, absl_log):
    """The tree is built without the cache, and a warning is logged."""
    plain = build_tree("kuhn_poker", cache=tmp_path)
    (path,) = entries(tmp_path)
    path.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir}[kind](path)
    same(build_tree("kuhn_poker", cache=tmp_path), plain)
    assert "not cached" in absl_log.text and not path.is_file()


def test_files_of_other_games_are_replaced(tmp_path):
    plain = build_tree("kuhn_poker", cache=tmp_path)
    (path,) = entries(tmp_path)
    build_tree("leduc_poker", cache=tmp_path / "other")
    shutil.copy(*entries(tmp_path / "other"), path)
    same(build_tree("kuhn_poker", cache=tmp_path), plain)


def test_cache_rejects_a_file_and_ignores_a_full_disk(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ValueError, match="is a file; give a folder"):
        build_tree("kuhn_poker", cache=file)

    def fail_to_write(*arguments, **keywords):
        raise OSError("no space left")

    monkeypatch.setattr(storage.np, "savez", fail_to_write)
    tree = build_tree("kuhn_poker", cache=tmp_path / "full")
    assert len(tree.histories) == 58
    assert not list((tmp_path / "full").iterdir())


def test_cached_trees_skip_the_memory_estimate(tmp_path, forbid_building, monkeypatch):
    build_tree("leduc_poker", cache=tmp_path)
    monkeypatch.setattr(estimate, "_estimate", None)
    forbid_building()
    build_tree("leduc_poker", cache=tmp_path)
    limit = memory.BASE_BYTES + 9456 * memory.BYTES_PER_HISTORY
    with pytest.raises(GameTooLargeError, match="more than 9,456 histories, and mem"):
        build_tree("leduc_poker", cache=tmp_path, memory_limit=limit)


def test_history_limits_apply_to_cached_trees(tmp_path):
    build_tree("kuhn_poker", cache=tmp_path)
    with pytest.raises(TooManyHistoriesError, match="max_histories=57"):
        build_tree("kuhn_poker", cache=tmp_path, max_histories=57)
    build_tree("kuhn_poker", cache=tmp_path, max_histories=58)


def test_solve_and_resolve_use_the_cache(tmp_path, forbid_building):
    def results():
        options = spiel_cr.GameOptions(cache=tmp_path)
        solved = spiel_cr.solve(LEDUC, "lp", options=options)
        return solved, spiel_cr.resolve("matrix_rps", iterations=5, options=options)

    before = results()
    assert len(entries(tmp_path)) == 2
    forbid_building()
    for ours, theirs in zip(results(), before, strict=True):
        for p in range(2):
            np.testing.assert_array_equal(ours.average[p], theirs.average[p])


def test_command_line_uses_the_cache(tmp_path, forbid_building, capsys):
    words = ("--game", "kuhn_poker", "--cache", tmp_path)
    first = report(capsys, "info", *words)
    forbid_building()
    assert report(capsys, "info", *words) == first
    assert report(capsys, "solve", *words, "--algorithm", "lp")["nash_conv"] < 1e-9
    # Re-solving needs observations, so it uses a different entry.
    with pytest.raises(SystemExit):
        run("resolve", *words, "--iterations", 2)
    assert "AssertionError: compiled" in capsys.readouterr().err
