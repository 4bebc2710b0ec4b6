"""What tests of several benchmarks share: a page for tables, facts of a run."""

import json
import pathlib
from typing import Any

from benchmarks.frame import Benchmark

# The conditions of a run, as its rows have them.
FACTS: dict[str, Any] = {
    "date": "2020-01-02T03:04:05+00:00",
    "versions": {"python": "3.11"},
    "cpu": "abacus",
    "cpu_count": 2,
    "load": 0.0,
    "device": "cpu",
}


def run_on_page(
    benchmark: Benchmark, folder: pathlib.Path, command: list[str]
) -> tuple[list[dict[str, Any]], str]:
    """Runs a benchmark that renews the tables of a page; its rows, and the page.

    The lines go to `out.jsonl` in the folder. What stands around the tables must stay.
    """
    lines, page, marks = folder / "out.jsonl", folder / "page.md", benchmark.marks
    page.write_text(f"before\n{marks.begin}\nold\n{marks.end}\nafter\n")
    assert benchmark.main([*command, "--out", str(lines), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{marks.begin}\n") and "old" not in text
    assert text.endswith(f"{marks.end}\nafter\n")
    return [json.loads(line) for line in lines.read_text().splitlines()], text
