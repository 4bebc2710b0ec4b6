"""The frame of the benchmarks: options, lines, the newest run, pages."""

import argparse
import importlib
import pathlib

import pytest

from benchmarks import best_response, cfr, document, frame, large, partial
from tests.support.benchmark_pages import FACTS, run_on_page

NAMES = (
    "best_response cfr deep deep.uncompiled large learning_curves partial "
    "partial.exploitability players resolving sampling uncompiled"
).split()
ALL = [importlib.import_module(f"benchmarks.{name}").BENCHMARK for name in NAMES]


def counting(*, group=None, failures=lambda rows: ()):
    """A benchmark that measures nothing."""

    def measure(options: argparse.Namespace):
        for number in range(options.count):
            yield {"name": "tiny", "number": number}

    return frame.Benchmark(
        "counting",
        "Counts.",
        lambda parser: parser.number("--count", 2, "rows"),
        measure,
        lambda rows: f"{[row['number'] for row in rows]}\n",
        tables="count",
        group=group,
        failures=failures,
    )


def test_rows_have_the_conditions_and_the_page_has_the_tables(tmp_path):
    rows, text = run_on_page(counting(), tmp_path, ["--count", "3"])
    assert [row["number"] for row in rows] == [0, 1, 2] and "[0, 1, 2]" in text
    for row in rows:
        assert {"date", "versions", "cpu", "cpu_count", "load"} <= set(row)


def test_a_run_replaces_the_file_or_is_added_to_it(tmp_path, monkeypatch):
    dates = iter("abc")
    monkeypatch.setattr(frame, "facts", lambda: {**FACTS, "date": next(dates)})
    run_on_page(counting(), tmp_path, ["--count", "1"])
    assert len(run_on_page(counting(), tmp_path, [])[0]) == 2
    grouped = counting(group=lambda row: row["name"])
    assert len(run_on_page(grouped, tmp_path, ["--count", "3"])[0]) == 5
    # Tables are made again from the newest run.
    rows, text = run_on_page(grouped, tmp_path, ["--no-measuring"])
    assert len(rows) == 5 and "[0, 1, 2]" in text


def test_lines_are_on_the_disk_before_the_next_is_measured(tmp_path):
    out = tmp_path / "out.jsonl"
    seen = []

    def measure(options):
        for number in range(2):
            yield {"number": number}
            seen.append(len(out.read_text().splitlines()))

    benchmark = frame.Benchmark("x", "X.", lambda _: None, measure, str)
    assert benchmark.main(["--out", str(out)]) == 0
    assert seen == [1, 2]


def test_a_table_has_dashes_for_what_is_unknown():
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


def test_failures_are_told(tmp_path, capsys):
    benchmark = counting(failures=lambda rows: [f"row {len(rows)}"])
    assert benchmark.main(["--out", str(tmp_path / "out.jsonl")]) == 1
    assert "FAILED row 2" in capsys.readouterr().err


def test_each_group_has_its_newest_run_only():
    new = [{**FACTS, "name": name} for name in ("a", "a", "b")]
    old = [{**row, "date": "2019-01-01T00:00:00+00:00"} for row in new]
    other = {**old[0], "name": "c"}
    found = frame.latest([*old, other, *new], lambda row: row["name"])
    assert found == [other, *new]


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_pages_of_the_project_have_a_place_for_tables(benchmark):
    page = pathlib.Path(__file__).parents[2] / "docs" / benchmark.page
    assert page.exists()
    if benchmark.tables:
        document.check(page, benchmark.marks)


@pytest.mark.parametrize(
    ("benchmark", "command"),
    [
        (best_response, ["--seeds", "0"]),
        (best_response, ["--parts", "nothing"]),
        (large, ["--ways", "cache, read"]),
        (large, ["--seconds", "x"]),
        (partial, ["--matches", "1"]),
        (cfr, ["--no-measuring", "--out", "no/such/file.jsonl"]),
    ],
)
def test_bad_options_are_refused(benchmark, command, capsys):
    with pytest.raises(SystemExit):
        benchmark.BENCHMARK.main(command)
    assert "error: " in capsys.readouterr().err


def test_a_page_without_marks_is_refused_before_measuring(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("no place here\n")
    with pytest.raises(SystemExit):
        cfr.BENCHMARK.main(["--markdown", str(page)])
    assert "has no lines" in capsys.readouterr().err
    assert page.read_text() == "no place here\n"
