"""Commands that are interrupted lose nothing, and go on to the same results."""

import collections

import pytest

from tests.fuzz.__main__ import ROOT, run
from tests.fuzz.interruptions import COMMANDS, KINDS, MOUNTED, SOLVES

_OTHERS = [name for name in reversed(COMMANDS) if name not in SOLVES]
# In this order solves, and what has journals, are interrupted when they have begun; a
# disk that is full at once, and a second run, meet the others.
ORDER = [*SOLVES[:7], *_OTHERS[:4], *SOLVES[7:], *_OTHERS[4:]]


def test_each_command_once(tmp_path):
    """Each family of commands that write is met by a kind, and each kind by two."""
    assert set(ORDER) == set(COMMANDS) and len(ORDER) >= 2 * len(KINDS)
    only = ["quick", *ORDER]
    record, kept = tmp_path / "trials", ROOT / "build" / "test-programs" / "commands"
    rows = run("interruptions", 0, len(ORDER), record, only, programs=kept)
    assert not [fault for row in rows for fault in row["faults"]]
    assert [row["command"] for row in rows] == ORDER
    assert {row["outcome"].split()[0] for row in rows} >= {*KINDS} - {*MOUNTED}


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
    rows = run("interruptions", 0, count, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    met = collections.Counter(
        row["outcome"].split()[0]
        for row in rows
        if set(row["outcome"].split()[-1].split("+")) != {"0"}
    )
    assert all(met[kind] >= least for kind, least in _LEAST.items()), met
