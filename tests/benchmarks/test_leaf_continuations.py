"""The benchmark of continuations resolves a game with each number of them."""

import pytest

from benchmarks.leaves import continuations
from benchmarks.leaves.ranges import Plan


@pytest.mark.slow
def test_a_game(monkeypatch):
    monkeypatch.setitem(continuations.PLANS, "kuhn", Plan("kuhn_poker", 1))
    found = continuations.measure("kuhn", "20", ["biased"], [1, 2], 5)
    (row,) = found["rows"]
    # Below the cut nobody but player 0 decides, so there is nothing to choose.
    assert row["k1"] > 0 and abs(row["k1"] - row["k2"]) < 1e-12
    assert 0 < row["blueprint_nash_conv"] < row["whole"]
    text = continuations.markdown(found["rows"])
    assert "| kuhn | 1 moves | 20 | biased |" in text and "| k = 2 |" in text
