"""The benchmark of sampled solvers: small runs, its tables, and its page."""

import argparse
import json
import pathlib
import re
from typing import Any

import pytest

from benchmarks import frame, sampling, sampling_tables
from tests.support.benchmark_pages import FACTS

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "sampling.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

PLAN = sampling.Plan(
    seconds=0.05, seeds=2, repeats=3, window=0.01, batch_seconds=0.02, batch_seeds=1
)
# Four solvers of each kind are enough to see that all are treated alike.
FEW = (
    "openspiel-os-mccfr",
    "openspiel-es-mccfr",
    "openspiel-os-mccfr-python",
    "os-mccfr(batch=16)",
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> sampling._Game:
    monkeypatch.setattr(sampling, "_RATED", FEW)
    monkeypatch.setattr(sampling, "_SIZES", ("kuhn_poker", "matrix_mp"))
    monkeypatch.setattr(sampling, "_SIZED", FEW[::3])
    monkeypatch.setattr(sampling, "_JUDGED", (*FEW, "cfr+", "no-such"))
    monkeypatch.setattr(sampling, "_EQUAL", FEW)
    monkeypatch.setattr(sampling, "_EQUAL_TRAJECTORIES", 64)
    monkeypatch.setattr(sampling, "_BATCHES", (16,))
    monkeypatch.setattr(sampling, "_CURVES", FEW[::3])
    monkeypatch.setattr(sampling, "_BASELINES", ("none", "history"))
    monkeypatch.setattr(sampling, "_VARIANCE_SAMPLES", 128)
    return sampling._Game("kuhn_poker")


def measured(game: sampling._Game) -> list[dict[str, Any]]:
    facts = {**FACTS, "plan": PLAN._asdict()}
    rows = [
        row for part in sampling._PARTS for row in sampling._PARTS[part](game, PLAN)
    ]
    return [{**facts, **row} for row in rows]


@pytest.mark.slow
def test_all_parts_on_a_small_game(few: sampling._Game, tmp_path: pathlib.Path) -> None:
    rows = measured(few)
    assert json.loads(json.dumps(rows)) == rows
    by_part = {
        part: [row for row in rows if row["part"] == part] for part in sampling._PARTS
    }
    assert [row["algorithm"] for row in by_part["rates"]] == list(FEW)
    for row in by_part["rates"]:
        assert len(row["rates"]) == 3 and min(row["rates"]) > 0

    sized = [(row["name"], row["algorithm"]) for row in by_part["size"]]
    assert sized == [(n, a) for n in ("kuhn_poker", "matrix_mp") for a in FEW[::3]]
    # In Kuhn poker two cards and two or three actions and the end; in matching pennies
    # two actions.
    assert all(5 < row["length"] < 6 for row in by_part["size"][:2])
    assert all(row["length"] == 3 for row in by_part["size"][2:])
    assert all(min(row["microseconds"]) > 0 for row in by_part["size"])

    missing = [row for row in by_part["quality"] if "missing" in row]
    assert [row["algorithm"] for row in missing] == ["no-such"]
    solved = [row for row in by_part["quality"] if "missing" not in row]
    seeds = [(row["algorithm"], row["seed"]) for row in solved]
    assert seeds == [(name, seed) for name in FEW for seed in range(2)] + [("cfr+", 0)]
    for row in solved:
        # Uniform play has 0.92; the slowest has some hundred trajectories.
        assert 0 < row["nash_conv"] < 0.8, row
        assert (row["compile_seconds"] > 0) == row["ours"]
    assert (
        by_part["quality"][6]["trajectories"]
        == 32 * by_part["quality"][6]["iterations"]
    )
    assert (
        by_part["quality"][0]["trajectories"] == 2 * by_part["quality"][0]["iterations"]
    )

    assert [row["trajectories"] for row in by_part["equal"]] == [64] * len(FEW)

    assert [(row["preset"], row["batch"]) for row in by_part["batch"]] == [
        (preset, 16) for preset in ("os-mccfr", "evr-mccfr")
    ]
    for row in by_part["curves"]:
        trajectories, seconds, _ = zip(*row["points"], strict=True)
        assert sorted(set(trajectories)) == list(trajectories)
        assert sorted(set(seconds)) == list(seconds) and seconds[-1] >= PLAN.seconds

    text = sampling_tables.markdown(rows)
    assert "no figures; ValueError" in text and text.count("### ") == 6
    pytest.importorskip("matplotlib")
    sampling_tables.draw(rows, argparse.Namespace(markdown=tmp_path / "page.md"))
    for name in ("batch", "curves"):
        assert (tmp_path / "img" / f"sampling-{name}.png").stat().st_size > 10_000


def solved_row(algorithm: str, nash_conv: float, **more: Any) -> dict[str, Any]:
    return {
        "part": "quality",
        "name": "tiny",
        "algorithm": algorithm,
        "title": algorithm,
        "ours": "mccfr" in algorithm,
        **FACTS,
        "plan": PLAN._asdict(),
        "compile_seconds": 1.5,
        "trajectories": 12345,
        "nash_conv": nash_conv,
        **more,
    }


def test_ratios_are_of_medians_of_one_run() -> None:
    rows = [
        *(solved_row("openspiel-os-mccfr", value) for value in (0.1, 0.4, 0.2)),
        *(solved_row("openspiel-es-mccfr", value) for value in (0.1, 0.1, 9.0)),
        *(solved_row("os-mccfr", value) for value in (0.02, 0.05, 0.01)),
        solved_row("os-mccfr", 7.0, date="2019-01-01T00:00:00+00:00"),
    ]
    text = sampling_tables.markdown(frame.latest(rows, sampling.BENCHMARK.group))
    line = next(line for line in text.splitlines() if line.startswith("| os-mccfr"))
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "os-mccfr",
        "1.5",
        "12 345",
        "2.00e-02 (1.00e-02 to 5.00e-02)",
        "0.1",
        "0.2",
    ]


def test_command_writes_lines_page_and_plots(
    few: sampling._Game, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sampling, "_RATED", FEW[:2])
    out, page = tmp_path / "out" / "lines.jsonl", tmp_path / "docs" / "page.md"
    command = ["--out", str(out), "--markdown", str(page)]
    budget = ["--games", "kuhn_poker", "--seconds", "0.04", "--seeds", "1"]
    assert (
        sampling.BENCHMARK.main([*command, *budget, "--parts", "rates", "curves"]) == 0
    )
    assert len(out.read_text().splitlines()) == 4
    before = page.read_text()
    assert "÷ C++ outcome" in before
    assert (page.parent / "img" / "sampling-curves.png").exists()
    assert sampling.BENCHMARK.main([*command, "--no-measuring"]) == 0
    assert page.read_text() == before


@pytest.mark.slow
def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture) -> None:
    text = PAGE.read_text("utf-8")
    for code in _PYTHON.findall(text):
        exec(compile(code, PAGE.name, "exec"), {"__name__": "page"})
    solved, values, visiting, searched = capsys.readouterr().out.splitlines()
    trajectories, nash_conv = solved.split()
    assert int(trajectories) == 2 * 1024 * 200
    assert 0 < float(nash_conv) < 0.5
    assert float(values) > 0 and float(visiting) > 0
    assert searched.startswith("[Observer: 0]")
