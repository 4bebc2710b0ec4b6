"""Interrupted commands end soon, and lose and leave nothing."""

import collections

import pytest

from tests.fuzz.__main__ import run
from tests.fuzz.interrupt_moments import COMMANDS, QUICK


def test_ten_moments(tmp_path):
    """Ten commands, each at an early moment of its work."""
    rows = run("interrupt_moments", 0, len(QUICK), tmp_path / "trials", ["quick"])
    assert not [fault for row in rows for fault in row["faults"]]
    assert [row["command"] for row in rows] == [*QUICK]


@pytest.mark.slow
def test_three_hundred_moments(tmp_path):
    """All commands in turn; most of them are interrupted before their end."""
    rows = run("interrupt_moments", 0, 300, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    ends = collections.Counter(row["outcome"] for row in rows)
    assert ends["was interrupted"] > 200, ends
    assert {row["command"] for row in rows} == set(COMMANDS)
