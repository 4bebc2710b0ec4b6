"""Interrupted commands end soon, lose no results and leave no files behind."""

import collections

import pytest

from tests.fuzz.__main__ import run
from tests.fuzz.interrupt_moments import COMMANDS, QUICK


def test_ten_interrupted_commands(tmp_path):
    """Each command is interrupted early in its work."""
    rows = run("interrupt_moments", 0, len(QUICK), tmp_path / "trials", ["quick"])
    assert not [fault for row in rows for fault in row["faults"]]
    assert [row["command"] for row in rows] == [*QUICK]


@pytest.mark.slow
def test_three_hundred_interrupted_commands(tmp_path):
    """Commands are tried in turn, and most are interrupted before their end."""
    rows = run("interrupt_moments", 0, 300, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    ends = collections.Counter(row["outcome"] for row in rows)
    assert ends["was interrupted"] > 200, ends
    assert {row["command"] for row in rows} == set(COMMANDS)
