"""Commands that are interrupted lose nothing, and go on to the same results."""

import collections
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.fuzz.interruptions import COMMANDS, KINDS

ROOT = pathlib.Path(__file__).parents[2]


def trials(first, last, *commands, cache):
    """In a process that has computed nothing yet; the lines that it says."""
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
    return done.stdout.splitlines()


def test_a_few(tmp_path):
    """A kill and a SIGTERM, of commands that write journals, states, and both."""
    lines = trials(0, 6, "tournament", "solve", "exploit", cache=tmp_path)
    assert lines[-1] == "6 trials, 0 failures"


# Of some 50 trials of each kind, how many at least come before the end of the command:
# most signals do; a full disk is met by what writes after that, and a second run by
# what locks its place.
_LEAST = {
    **dict.fromkeys(("kill", "term", "group", "interrupt", "hangup", "twice"), 9),
    **{"full": 4, "two": 3, "start": 9},
}


@pytest.mark.slow
def test_many(tmp_path):
    """Each kind twice on each command."""
    count = 2 * len(KINDS) * len(COMMANDS)
    lines = trials(0, count, cache=tmp_path)
    assert lines[-1] == f"{count} trials, 0 failures"
    met = collections.Counter()
    for line in lines:
        if found := re.fullmatch(r"(\w+): (\d+) ended with (.*)", line):
            kind, count, codes = found.groups()
            met[kind] += int(count) * (set(codes.split("+")) != {"0"})
    assert all(met[kind] >= least for kind, least in _LEAST.items()), met
