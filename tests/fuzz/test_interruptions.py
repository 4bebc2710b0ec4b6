"""Interrupted commands lose nothing, and resume to the same results."""

import collections

import pytest

from tests.fuzz.__main__ import ROOT, run
from tests.fuzz.interruptions import COMMANDS, KINDS, MOUNTED, SOLVES

_OTHERS = [name for name in reversed(COMMANDS) if name not in SOLVES]
# In this order, commands that solve or keep journals are interrupted after their start.
# The others get a disk that is full from the start, or a second run.
ORDER = [*SOLVES[:7], *_OTHERS[:4], *SOLVES[7:], *_OTHERS[4:]]


def test_each_command_is_interrupted_once(tmp_path):
    """Each kind of interruption is tried, on at least two commands on average."""
    assert set(ORDER) == set(COMMANDS) and len(ORDER) >= 2 * len(KINDS)
    only = ["quick", *ORDER]
    record, kept = tmp_path / "trials", ROOT / "build" / "test-programs" / "commands"
    rows = run("interruptions", 0, len(ORDER), record, only, programs=kept)
    assert not [fault for row in rows for fault in row["faults"]]
    assert [row["command"] for row in rows] == ORDER
    assert {row["outcome"].split()[0] for row in rows} >= {*KINDS} - {*MOUNTED}


# Smallest number of about 50 trials of each kind that occur before the command ends.
# Most signals do. A full disk affects only commands that write afterwards, and a second
# run only those that lock their output.
_LEAST = {
    **dict.fromkeys(("kill", "term", "group", "interrupt", "hangup", "twice"), 9),
    **{"full": 4, "two": 3, "start": 9},
}


@pytest.mark.slow
def test_many_interruptions(tmp_path):
    """Each kind of interruption is tried twice on each command."""
    count = 2 * len(KINDS) * len(COMMANDS)
    rows = run("interruptions", 0, count, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    met = collections.Counter(
        row["outcome"].split()[0]
        for row in rows
        if set(row["outcome"].split()[-1].split("+")) != {"0"}
    )
    assert all(met[kind] >= least for kind, least in _LEAST.items()), met
