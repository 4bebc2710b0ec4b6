"""The benchmark measures what it says, and its tables say what was measured."""

import json
import multiprocessing
from typing import Any

import pyspiel
import pytest

import spiel_cr
from benchmarks import c_reference, cfr, cfr_tables, solver_run
from benchmarks.peers import find
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.judging import python_judge
from spiel_cr.eval.judging.cpp_judge import ExactJudge
from tests.support.benchmark_pages import FACTS

needs_cc = pytest.mark.skipif(
    c_reference.compiler() is None, reason="no C compiler (cc) on the path"
)


def _row(solver: str, rate: float, nash_conv: float, **more: Any) -> dict[str, Any]:
    return {
        "name": "tiny",
        "game": "tiny_game",
        "solver": solver,
        **find(solver).facts(),
        **FACTS,
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
    summary = cfr_tables.markdown(_sample()).split("\n\n")[1].splitlines()[2]
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
    text = cfr_tables.markdown(_sample())
    assert "| spiel_cr cfr+ | float64 | 0.50 | 1.50 | 9 000 (4 500 to 18 000) |" in text
    assert "| OpenSpiel CFR+ (C++) | float64 |" in text
    assert "LiteEFG CFR+: no figures; ImportError: not here" in text
    assert "C and spiel_cr agree" in text


@needs_cc
def test_c_reference_equals_spiel_cr() -> None:
    result = c_reference.disagreement(spiel_cr.compile_game("leduc_poker").form)
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

    monkeypatch.setattr(solver_run.time, "perf_counter", lambda: now[0])
    done, seconds = solver_run.run_for(run, 0.2)
    assert done == sum(asked)
    # A batch is a tenth of the budget at most, or one iteration.
    assert 0.2 <= seconds <= 0.2 + max(0.02, cost) + 1e-3


def test_smoke_in_process() -> None:
    solvers = ["cfr+", "openspiel-cpp", "cfr+/float32", "no-such"]
    if c_reference.compiler() is not None:
        solvers.append("c")
    plan = cfr.Plan(budget_seconds=0.05, repeats=3, window_seconds=0.02)
    rows = cfr.measure_game("kuhn", "kuhn_poker", solvers, plan, solver_run.here)
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
    instance = GameInstance("kuhn_poker")
    adapter = find(solver).entry.make(instance, 0)
    adapter.run(10)
    judged = ExactJudge(instance).final(adapter.strategy()).nash_conv
    assert judged == pytest.approx(nash_conv, abs=tolerance)


def test_run_in_a_process_of_its_own() -> None:
    with solver_run.in_a_process("kuhn_poker", "openspiel-cpp") as ask:
        assert ask("prepare")["start_mib"] > 0
        assert ask("rate", 0.01)["iterations"] > 0
        assert 0 < ask("solve", 0.01)["nash_conv"] < 0.9
        with pytest.raises(solver_run.RunError, match="AttributeError"):
            ask("no_such_method")
        (child,) = multiprocessing.active_children()
        child.kill()
        with pytest.raises(solver_run.RunError, match="its process ended"):
            ask("prepare")
