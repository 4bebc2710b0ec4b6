"""The benchmark of players: all parts on a small game, their tables and picture."""

import pytest

from benchmarks import players
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_all_parts_on_a_small_game(tmp_path):
    pytest.importorskip("matplotlib")
    command = ["--games", "kuhn_poker", "--move-ms", "20", "--moves", "10"]
    command += ["--matches", "2", "--repeats", "1"]
    rows, text = run_on_page(players.BENCHMARK, tmp_path, command)
    by_part = {row["part"]: row for row in rows}
    assert list(by_part) == list(players._PARTS)
    # Uniform play has 0.92.
    values = [by_part["exploitability"]["nash_conv"], by_part["gadgets"]["cfrd"]]
    values += [by_part["depths"]["nash_conv"]["None"]]
    assert all(0 <= value < 0.2 for value in values)
    assert by_part["lateness"]["moves"] >= 10
    assert "– |" not in text.partition("Matches")[0]
    assert f"| {values[0]:.1e} | {values[1]:.1e} |" in text
    assert f"| {values[2]:.1e} |\n" in text and "| resolving | – |" in text
    assert (tmp_path / "img" / "gadgets.png").read_bytes().startswith(b"\x89PNG")
