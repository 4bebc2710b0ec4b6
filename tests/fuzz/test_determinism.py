"""Results depend on the seed, and not on the process or the number of workers."""

import collections
import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.__main__ import ROOT
from tests.fuzz.determinism import CASES


def _digests(names, hash_seed):
    """Compute digests in a new process, in which sets have another order."""
    words = [sys.executable, "-m", "tests.fuzz.determinism", *names]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _check(names, again):
    """Compare two processes, and cases that differ in the number of workers."""
    digests = collections.defaultdict(list)
    for found in (_digests(names, "1"), _digests(again, "2")):
        for name, digest in found.items():
            digests[name.partition("/")[0]].append(digest)
    assert digests and all(len(each) >= 2 for each in digests.values())
    different = {name: each for name, each in digests.items() if len(set(each)) > 1}
    assert not different


QUICK = [
    *("bot uniform", "bot ismcts-br", "bot lbr", "bot honest(rollouts=2)"),
    *("solve es-mccfr, tree", "solve mmd, simulator", "states/1", "states/2"),
]


def test_results_do_not_depend_on_process_or_workers():
    """The first process runs cases with one worker, the second with two."""
    _check(*([x for x in QUICK if not x.endswith(end)] for end in ("/2", "/1")))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_results_do_not_depend_on_process_or_workers(part):
    names = [name for name in CASES if name.partition("/")[0] not in QUICK]
    pairs = sorted({name.partition("/")[0] for name in names})[part::4]
    names = [name for name in names if name.partition("/")[0] in pairs]
    _check(names, names)
