"""The benchmark of resolved strategies: its rows and its table."""

import pytest

from benchmarks import resolving
from tests.support.benchmark_pages import FACTS, run_on_page


def test_rows_and_table(tmp_path):
    command = "--games kuhn_poker --algorithms cfr+ --iterations 20 10".split()
    rows, text = run_on_page(resolving.BENCHMARK, tmp_path, command)
    assert [row["iterations"] for row in rows] == [20, 10]
    assert all(row["device"] and row["seed"] is None for row in rows)
    cells = [f"{row['nash_conv']:.1e}" for row in reversed(rows)]
    assert f"| kuhn_poker | cfr+ | {' | '.join(cells)} |" in text
    assert f"Measured {rows[0]['date'][:10]} on" in text


def test_tables_leave_gaps_for_what_was_not_measured():
    row = {**FACTS, "part": "strategies", "name": "tiny", "algorithm": "pdcfr+"}
    rows = [
        {**row, "iterations": 100, "nash_conv": 0.5},
        {**row, "iterations": 500, "algorithm": "cfr+", "nash_conv": 0.25},
    ]
    lines = resolving.markdown(rows).splitlines()
    assert "| game | algorithm | 100 | 500 |" in lines
    assert "| tiny | pdcfr+ | 5.0e-01 | – |" in lines
    assert "| tiny | cfr+ | – | 2.5e-01 |" in lines


@pytest.mark.slow
def test_a_player_that_samples_is_made_and_asked_everywhere():
    name = "II-goofspiel, 3 cards"
    row = resolving.measure_player(name, "evr-mccfr(batch=64)", 20)
    assert row["histories"] == 139 and row["infosets"] == row["moves"] == 72
    assert 0 <= row["nash_conv"] < 0.3
    assert all(seconds > 0.2 for seconds in row["seat_seconds"])


def test_players_have_a_line_for_each_game_and_solver():
    row = {**FACTS, "part": "sampled", "name": "tiny", "histories": 1139}
    row |= {"solver": "cfr+", "move_ms": 5.0, "seat_seconds": [1.25, 0.1]}
    rows = [
        {**row, "nash_conv": 0.5},
        {**row, "move_ms": 50.0, "nash_conv": 0.25, "seat_seconds": [2.0, 0.1]},
        {**row, "solver": "os-mccfr", "nash_conv": 0.125},
    ]
    lines = resolving.markdown(rows).splitlines()
    head = "| game | histories | solver | first seat made, s "
    assert f"{head}| NashConv, 5 ms | NashConv, 50 ms |" in lines
    assert "| tiny | 1 139 | cfr+ | 1.2 | 5.0e-01 | 2.5e-01 |" in lines
    assert "| tiny | 1 139 | os-mccfr | 1.2 | 1.2e-01 | – |" in lines
