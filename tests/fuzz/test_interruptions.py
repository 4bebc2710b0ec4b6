"""Commands that are interrupted lose nothing, and go on to the same results."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def trials(first, last, *commands, cache):
    """In a process that has computed nothing yet; the last line of what it says."""
    words = [sys.executable, "-m", "tests.fuzz.interruptions", str(first), str(last)]
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    done = subprocess.run(
        [*words, *commands], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_a_few(tmp_path):
    """A kill and a SIGTERM."""
    assert trials(0, 2, "tournament", cache=tmp_path) == "2 trials, 0 failures"


@pytest.mark.slow
def test_many(tmp_path):
    """Each kind twice on each command."""
    assert trials(0, 234, cache=tmp_path) == "234 trials, 0 failures"
