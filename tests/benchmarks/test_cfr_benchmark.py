"""The benchmark measures what it says, and its tables say what was measured."""

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import pyspiel
import pytest
from spiel_cr.eval.judging import python_judge

import spiel_cr
from benchmarks import c_reference, cell, cfr, document, peers, resolving, table

needs_cc = pytest.mark.skipif(
    c_reference.compiler() is None, reason="no C compiler (cc) on the path"
)


def _row(solver: str, rate: float, nash_conv: float, **more: Any) -> dict[str, Any]:
    return {
        "name": "tiny",
        "game": "tiny_game",
        "solver": solver,
        **vars(peers.describe(solver)),
        "date": "2020-01-02T03:04:05+00:00",
        "versions": {"python": "3.11"},
        "cpu": "abacus",
        "cpu_count": 2,
        "load": 0.0,
        "device": "cpu",
        "budget_seconds": 10.0,
        "window_seconds": 2.0,
        "repeats": 3,
        "build_seconds": 0.5,
        "compile_game_seconds": 0.4,
        "compile_seconds": 1.5,
        "rates": [rate],
        "iterations_per_second": rate,
        "iterations_per_second_min": rate / 2,
        "iterations_per_second_max": rate * 2,
        "solve_iterations": 12345,
        "solve_seconds": 10.0,
        "nash_conv": nash_conv,
        "peak_mib": 300.0,
        "start_mib": 200.0,
        **more,
    }


def _sample() -> list[dict[str, Any]]:
    agreement = {"disagreement": 1e-13, "generic": False, "agrees": True}
    return [
        _row("cfr+", 9000.0, 1e-4),
        _row("pdcfr+", 7000.0, 1e-7),
        _row("c", 20000.0, 5e-5, **agreement),
        _row("openspiel-cpp", 60.0, 1e-2),
        _row("openspiel-jax", 150.0, 2e-3),
        {**_row("liteefg", 1.0, 1.0), "missing": "ImportError: not here"},
    ]


def test_summary_has_ratios_and_best_of_each_side() -> None:
    summary = table.markdown(_sample()).split("\n\n")[1].splitlines()[2]
    cells = [c.strip() for c in summary.strip("|").split("|")]
    # 9000 / 20000, 9000 / 150.
    assert cells == [
        "tiny",
        "9 000",
        "0.45",
        "60 (openspiel-jax)",
        "1.00e-07 (pdcfr+)",
        "5.00e-05 (c)",
        "0.40",
        "1.50",
    ]


def test_game_table_has_a_line_for_every_solver_or_its_reason() -> None:
    text = table.markdown(_sample())
    assert "| spiel_cr cfr+ | float64 | 0.50 | 1.50 | 9 000 (4 500 to 18 000) |" in text
    assert "| OpenSpiel CFRPlusSolver (C++) | float64 |" in text
    assert "LiteEFG CFR+: no figures; ImportError: not here" in text
    assert "C and spiel_cr agree" in text


def test_tables_take_ratios_within_one_run_only() -> None:
    old = [{**row, "date": "2019-01-01T00:00:00+00:00"} for row in _sample()]
    other = [{**row, "name": "other"} for row in old]
    rows = table.latest([*old, *other, _sample()[0]])
    assert [row["name"] for row in rows] == ["other"] * len(other) + ["tiny"]


def test_tables_go_between_markers(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.MARKS.begin}\nold\n{table.MARKS.end}\nafter\n")
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in _sample()))
    table.main([str(lines), "--markdown", str(page)])
    table.main([str(lines), "--markdown", str(page)])
    text = page.read_text()
    assert text.startswith(f"before\n{table.MARKS.begin}\n")
    assert text.endswith(f"{table.MARKS.end}\nafter\n")
    assert "old" not in text and text.count("### tiny") == 1


