"""Helpers of benchmark tests: a page with tables, and the conditions of a run."""

import json
import pathlib
from typing import Any

import pytest

from benchmarks import frame
from benchmarks.frame import Benchmark

# The conditions of a run, as in its rows.
FACTS: dict[str, Any] = {
    "date": "2020-01-02T03:04:05+00:00",
    "versions": {"python": "3.11"},
    "source": "abc",
    "cpu": "abacus",
    "cpu_count": 2,
    "load": 0.0,
}


def stay_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure rows in this process instead of in separate processes."""
    monkeypatch.setattr(
        frame, "in_a_process", lambda measure, **values: measure(**values)
    )


def run_on_page(
    benchmark: Benchmark, folder: pathlib.Path, command: list[str]
) -> tuple[list[dict[str, Any]], str]:
    """Run a benchmark that updates the tables of a page; return its rows and the page.

    The rows go to `out` in the folder. The text around the tables must not change.
    """
    out, page = folder / "out", folder / "page.md"
    begin, end = (
        f"<!-- {benchmark.name} tables: {part} -->" for part in ("begin", "end")
    )
    page.write_text(f"before\n{begin}\nstale\n{end}\nafter\n")
    assert benchmark.main([*command, "--out", str(out), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{begin}\n") and "stale" not in text
    assert text.endswith(f"{end}\nafter\n")
    lines = (out / "rows.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], text
