"""Commands that are interrupted lose nothing, and go on to the same results."""

import collections

import pytest

from tests.fuzz.__main__ import run
from tests.fuzz.interruptions import COMMANDS, KINDS

# Every family of commands that write, in parts that the processes of the suite share.
PARTS = [list(COMMANDS)[k::4] for k in range(4)]


@pytest.mark.parametrize("commands", PARTS)
def test_each_command_once(tmp_path, commands):
    """Each is met by another kind of interruption."""
    rows = run("interruptions", 0, len(commands), tmp_path / "trials", commands)
    assert not [fault for row in rows for fault in row["faults"]]
    assert [row["command"] for row in rows] == commands


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
