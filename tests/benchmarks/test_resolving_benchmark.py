"""The benchmark of resolved strategies: its rows and its table."""

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
    row = {**FACTS, "name": "tiny", "algorithm": "pdcfr+"}
    rows = [
        {**row, "iterations": 100, "nash_conv": 0.5},
        {**row, "iterations": 500, "algorithm": "cfr+", "nash_conv": 0.25},
    ]
    lines = resolving.markdown(rows).splitlines()
    assert "| game | algorithm | 100 | 500 |" in lines
    assert "| tiny | pdcfr+ | 5.0e-01 | – |" in lines
    assert "| tiny | cfr+ | – | 2.5e-01 |" in lines
