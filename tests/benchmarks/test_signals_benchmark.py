"""The benchmark of signal games, on small ones."""

import pytest

from benchmarks.signals import BENCHMARK
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_both_forms_are_compared(tmp_path):
    command = ["--parts", "size", "speed", "--decks", "2x2", "--compiled", "kuhn_poker"]
    (size, speed), text = run_on_page(BENCHMARK, tmp_path, command)
    assert size["nash_conv"] == pytest.approx(size["compiled_nash_conv"], rel=0.05)
    assert size["peak_bytes"] > 0 and size["infosets"] > 100
    assert speed["difference"] < 1e-12 and speed["signals_per_second"] > 1000
    assert "kuhn_poker" in text and "2x2" in text


@pytest.mark.slow
def test_a_river_is_solved_and_drawn(tmp_path):
    command = ["--parts", "solve", "--games", "river", "--seconds", "1"]
    (row,), text = run_on_page(BENCHMARK, tmp_path, command)
    low, high = row["value_bounds"]
    assert high - low == pytest.approx(row["nash_conv"]) and row["iterations"] > 10
    assert row["curve"][-1]["nash_conv"] < row["curve"][0]["nash_conv"]
    assert (tmp_path / "img" / "signals-convergence.png").stat().st_size > 1000
    assert "river" in text
