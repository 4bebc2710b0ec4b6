"""The benchmark of large games measures what it says; on small games here."""

import pytest

import spiel_cr
from benchmarks import frame, large
from spiel_cr.compilation import state_walk, vectorised_walk
from tests.support.benchmark_pages import FACTS, run_on_page

LEDUC = "python_leduc_poker"
OWN = "python_rock_paper_scissors(num_actions=5)"


def test_smoke(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    command = ["--games", OWN, "kuhn_poker", "--seconds", "0.05"]
    command += ["--dtypes", "float64"]
    rows, _ = run_on_page(large.BENCHMARK, tmp_path, command)
    found = [(row["name"], row.get("way", row.get("dtype"))) for row in rows]
    ways = list(large.PATHS)
    assert found == [
        *((OWN, way) for way in [*ways, "float64"]),
        # OpenSpiel's own games are not vectorised.
        *(("kuhn_poker", way) for way in ["walk", *ways[2:], "float64"]),
    ]
    for row in rows:
        assert row["histories"] == {OWN: 31, "kuhn_poker": 58}[row["name"]]
        assert row["peak_bytes"] >= row["start_bytes"] > 0
        assert row["seconds"] > 0 and row["versions"] and row["seed"] is None
        if row["part"] == "compile":
            rate = row["histories"] / row["seconds"]
            assert row["histories_per_second"] == pytest.approx(rate)
        else:
            assert row["seconds"] >= 0.05
            # Uniform play has 0.9 in kuhn_poker.
            assert 0 <= row["nash_conv"] < 0.2
    assert large.markdown(rows) == capsys.readouterr().out[:-1]


def test_each_path_is_the_one_it_says(tmp_path, monkeypatch):
    calls = []

    def spy(name, real):
        def call(*arguments, **options):
            calls.append(name)
            return real(*arguments, **options)

        return call

    monkeypatch.setattr(state_walk, "walk", spy("walk", state_walk.walk))
    monkeypatch.setattr(vectorised_walk, "walk", spy("expand", vectorised_walk.walk))
    found = {}
    for way in large.PATHS:
        calls.clear()
        row = large.measure_compile("leduc", LEDUC, way, str(tmp_path), 2)
        assert len(row["all_seconds"]) == 2
        found[way] = list(calls)
    assert found == {
        "walk": ["walk"] * 2,
        "vectorised": ["expand"] * 2,
        "cache, written": ["expand"] * 2,
        "cache, read": [],
    }


def test_nash_conv_is_that_of_the_budget():
    row = large.measure_solve("kuhn", "kuhn_poker", "cfr+", "float64", 0.05)
    again = spiel_cr.solve("kuhn_poker", "cfr+", row["iterations"])
    assert row["nash_conv"] == pytest.approx(again.nash_conv(), abs=1e-12)


def test_tables_show_the_facts():
    facts = {**FACTS, "name": "tiny", "game": "tiny()", "seed": None}
    sizes = {"peak_bytes": 300e6, "start_bytes": 200e6, "histories": 1234567}
    compiled = {
        **facts,
        **sizes,
        "part": "compile",
        "way": "vectorised",
        "seconds": 0.5,
        "histories_per_second": 2469134,
        "tree_bytes": 61728350,
    }
    solved = {
        **facts,
        **sizes,
        "part": "solve",
        "algorithm": "cfr+",
        "dtype": "float32",
        "device": "abacus",
        "compile_seconds": 1.26,
        "iterations": 1500,
        "seconds": 10.04,
        "iterations_per_second": 149.4,
        "nash_conv": 0.00123,
        "nash_conv_seconds": 0.042,
    }
    text = large.markdown([compiled, solved])
    assert "device abacus" in text
    assert (
        "| tiny | vectorised | 1,234,567 | 0.50 | 2,469,134 | 50 | 300 | 200 |" in text
    )
    cells = "1.3 | 149 | 1,500 | 10.0 | 1.23e-03 | 0.04 | 300 | 200 |"
    assert f"| tiny | cfr+, float32 | {cells}" in text


@pytest.mark.slow
def test_processes_of_their_own(tmp_path):
    lines = tmp_path / "out.jsonl"
    command = ["--games", "python_princess_and_monster", "--ways", "vectorised"]
    command += ["--seconds", "0.1", "--out", str(lines)]
    assert large.BENCHMARK.main(command) == 0
    assert len(lines.read_text().splitlines()) == 3
