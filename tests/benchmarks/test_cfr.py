"""Solvers at equal time, and tables that compare them with their peers."""

import json
from typing import Any

import pyspiel
import pytest

import spiel_cr
from benchmarks import c_reference, cfr
from benchmarks.games import string_of
from benchmarks.peers import find
from spiel_cr.eval.common.exact_evaluator import ExactEvaluator
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.evaluation import openspiel_evaluator
from tests.support.benchmark_pages import FACTS

needs_cc = pytest.mark.skipif(
    c_reference.c_compiler() is None, reason="no C compiler (cc) on the path"
)


def _rows(
    solver: str, rate: float, nash_conv: float = 1.0, **more: Any
) -> list[dict[str, Any]]:
    """Make one row for each of three seeds."""
    return [
        {
            **FACTS,
            "game": "tiny",
            "solver": solver,
            "seed": seed,
            **find(solver).facts(),
            "build_seconds": 0.5,
            "build_tree_seconds": 0.4,
            "compile_seconds": 1.5,
            "start_bytes": 200e6,
            "rate": rate * factor,
            "iterations": 12345,
            "seconds": 10.0,
            "nash_conv": nash_conv,
            "peak_bytes": 300e6,
            **more,
        }
        for seed, factor in enumerate((1, 0.5, 2))
    ]


def _sample() -> list[dict[str, Any]]:
    agreement = {"disagreement": 1e-13, "generic": False, "agrees": True}
    (missing, *_) = _rows("liteefg", 1.0, missing="ImportError: not here")
    return [
        *_rows("cfr+", 9000.0, 1e-4),
        *_rows("pdcfr+", 7000.0, 1e-7),
        *_rows("c", 20000.0, 5e-5, **agreement),
        *_rows("openspiel-cpp", 60.0, 1e-2),
        *_rows("openspiel-jax", 150.0, 2e-3),
        {name: missing[name] for name in missing if name not in ("rate", "nash_conv")},
    ]


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
    ]


def test_game_table_has_a_line_for_every_solver_or_its_reason() -> None:
    text = cfr.BENCHMARK.markdown(_sample())
    assert "| spiel_cr cfr+ | float64 | 0.50 | 1.50 | 9 000 (4 500 to 18 000) |" in text
    assert "| OpenSpiel CFR+ (C++) | float64 |" in text
    assert "ImportError: not here" in text and "agrees with cfr+" in text
    assert list(cfr.failures(_sample())) == []


@needs_cc
def test_c_reference_equals_spiel_cr() -> None:
    result = c_reference.disagreement(spiel_cr.build_tree("leduc_poker").sequence_form)
    assert result["agrees"] and not result["generic"], result


@needs_cc
def test_c_reference_equals_spiel_cr_if_noise_breaks_ties() -> None:
    # Without noise, rounding would break ties, with effects that depend on the CPU.
    result = c_reference.disagreement(
        spiel_cr.build_tree(string_of("goofspiel5")).sequence_form
    )
    assert result["agrees"], result


@needs_cc
def test_wrong_c_reference_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    form = spiel_cr.build_tree("kuhn_poker").sequence_form
    run = c_reference.CReference.run
    monkeypatch.setattr(c_reference.CReference, "run", lambda self, n: run(self, n - 1))
    assert not c_reference.disagreement(form)["agrees"]


def test_every_kind_of_solver_is_measured_on_kuhn_poker() -> None:
    solvers = ["cfr+", "openspiel-cpp", "cfr+/float32", "no-such", "openspiel-os-mccfr"]
    if c_reference.c_compiler() is not None:
        solvers.append("c")
    # 50 ms suffice for 100 iterations of the slowest solver, except on a busy machine.
    for seconds in (0.05, 0.5, 5.0):
        rows = [cfr.measure("kuhn", 0, solver, seconds) for solver in solvers]
        by_solver = dict(zip(solvers, rows, strict=True))
        if min(row.get("iterations", 100) for row in rows) >= 100:
            break
    assert "no-such" in by_solver.pop("no-such")["missing"]
    for name, row in by_solver.items():
        assert row["rate"] > 0
        assert row["build_seconds"] >= 0 and row["compile_seconds"] >= 0
        # Linux updates the peak in steps, so two readings may differ by a few pages.
        assert row["peak_bytes"] >= 0.99 * row["start_bytes"] > 0
        assert row["iterations"] > 0 and row["seconds"] >= 0.05
        # NashConv of uniform play is 0.92.
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
    # All run 10 iterations of CFR+; JaxCFR computes in float32.
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
