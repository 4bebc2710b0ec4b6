"""The persistent cache of compiled functions, and announcements of progress."""

import os
import subprocess
import sys
import zlib

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache as jax_cache
from tqdm import tqdm

from spiel_cr.common import compilation_cache, messages

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(autouse=True)
def restore_settings(monkeypatch):
    monkeypatch.delenv(compilation_cache.VARIABLE, raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    jax_cache.reset_cache()


def test_cache_folder_is_set_by_argument_or_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    found = compilation_cache.use_compilation_cache()
    assert found is not None
    assert found.parent == tmp_path / "user" / "spiel_cr" / "programs"
    assert jax.config.jax_compilation_cache_dir == str(found)
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path / "other"))
    assert compilation_cache.use_compilation_cache().parent == tmp_path / "other"
    assert (
        compilation_cache.use_compilation_cache(tmp_path / "mine").parent
        == tmp_path / "mine"
    )


def test_cache_can_be_disabled(tmp_path, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    assert compilation_cache.use_compilation_cache("off") is None
    monkeypatch.setenv(compilation_cache.VARIABLE, "off")
    assert compilation_cache.use_compilation_cache() is None
    # The cache is also off if JAX has a cache or the folder cannot be created.
    monkeypatch.setenv(compilation_cache.VARIABLE, "")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    assert compilation_cache.use_compilation_cache() is None
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert compilation_cache.use_compilation_cache(tmp_path / "file" / "folder") is None
    assert jax.config.jax_compilation_cache_dir == before


def twice(x):
    return 2 * x


def test_numba_functions_share_the_cache_folder(tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    own = tmp_path / "own"
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path))
    kept = compilation_cache.numba_jit(twice)
    assert kept(np.ones(2)).tolist() == [2, 2]
    (index,) = tmp_path.rglob("*twice*.nbi")
    folder = compilation_cache.use_compilation_cache()
    assert index.parent.parent == folder / "numba"
    monkeypatch.setenv(compilation_cache.VARIABLE, "off")
    assert compilation_cache.numba_jit(twice).stats.cache_path is None
    assert numba.config.CACHE_DIR == ""
    # The user's own numba setting takes precedence.
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(own))
    assert str(own) in compilation_cache.numba_jit(twice).stats.cache_path


def test_least_recently_used_entries_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_MOST_BYTES", 100)
    folder = compilation_cache.use_compilation_cache(tmp_path)
    assert folder is not None
    for age, name in enumerate("abcd"):
        (folder / name).write_bytes(bytes(30))
        os.utime(folder / name, (1000 - age, 1000 - age))
    compilation_cache.use_compilation_cache(tmp_path)
    # The entries that remain fill at most half of the limit.
    assert sorted(file.name for file in folder.iterdir()) == ["a"]


def test_corrupt_entries_are_removed(tmp_path):
    folder = compilation_cache.use_compilation_cache(tmp_path)
    whole = zlib.compress(bytes(range(200)))
    entries = {"whole": whole, "cut": whole[:-3], "empty": b"", "other": b"junk"}
    for name, entry in entries.items():
        (folder / f"{name}-cache").write_bytes(entry)
    compilation_cache.use_compilation_cache(tmp_path)
    assert [file.name for file in folder.glob("*-cache")] == ["whole-cache"]
    # A changed entry is checked again.
    changed = bytearray(whole)
    changed[9] ^= 1
    (folder / "whole-cache").write_bytes(changed)
    compilation_cache.use_compilation_cache(tmp_path)
    assert not list(folder.glob("*-cache"))


def test_folder_is_private_to_the_user(tmp_path, monkeypatch, absl_log):
    folder = compilation_cache.use_compilation_cache(tmp_path)
    folder.chmod(0o777)
    assert compilation_cache.use_compilation_cache(tmp_path) == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(compilation_cache.os, "getuid", lambda: 12345)
    assert compilation_cache.use_compilation_cache(tmp_path) is None
    assert "belongs to another user" in absl_log.text


_SCRIPT = """
import jax
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
outside = dict(jax.config.values)
import spiel_cr
for name in dir(spiel_cr):
    getattr(spiel_cr, name)
assert dict(jax.config.values) == outside
games = "kuhn_poker", "leduc_poker", "liars_dice(numdice=1,dice_sides=3)", "matrix_rps"
for game, algorithm in zip(games, ("cfr+", "es-mccfr", "pdhg", "dcfr")):
    result = spiel_cr.solve(game, algorithm, 20)
    print(result.nash_conv().hex())
    assert dict(jax.config.values) == outside
stem = "/jax/compilation_cache/"
counts = [events.count(stem + n) for n in ("compile_requests_use_cache", "cache_hits")]
print("compiled", counts[0] - counts[1], "of", counts[0])
"""


