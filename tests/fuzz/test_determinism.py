"""A seed decides: another process and another number of workers give the same bits."""

import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.__main__ import ROOT
from tests.fuzz.determinism import CASES


def _digests(names, hash_seed):
    """In a process of its own, whose sets have an order of their own, too."""
    words = [sys.executable, "-m", "tests.fuzz.determinism", *names]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _check(names, again):
    """All in one process, and those of `again` in a second one."""
    first, second = _digests(names, "1"), _digests(again, "2")
    assert second and second.items() <= first.items()
    for name in (name for name in names if name.endswith("/1")):
        assert first[name] == first[f"{name[:-1]}2"], name


QUICK = [
    *("bot uniform", "bot ismcts-br", "bot lbr", "bot honest(rollouts=2)"),
    *("solve es-mccfr, tree", "solve mmd, simulator", "states/1", "states/2"),
]


def test_two_processes():
    """What has workers starts them once: it is compared with what has none."""
    _check(QUICK, [name for name in QUICK if not name.endswith("/2")])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all(part):
    names = [name for name in CASES if name.partition("/")[0] not in QUICK]
    pairs = sorted({name.partition("/")[0] for name in names})[part::4]
    names = [name for name in names if name.partition("/")[0] in pairs]
    _check(names, names)
