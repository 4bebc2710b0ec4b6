"""The benchmark of deep CFR runs within its budgets; tables have medians of seeds."""

import pytest

from benchmarks.deep import training
from benchmarks.deep.training import Budget

TABLE = "dream(network=table,memory=exact,averaging=bank+exact,traversals=30)"


@pytest.mark.parametrize("budget", [Budget("nodes", 4000), Budget("episodes", 1000)])
def test_runs_end_before_their_budget(budget):
    row = training.measure("kuhn", f"{TABLE[:-1]},critic_steps=2)", 1, budget)
    assert budget.most * 0.8 < row[budget.what] <= budget.most
    assert [point["iterations"] for point in row["curve"]] == sorted(
        {point["iterations"] for point in row["curve"]}
    )
    assert row["curve"][-1]["iterations"] == row["iterations"]
    assert row["nash_conv"]["bank"] == pytest.approx(row["nash_conv"]["exact"])
    assert row["gflop"] == {}


def test_tables_have_medians():
    row = training.measure("kuhn", TABLE, 1, Budget("nodes", 600))
    rows = [
        {**row, "part": "leduc", "name": "kuhn", "preset": "dream", "seed": seed}
        | {"nash_conv": {"exact": value}}
        for seed, value in enumerate((0.5, 0.1, 0.3))
    ]
    text = training.markdown(rows)
    assert "0.3000 (150.0)" in text and "| 3 |" in text and "0.1000 (" not in text
    assert "| 0: 250.0, 1: 50.0, 2: 150.0 |" in text
    fitted = rows[0] | {"part": "seconds", "seed": 7, "nash_conv": {"network": 0.4}}
    assert "| 7: 200.0 |" in training.markdown([fitted])
    profile = training.markdown([{**rows[0], "part": "profile"}])
    assert "nodes/s" in profile


@pytest.mark.slow
def test_operations_of_fits():
    """One fit of 2 · 6 infosets with 11 inputs and 2 outputs, by hand."""
    config = "sd-cfr(hidden=8,layers=2,steps=5,traversals=10,averaging=exact)"
    solver = training.DeepSolver(training.compile_game("kuhn_poker"), config)
    solver.iterations = 3
    weights = 11 * 8 + 8 * 8 + 8 * 2
    assert training.gflop(solver)["fit"] == pytest.approx(6e-9 * 12 * weights * 5 * 3)