def run_script(**variables):
    """Solve four games in a process; return its values and numbers of compilations."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    *values, counts = done.stdout.splitlines()
    compiled, _, requests = counts.split()[1:]
    return values, int(compiled), int(requests)


@pytest.mark.slow
def test_second_process_compiles_nothing(tmp_path):
    """Results are bitwise identical, and the process restores JAX's settings.

    The script checks the settings after the import and after each call.
    """
    folder = {"XDG_CACHE_HOME": str(tmp_path), "SPIEL_CR_COMPILATION_CACHE": ""}
    first, compiled, requests = run_script(**folder)
    assert compiled > requests / 2 > 10
    second, compiled, again = run_script(**folder)
    assert (compiled, again) == (0, requests)
    assert second == first
    off = folder | {"SPIEL_CR_COMPILATION_CACHE": "off"}
    assert run_script(**off)[1:] == (requests, requests)


def test_import_does_not_change_jax_settings():
    code = (
        "import jax\n"
        "before = dict(jax.config.values)\n"
        "import spiel_cr, game_defs\n"
        "names = [getattr(spiel_cr, name) for name in dir(spiel_cr)]\n"
        "assert len(names) > 20\n"
        "after = dict(jax.config.values)\n"
        "print({n for n in before.keys() | after if before.get(n) != after.get(n)})\n"
    )
    command = [sys.executable, "-c", code]
    env = os.environ | {"SPIEL_CR_COMPILATION_CACHE": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


def cached_files(folder):
    return {file.name.partition("-")[0] for file in folder.rglob("*-cache")}


def test_functions_are_cached_only_during_calls(tmp_path, monkeypatch):
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(
        compilation_cache,
        "_prepared_once",
        compilation_cache._prepared_once.__wrapped__,
    )
    jax.config.update("jax_compilation_cache_dir", None)
    before = dict(jax.config.values)

    def inside(x):
        return x * 11

    def outside(x):
        return x * 13

    with pytest.raises(KeyError), compilation_cache.caching():
        with compilation_cache.caching():
            pass
        jax.jit(inside)(np.ones(3))
        raise KeyError
    jax.jit(outside)(np.ones(3))
    assert dict(jax.config.values) == before
    assert cached_files(tmp_path) == {"jit_inside"}


def test_existing_jax_cache_stays_in_use(tmp_path, monkeypatch):
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path / "ours"))
    jax_cache.reset_cache()
    for name, value in zip(SETTINGS, (str(tmp_path / "host"), 0.0, -1), strict=True):
        jax.config.update(name, value)
    before = dict(jax.config.values)
    with compilation_cache.caching():
        assert dict(jax.config.values) == before
        jax.jit(lambda x: x * 17)(np.ones(3))
    assert dict(jax.config.values) == before
    assert cached_files(tmp_path / "host") and not (tmp_path / "ours").exists()


def test_announcements_contain_the_time(capsys):
    messages.announce("judging", progress=True)
    messages.announce("nobody asks", progress=False)
    messages.announce("nobody listens")
    out, err = capsys.readouterr()
    assert not out
    assert err.endswith(" s] judging\n") and err.startswith("[")
    assert err.count("\n") == 1


def test_listening_prints_all_announcements(capsys):
    with messages.listening():
        with messages.listening():
            messages.announce("inside")
        messages.announce("walking", progress=False)
        assert messages.is_wanted(False)
    messages.announce("after")
    assert not messages.is_wanted()
    said = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in said] == ["inside", "walking"]


def test_announcements_are_printed_above_progress_bars(capsys):
    with tqdm(total=2, desc="bar", delay=0) as bar:
        bar.update()
        messages.announce("judging", progress=True)
        bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert any(line.endswith("s] judging") and "bar" not in line for line in lines)


def test_compilations_are_announced_before_they_start(capsys, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_LONG", 0.0)
    said = []

    def compiled(event, seconds, **more):
        if event.endswith("backend_compile_duration"):
            said.append(capsys.readouterr().err)

    def _frobnicated(x):
        return x * 3 + 1

    program, given = jax.jit(_frobnicated), np.ones(3)
    jax.monitoring.register_event_duration_secs_listener(compiled)
    try:
        with messages.listening(), compilation_cache.compilation_messages():
            for _ in range(2):
                program(given)
        # Compilations after the end of `listening` are not announced.
        jax.jit(lambda x: x * 5)(given)
    finally:
        jax.monitoring.unregister_event_duration_listener(compiled)
    assert len(said) == 2 and said[1] == ""
    assert said[0].endswith("] compiling or loading function 1 (frobnicated)\n")
    assert capsys.readouterr().err == ""


def test_short_compilations_are_not_announced(capsys, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_LONG", 60.0)
    with messages.listening(), compilation_cache.compilation_messages():
        jax.jit(lambda x: x * 7)(np.ones(3))
    assert capsys.readouterr().err == ""
