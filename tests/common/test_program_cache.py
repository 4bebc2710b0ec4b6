"""Compiled programs kept in files, and phases in lines."""

import os
import subprocess
import sys

import jax
import pytest

from spiel_cr.common import announcing, program_cache

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(autouse=True)
def settings_as_before(monkeypatch):
    monkeypatch.delenv(program_cache.VARIABLE, raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_are_kept_where_one_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    found = program_cache.keep_programs()
    assert found is not None
    assert found.parent == tmp_path / "user" / "spiel_cr" / "programs"
    assert jax.config.jax_compilation_cache_dir == str(found)
    monkeypatch.setenv(program_cache.VARIABLE, str(tmp_path / "other"))
    assert program_cache.keep_programs().parent == tmp_path / "other"
    assert program_cache.keep_programs(tmp_path / "mine").parent == tmp_path / "mine"


def test_nothing_is_kept_where_nobody_wants_it(tmp_path, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    assert program_cache.keep_programs("off") is None
    monkeypatch.setenv(program_cache.VARIABLE, "off")
    assert program_cache.keep_programs() is None
    # Nor where JAX has a cache, or where no folder can be made.
    monkeypatch.setenv(program_cache.VARIABLE, "")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    assert program_cache.keep_programs() is None
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert program_cache.keep_programs(tmp_path / "file" / "folder") is None
    assert jax.config.jax_compilation_cache_dir == before


def test_old_programs_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(program_cache, "_MOST_BYTES", 100)
    folder = program_cache.keep_programs(tmp_path)
    assert folder is not None
    for age, name in enumerate("abcd"):
        (folder / name).write_bytes(bytes(30))
        os.utime(folder / name, (1000 - age, 1000 - age))
    program_cache.keep_programs(tmp_path)
    # The two that were used last are at most half of the room.
    assert sorted(file.name for file in folder.iterdir()) == ["a"]


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    """And has the same bits."""
    code = (
        "import spiel_cr, jax, sys\n"
        "from spiel_cr.common import program_cache\n"
        "program_cache.keep_programs(sys.argv[1])\n"
        "misses = []\n"
        "jax.monitoring.register_event_listener(\n"
        "    lambda name, **k: misses.append(name) if 'cache_misses' in name else 0)\n"
        "found = spiel_cr.resolve('kuhn_poker', 'cfr+', 50).average\n"
        "print(len(misses), *(part.tobytes().hex() for part in found))\n"
    )
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert int(said[0][0]) > 0 and int(said[1][0]) == 0
    assert said[0][1:] == said[1][1:]


def test_announcements_have_the_time(capsys):
    announcing.announce("judging")
    announcing.announce("nobody asks", progress=False)
    out, err = capsys.readouterr()
    assert not out
    assert err.endswith(" s] judging\n") and err.startswith("[")