def test_a_page_without_markers_is_refused_before_measuring(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("no place here\n")
    with pytest.raises(SystemExit):
        cfr.main(["--markdown", str(page)])
    assert "has no lines" in capsys.readouterr().err
    assert page.read_text() == "no place here\n"


def test_the_pages_of_the_project_have_markers() -> None:
    docs = pathlib.Path(__file__).parents[2] / "docs"
    document.check(docs / "benchmarks.md", table.MARKS)
    document.check(docs / "resolving.md", resolving.MARKS)


def test_rows_of_resolving_say_where_they_come_from(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{resolving.MARKS.begin}\nold\n{resolving.MARKS.end}\n")
    command = "--games kuhn_poker --algorithms cfr+ --iterations 20 10"
    resolving.main([*command.split(), "--out", str(lines), "--markdown", str(page)])
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["iterations"] for row in rows] == [20, 10]
    for row in rows:
        assert {"date", "versions", "cpu", "cpu_count", "load"} <= set(row)
        assert row["device"] and row["seed"] is None
    cells = [f"{row['nash_conv']:.1e}" for row in reversed(rows)]
    text = page.read_text()
    assert f"| kuhn_poker | cfr+ | {' | '.join(cells)} |" in text
    assert text.startswith("before\n") and "old" not in text
    assert f"Measured {rows[0]['date'][:10]} on" in text
    capsys.readouterr()


def test_resolving_tables_leave_gaps_for_what_was_not_measured() -> None:
    row = {**_row("cfr+", 1.0, 0.5), "algorithm": "cfr+", "opponent_values": "average"}
    rows = [
        {**row, "iterations": 100},
        {**row, "iterations": 500, "opponent_values": "iterates", "nash_conv": 0.25},
    ]
    lines = resolving.markdown(rows).splitlines()
    assert "| game | algorithm | 100 | 500 |" in lines
    assert "| tiny | cfr+, values of average | 5.0e-01 | – |" in lines
    assert "| tiny | cfr+ | – | 2.5e-01 |" in lines


@needs_cc
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_c_reference_equals_spiel_cr(game: str) -> None:
    result = c_reference.disagreement(spiel_cr.compile_game(game).form)
    assert result["agrees"] and not result["generic"], result


@needs_cc
def test_c_reference_equals_spiel_cr_where_noise_breaks_ties() -> None:
    # Without noise rounding decides here; whether that shows depends on the CPU.
    result = c_reference.disagreement(
        spiel_cr.compile_game(cfr.GAMES["goofspiel5"]).form
    )
    assert result["agrees"], result


@needs_cc
def test_a_wrong_c_reference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    form = spiel_cr.compile_game("kuhn_poker").form
    run = c_reference.CReference.run
    monkeypatch.setattr(c_reference.CReference, "run", lambda self, n: run(self, n - 1))
    assert not c_reference.disagreement(form)["agrees"]


@pytest.mark.parametrize("cost", [0.0, 0.004, 0.05])
def test_run_for_keeps_to_the_budget(
    cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = [0.0], []

    def run(iterations: int) -> None:
        asked.append(iterations)
        now[0] += 1e-4 + cost * iterations

    monkeypatch.setattr(cell.time, "perf_counter", lambda: now[0])
    done, seconds = cell.run_for(run, 0.2)
    assert done == sum(asked)
    # A batch is a tenth of the budget at most, or one iteration.
    assert 0.2 <= seconds <= 0.2 + max(0.02, cost) + 1e-3


def test_smoke_in_process() -> None:
    solvers = ["cfr+", "openspiel-cpp", "cfr+/float32", "no-such"]
    if c_reference.compiler() is not None:
        solvers.append("c")
    plan = cfr.Plan(seconds=0.05, repeats=3, window=0.02)
    rows = cfr.measure_game("kuhn", "kuhn_poker", solvers, plan, cell.Cell)
    by_solver = {row["solver"]: row for row in rows}
    assert list(by_solver) == solvers
    assert "no-such" in by_solver.pop("no-such")["missing"]
    for row in by_solver.values():
        assert len(row["rates"]) == 3
        assert row["build_seconds"] >= 0 and row["compile_seconds"] >= 0
        assert row["peak_mib"] >= row["start_mib"] > 0
        # Uniform play has 0.92; 50 ms are at least 100 iterations of the slowest.
        assert row["nash_conv"] < 0.05
    assert by_solver["cfr+/float32"]["dtype"] == "float32"
    assert by_solver.get("c", {"agrees": True})["agrees"]
    assert json.loads(json.dumps(rows)) == rows


def _judged(make: Callable[[str, str], peers.Contestant], solver: str) -> float:
    contestant = make(solver, "kuhn_poker")
    contestant.reset()
    contestant.run(10)
    return contestant.nash_conv()


@pytest.mark.parametrize(
    "solver", ["openspiel-cpp", "openspiel-python", "openspiel-jax"]
)
def test_peers_run_the_same_algorithm(solver: str) -> None:
    if solver == "openspiel-jax":
        pytest.importorskip("chex")
    # CFR+ after 10 iterations, whoever runs it; JaxCFR computes in float32.
    tolerance = 1e-4 if solver == "openspiel-jax" else 1e-9
    expected = spiel_cr.solve("kuhn_poker", "cfr+", 10).average_policy()
    nash_conv = python_judge.judge(pyspiel.load_game("kuhn_poker"), expected).nash_conv
    assert math.isclose(_judged(peers.make, solver), nash_conv, abs_tol=tolerance)


def test_cell_in_a_process_of_its_own() -> None:
    remote = cell.RemoteCell("kuhn_poker", "openspiel-cpp")
    try:
        assert remote.prepare()["start_mib"] > 0
        assert remote.rate(0.01)["iterations"] > 0
        assert 0 < remote.solve(0.01)["nash_conv"] < 0.9
        assert remote.verify() == {}
    finally:
        remote.close()


def test_errors_of_a_process_are_told() -> None:
    remote = cell.RemoteCell("no_such_game", "openspiel-cpp")
    try:
        with pytest.raises(cell.CellError, match="no_such_game"):
            remote.prepare()
        remote._process.kill()
        with pytest.raises(cell.CellError, match="ended with code"):
            remote.prepare()
    finally:
        remote.close()
