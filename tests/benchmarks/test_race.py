"""The equal-time loop measures what it says; tables of solvers beside their peers."""

import contextlib
import json
import multiprocessing
from collections.abc import Iterator
from typing import Any

import pyspiel
import pytest

import spiel_cr
from benchmarks import c_reference, cfr, race
from benchmarks.games import string_of
from benchmarks.peers import find
from spiel_cr.eval.common.exact_evaluator import ExactEvaluator
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.evaluation import openspiel_evaluator
from tests.support.benchmark_pages import FACTS

needs_cc = pytest.mark.skipif(
    c_reference.compiler() is None, reason="no C compiler (cc) on the path"
)


PLAN = {"seconds": 10.0, "repeats": 3, "window": 2.0}


def _run(
    solver: str, rate: float, nash_conv: float = 1.0, **more: Any
) -> dict[str, Any]:
    return {
        "game": "tiny",
        "solver": solver,
        **find(solver).facts(),
        "build_seconds": 0.5,
        "compile_game_seconds": 0.4,
        "compile_seconds": 1.5,
        "start_mib": 200.0,
        "rates": [rate, rate / 2, rate * 2],
        "iterations": 12345,
        "seconds": 10.0,
        "nash_conv": nash_conv,
        "peak_mib": 300.0,
        **more,
    }


def _sample() -> list[dict[str, Any]]:
    agreement = {"disagreement": 1e-13, "generic": False, "agrees": True}
    runs = [
        _run("cfr+", 9000.0, 1e-4),
        _run("pdcfr+", 7000.0, 1e-7),
        _run("c", 20000.0, 5e-5, **agreement),
        _run("openspiel-cpp", 60.0, 1e-2),
        _run("openspiel-jax", 150.0, 2e-3),
        {**_run("liteefg", 1.0), "missing": "ImportError: not here"},
    ]
    return [{**FACTS, "part": "race", "game": "tiny", "plan": PLAN, "runs": runs}]


def _cells(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_summary_has_ratios_and_best_of_each_side() -> None:
    # 9000 / 20000, 9000 / 150.
    assert _cells(cfr.BENCHMARK.markdown(_sample()), "tiny") == [
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
    text = cfr.BENCHMARK.markdown(_sample())
    assert "| spiel_cr cfr+ | float64 | 0.50 | 1.50 | 9 000 (4 500 to 18 000) |" in text
    assert "| OpenSpiel CFR+ (C++) | float64 |" in text
    assert "ImportError: not here" in text and "agrees with cfr+" in text
    assert list(race.failures(_sample())) == []


@needs_cc
def test_c_reference_equals_spiel_cr() -> None:
    result = c_reference.disagreement(spiel_cr.build_tree("leduc_poker").form)
    assert result["agrees"] and not result["generic"], result


@needs_cc
def test_c_reference_equals_spiel_cr_where_noise_breaks_ties() -> None:
    # Without noise rounding decides here; whether that shows depends on the CPU.
    result = c_reference.disagreement(spiel_cr.build_tree(string_of("goofspiel5")).form)
    assert result["agrees"], result


@needs_cc
def test_a_wrong_c_reference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    form = spiel_cr.build_tree("kuhn_poker").form
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

    monkeypatch.setattr(race.time, "perf_counter", lambda: now[0])
    done, seconds = race.run_for(run, 0.2)
    assert done == sum(asked)
    # A batch is a tenth of the budget at most, or one iteration.
    assert 0.2 <= seconds <= 0.2 + max(0.02, cost) + 1e-3


@contextlib.contextmanager
def here(game: str, solver: str) -> Iterator[race.Ask]:
    """A solver on a game, in this process."""
    run = race.SolverRun(game, solver)
    yield lambda method, *values: getattr(run, method)(*values)


def test_smoke_in_process() -> None:
    solvers = ["cfr+", "openspiel-cpp", "cfr+/float32", "no-such", "openspiel-os-mccfr"]
    if c_reference.compiler() is not None:
        solvers.append("c")
    # 50 ms are at least 100 iterations of the slowest, but where other processes have
    # the processor.
    for seconds in (0.05, 0.5, 5.0):
        plan = race.Plan(seconds, repeats=3, window=0.02)
        rows = race.race("kuhn", solvers, plan, here)["runs"]
        by_solver = {row["solver"]: row for row in rows}
        assert list(by_solver) == solvers
        if min(row.get("iterations", 100) for row in rows) >= 100:
            break
    assert "no-such" in by_solver.pop("no-such")["missing"]
    for name, row in by_solver.items():
        assert len(row["rates"]) == 3 and min(row["rates"]) > 0
        assert row["build_seconds"] >= 0 and row["compile_seconds"] >= 0
        assert row["peak_mib"] >= row["start_mib"] > 0
        assert row["iterations"] > 0 and row["seconds"] >= 0.05
        # Uniform play has 0.92.
        rough = name == "openspiel-os-mccfr" or row["iterations"] < 100
        assert row["nash_conv"] < (0.8 if rough else 0.05)
    assert by_solver["cfr+/float32"]["dtype"] == "float32"
    if "c" in by_solver:
        assert by_solver["c"]["agrees"]
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
    nash_conv = openspiel_evaluator.evaluate(
        pyspiel.load_game("kuhn_poker"), expected
    ).nash_conv
    instance = GameInstance("kuhn_poker")
    adapter = find(solver).entry.make(instance, 0)
    adapter.run(10)
    judged = ExactEvaluator(instance).final(adapter.strategy()).nash_conv
    assert judged == pytest.approx(nash_conv, abs=tolerance)


@pytest.mark.slow
def test_run_in_a_process_of_its_own() -> None:
    with race.in_a_process("kuhn_poker", "openspiel-cpp") as ask:
        assert ask("prepare")["start_mib"] > 0
        assert ask("rate", 0.01)["rates"] > 0
        assert 0 < ask("solve", 0.01)["nash_conv"] < 0.9
        with pytest.raises(race.WorkerFailedError, match="AttributeError"):
            ask("no_such_method")
        (child,) = multiprocessing.active_children()
        child.kill()
        with pytest.raises(race.WorkerFailedError, match="its process ended"):
            ask("prepare")
