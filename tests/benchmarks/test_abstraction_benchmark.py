"""The benchmark of abstractions judges each in the whole game, and draws the curves."""

import pytest

from benchmarks import frame
from benchmarks.signals import abstraction
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_more_buckets_lose_less(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    picture = tmp_path / "curves.png"
    command = ["--games", "python_leduc_poker(num_ranks=6)", "--budgets", "2-4", "6-36"]
    command += ["--methods", "win-probability", abstraction.GAMESHRINK]
    command += ["--plot", str(picture)]
    rows, page = run_on_page(abstraction.BENCHMARK, tmp_path, command)
    few, _, many, shrunk = rows
    assert few["buckets"] == [2, 4] and few["nash_conv_of_buckets"] <= 0.02
    assert few["nash_conv"] > 1.5 * many["nash_conv"]
    assert shrunk["buckets"][0] == 6
    assert "2-4" in str(page) and picture.stat().st_size > 1000
