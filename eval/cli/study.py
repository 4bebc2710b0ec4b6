"""The command `study`: reproduce published results, and compare them with ours.

Without a name, the command lists all studies. With a name, it prints the measured
numbers, the published claims, and a verdict: reproduced, differs, or not comparable.

studies:
{studies}

With --out, it writes NAME.json, NAME.csv and NAME.png. With --workers N or --ray,
independent parts (an algorithm, a game, a seed) are computed in parallel, with the same
results. Time limits and times that a study reports (gameshrink) are then affected by
the other workers.
"""

import dataclasses
import json
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from spiel_cr.common import atomic
from spiel_cr.common.checks import check_iterations, check_number
from spiel_cr.common.executor import Executor
from spiel_cr.common.messages import number_text, progress_bar, silent

from ..common import conditions
from ..common.files import around_table, csv_text, write_all
from ..studies import page
from ..studies.study import STUDIES, Finding, MeanPoint, Measurement, Study, mean_points
from .command import Arguments, Parser, WorkerOptions

LISTS = {"studies": "\n".join(f"  {s.name}: {s.title}" for s in STUDIES.values())}
# Number of points of a quantity that are printed.
_SHOWN = 8
_BAR = "[{elapsed}] {desc}"


@dataclasses.dataclass(kw_only=True)
class StudyOptions(WorkerOptions):
    """Options of the command.

    Attributes:
      size (SHARE): Share of the default numbers of iterations and samples.
      seeds (N): Number of seeds of a study that depends on chance; the default depends
        on the study.
      out (DIR): Folder for the results: JSON, CSV, and a plot.
      table (FILE): Write a Markdown table of all results in --out. If the file has the
        two lines `<!-- studies: begin -->` and `<!-- studies: end -->`, the table
        replaces the text between them.
    """

    size: float = 1.0
    seeds: int | None = None
    out: atomic.Path | None = None
    table: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the name of the study."""
    names = tuple(STUDIES)
    parser.add_argument("name", nargs="?", choices=names, help="name of the study")


def run(arguments: Arguments) -> dict[str, object]:
    """Run a study, or list all."""
    check_number(arguments.size, "--size", "(0, 1000]")
    if arguments.seeds is not None:
        check_iterations(arguments.seeds, name="--seeds")
    if arguments.table:
        around_table(pathlib.Path(arguments.table), "studies")
        if not arguments.out:
            raise ValueError("--table: a table needs a folder of results; add --out")
    folder = pathlib.Path(arguments.out) if arguments.out else None
    executor = arguments.executor()
    report: dict[str, object] = {"studies": list(STUDIES)}
    if arguments.name:
        report = _run_study(arguments, executor, folder)
    elif not arguments.table:
        for study in STUDIES.values():
            print(f"{study.name:<20} {study.title} ({', '.join(study.sources)})")
    if arguments.table and folder is not None:
        with arguments.writing("table", arguments.table):
            page.write_table(pathlib.Path(arguments.table), folder)
    return report


def _run_study(
    arguments: Arguments, executor: Executor, folder: pathlib.Path | None
) -> dict[str, object]:
    """Measure, print and write a study."""
    study = STUDIES[arguments.name]
    start = time.perf_counter()
    print(f"{study.title}\n  sources: {', '.join(study.sources)}\n  {study.protocol}\n")
    measured = list(_measure(study, arguments, executor))
    points = mean_points(measurement for _, measurement in measured)
    findings = study.findings(points, arguments.size)
    verdict, reason = study.verdict(findings)
    _print_points(points, study.x_label)
    for finding in findings:
        print(_text_of(finding))
    seconds = time.perf_counter() - start
    print(f"\nverdict: {verdict}" + (f". {reason}" if reason else ""))
    print(f"{seconds:.1f} s")
    report = {
        "study": study.name,
        "verdict": verdict,
        "reason": reason,
        "size": arguments.size,
        "seconds": seconds,
        "findings": [finding._asdict() for finding in findings],
        "points": [point._asdict() for point in points],
    }
    if folder is not None:
        _write(arguments, folder, report, measured)
    return report


def _measure(
    study: Study, arguments: Arguments, executor: Executor
) -> Iterator[tuple[int, Measurement]]:
    """Yield seeds and measurements, with the progress on a single line."""
    text = f"computing the figures of {study.name}"
    with progress_bar(desc=text, bar_format=_BAR) as bar, silent():
        for seed, line in study.measure(arguments.size, arguments.seeds, executor):
            bar.set_description_str(
                f"{study.name}: finished {line.series}", refresh=False
            )
            bar.update()
            yield seed, line


def _print_table(points: Sequence[MeanPoint]) -> None:
    """Print numbers whose names are "column: row" as a table."""
    cells: dict[str, dict[str, str]] = {}
    for point in points:
        column, _, row = point.series.rpartition(": ")
        cells.setdefault(row, {})[column] = number_text(point.mean, ".5g")
    columns = {
        column: max(len(column), 10) + 2 for row in cells.values() for column in row
    }
    width = max(map(len, cells))
    print(" " * width + "".join(f"{c:>{w}}" for c, w in columns.items()))
    for row, numbers in cells.items():
        line = "".join(f"{numbers.get(c, ''):>{w}}" for c, w in columns.items())
        print(f"{row:<{width}}{line}")
    print()


def _print_points(points: Sequence[MeanPoint], x_label: str) -> None:
    """Print means of all quantities, of long curves the last points."""
    named = all(": " in p.series and p.seeds == 1 for p in points)
    if points and named and not x_label:
        _print_table(points)
        return
    for series in dict.fromkeys(point.series for point in points):
        curve = [point for point in points if point.series == series]
        print(series)
        for point in curve[-_SHOWN:]:
            at = f"{point.x:>14,.6g} {x_label}" if x_label else ""
            width = point.half_width
            interval = f" ± {width:.2g} ({point.seeds} seeds)" if width else ""
            print(f"{at:<36}  {number_text(point.mean, '.7g')}{interval}")
    print()


def _text_of(finding: Finding) -> str:
    reason = f" ({finding.reason})" if finding.reason else ""
    return (
        f"{finding.quantity}: {finding.verdict.upper()}{reason}\n"
        f"  published  {finding.published}\n  measured   {finding.measured}"
    )


def _write(
    arguments: Arguments,
    folder: pathlib.Path,
    report: dict[str, Any],
    measured: Sequence[tuple[int, Measurement]],
) -> None:
    """Write the files of a study."""
    name = report["study"]
    rows = [(line.series, line.x, seed, line.value) for seed, line in measured]
    facts = {"versions": conditions.versions(), **conditions.facts()}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**report, **facts}, indent=1, ensure_ascii=False)
    head = ("quantity", STUDIES[name].x_label or "x", "seed", "value")
    files = {f"{name}.json": f"{text}\n", f"{name}.csv": csv_text(head, rows)}
    write_all(folder, files, arguments.note_unwritten)
    print(f"results in {folder / name}.json and .csv")
    points = [MeanPoint(**point) for point in report["points"]]
    with arguments.writing("plot", folder / f"{name}.png"):
        page.plot(STUDIES[name], points, folder / f"{name}.png")
