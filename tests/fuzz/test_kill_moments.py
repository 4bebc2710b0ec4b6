"""Killing workers, raylets and commands costs time but no results."""

import collections

import pytest

from tests.fuzz.__main__ import run
from tests.fuzz.kill_moments import COMMANDS, KINDS


@pytest.mark.slow
def test_each_kind_of_kill_on_each_command(tmp_path):
    """Most kills happen before the command has ended."""
    count = 2 * len(KINDS) * len(COMMANDS)
    rows = run("kill_moments", 0, count, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    assert len(rows) == count
    ends = collections.Counter("was over" in row["outcome"] for row in rows)
    assert ends[True] < count / 3, ends
