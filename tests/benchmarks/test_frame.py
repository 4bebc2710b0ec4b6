"""The frame of the benchmarks: options, rows, resumption and pages."""

import argparse
import json
import pathlib

import pytest

from benchmarks import __main__ as command
from benchmarks import document, frame
from spiel_cr.eval.common.files import around_table
from tests.support.benchmark_pages import FACTS, run_on_page, stay_in_this_process

ALL = [command.find(name) for name in command.NAMES]


@pytest.fixture(autouse=True)
def single_process(monkeypatch):
    stay_in_this_process(monkeypatch)


def counting(measured=None, *, failures=lambda rows: ()):
    """Make a benchmark that doubles numbers; `measured` receives its arguments."""

    def measure(number, seconds):
        if measured is not None:
            measured.append(number)
        return {"twice": 2 * number}

    return frame.Benchmark(
        "counting",
        "Counts.",
        measure,
        {
            "number": frame.Axis((1, 2), "to double"),
            "seconds": frame.Axis(1.0, "of nothing", identifies=False),
        },
        (frame.FactsTable("Numbers.", {"number": "{number}", "twice": "{twice}"}),),
        failures,
    )


def test_rows_have_the_conditions_and_the_page_has_the_tables(tmp_path):
    rows, text = run_on_page(counting(), tmp_path, ["--numbers", "1", "2", "3"])
    assert [row["twice"] for row in rows] == [2, 4, 6] and "| 3 | 6 |" in text
    for row in rows:
        assert set(FACTS) <= set(row)


def test_new_row_replaces_the_previous_one(tmp_path):
    measured = []
    benchmark = counting(measured)
    run_on_page(benchmark, tmp_path, [])
    _, text = run_on_page(benchmark, tmp_path, ["--numbers", "2", "3"])
    assert measured == [1, 2, 2, 3]
    assert [line for line in text.splitlines() if line.startswith("| 2")] == [
        "| 2 | 4 |"
    ]
    again, same = run_on_page(benchmark, tmp_path, ["--no-measuring"])
    assert measured == [1, 2, 2, 3] and same == text and len(again) == 4


def test_resume_skips_rows_of_the_same_source_and_budget(tmp_path, monkeypatch):
    measured = []
    benchmark = counting(measured)
    command = ["--out", str(tmp_path / "out"), "--resume", "--numbers", "1", "2"]
    benchmark.main(command[:-1])
    benchmark.main(command)
    assert measured == [1, 2]
    # Another budget, then another version of the source.
    benchmark.main([*command, "--seconds", "2"])
    assert measured == [1, 2, 1, 2]
    facts = frame.facts()
    monkeypatch.setattr(frame, "facts", lambda: {**facts, "source": "another"})
    benchmark.main([*command, "--seconds", "2"])
    assert measured == [1, 2, 1, 2, 1, 2]


def test_each_row_is_written_before_the_next_measurement(tmp_path, monkeypatch):
    out, seen = tmp_path / "out", []

    def look(measure, **values):
        lines = out / "rows.jsonl"
        seen.append(len(lines.read_text().splitlines()) if lines.exists() else 0)
        return measure(**values)

    monkeypatch.setattr(frame, "in_a_process", look)
    assert counting().main(["--out", str(out)]) == 0
    assert seen == [0, 1]


def test_table_has_dashes_for_missing_values():
    columns = {
        "who": "{name}",
        "count": "{count:,}",
        "half": lambda row: f"{row['count'] / 2:.1f}",
    }
    rows = [{"name": "a", "count": 3000}, {"name": "b", "count": None}, {"name": "c"}]
    assert document.table(rows, columns).splitlines() == [
        "| who | count | half |",
        "| --- | ---: | ---: |",
        "| a | 3,000 | 1500.0 |",
        "| b | – | – |",
        "| c | – | – |",
    ]


def test_rows_of_several_seeds_become_medians():
    rows = [{"game": "a", "seed": s, "value": v} for s, v in enumerate((5, 1, 3))]
    (line,) = document.over_seeds([*rows], ("game",))
    assert line["value"] == 3 and line["each"] == rows


def test_failures_are_reported(tmp_path, capsys):
    benchmark = counting(failures=lambda rows: [f"row {len(rows)}"])
    assert benchmark.main(["--out", str(tmp_path / "out")]) == 1
    assert "FAILED row 2" in capsys.readouterr().err


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_each_benchmark_has_its_page_and_its_plan(benchmark):
    page = pathlib.Path(__file__).parents[2] / benchmark.page
    assert page.exists()
    around_table(page, f"{benchmark.name} tables")
    options = benchmark.parse([])
    assert isinstance(options, argparse.Namespace)
    for row in benchmark.plan(options)[:3]:
        assert json.loads(json.dumps(row)) and not set(row) & set(FACTS)
    benchmark.markdown([])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("deep", ["--seeds", "x"]),
        ("lookahead_players", ["--opponents", "nothing"]),
        ("cfr", ["--seconds", "x"]),
        ("lookahead_players", ["--matches", "1"]),
        ("cfr", ["--no-measuring", "--out", "no/such/folder"]),
    ],
)
def test_rejects_invalid_options(name, options, capsys):
    with pytest.raises(SystemExit):
        command.main([name, *options])
    assert "error: " in capsys.readouterr().err


def test_rejects_a_page_without_marks_before_measuring(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("no place here\n")
    with pytest.raises(SystemExit):
        command.main(["cfr", "--markdown", str(page)])
    assert "are missing" in capsys.readouterr().err
    assert page.read_text() == "no place here\n"
