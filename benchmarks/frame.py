"""The structure of every benchmark: rows of data, and tables of rows.

A row has a game, an algorithm, a seed, a budget and similar values. Each row is
measured in a separate process and written to disk, with the conditions of the run,
before the next one starts. Tables are generated only from these rows.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import game_defs  # noqa: F401  registers the project's games
from benchmarks import document
from benchmarks.document import Column
from spiel_cr.common.executor import Executor
from spiel_cr.common.json_log import JsonLog
from spiel_cr.eval.common import conditions
from spiel_cr.eval.common.files import around_table

Row: TypeAlias = dict[str, Any]

# Words that run the command `spiel-cr` in a new process.
SPIEL_CR = (sys.executable, "-c", "from spiel_cr.eval.cli import entry; entry.main()")
# Packages that some benchmarks use, in addition to those that every result depends on.
_OPTIONAL = ("jaxlib", "flax", "LiteEFG")


class Axis(NamedTuple):
    """An argument of a benchmark's measurement, and the option that sets it.

    Attributes:
      default: Default value; a tuple contains several, which are all measured.
      help: Description.
      choices: Allowed values; if empty, any value is allowed.
      least: Smallest allowed number; if None, any positive number is allowed.
      identifies: Whether rows with different values are different measurements; if
        not, a new row replaces an earlier one.
    """

    default: Any
    help: str
    choices: Sequence[Any] = ()
    least: float | None = None
    identifies: bool = True

    def add(self, parser: argparse.ArgumentParser, name: str) -> None:
        """Declare the option; the option of several values has a plural name."""
        is_list = isinstance(self.default, tuple)
        kind = type(self.default[0] if is_list else self.default)

        def convert(text: str) -> Any:
            value = kind(text)
            low = self.least
            if kind is not str and not (value > 0 if low is None else value >= low):
                bound = "above 0" if low is None else f"{low} or more"
                raise argparse.ArgumentTypeError(f"{text} must be {bound}")
            return value

        default = "; ".join(map(str, self.default)) if is_list else self.default
        plural = f"{name.rstrip('s')}s" if is_list else name
        parser.add_argument(
            f"--{plural.replace('_', '-')}",
            dest=name,
            nargs="+" if is_list else None,
            type=convert,
            default=self.default,
            choices=self.choices or None,
            metavar=None if self.choices else name.upper(),
            help=f"{self.help} (default {default})",
        )


class FactsTable(NamedTuple):
    """A table of rows.

    Attributes:
      title: Text above the table.
      columns: Columns by title.
      labels: Number of leading columns that contain text.
      lines: Function from rows to the facts of the table's lines.
      per: A fact of the lines; each of its values gets a table with a heading.
    """

    title: str
    columns: Mapping[str, Column]
    labels: int = 1
    lines: Callable[[Sequence[Row]], Sequence[Row]] = list
    per: str = ""

    def markdown(self, rows: Sequence[Row]) -> str:
        """Return the table of these rows."""
        lines, text = self.lines(rows), f"{self.title}\n"
        groups = group_by(lines, self.per) if self.per else {"": lines}
        for name, group in groups.items():
            heading = f"\n### {name}\n" if name else ""
            table = document.table(group, self.columns, labels=self.labels)
            text += f"{heading}\n{table}"
        return text


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A benchmark: a command, a measurement and its page.

    Attributes:
      name: Name of the command, and of the folder of its rows.
      help: One sentence for `--help`.
      measure: Function from the values of the axes, by name, to results.
      axes: Axes by name; every combination of their values is a row.
      tables: Tables of all rows.
      failures: Function from rows to failures; with any, the command exits with 1.
      note: Name of the page with the tables; by default, that of the benchmark.
      folder: Folder of the page in docs.
    """

    name: str
    help: str
    measure: Callable[..., Row]
    axes: Mapping[str, Axis]
    tables: Sequence[FactsTable]
    failures: Callable[[Sequence[Row]], Iterable[str]] = lambda rows: ()
    note: str = ""
    folder: str = "development/lab-notes"

    @property
    def page(self) -> str:
        """The page that explains the measurements and contains the tables."""
        name = self.note or self.name.replace("_", "-")
        return f"docs/{self.folder}/{name}.md"

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command, and return 1 if a measurement failed."""
        options = self.parse(arguments)
        settings = {"benchmark": self.name}
        with JsonLog(options.out, "rows", settings, key=("key",)) as log:
            if not options.no_measuring:
                self._measure_all(options, log)
            rows = list(log.records.values())
        text = self.markdown(rows) if rows else "Nothing was measured.\n"
        print(text)
        if options.markdown:
            document.write(options.markdown, text, self.name)
        failures = list(self.failures(rows))
        for failure in failures:
            say(f"FAILED {failure}")
        return 1 if failures else 0

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse the options of a command, and exit if they are invalid."""
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks {self.name}",
            description=self.help,
            epilog=f"{self.page} explains what is measured, and how.",
        )
        for name, axis in self.axes.items():
            axis.add(parser, name)
        out = f"out/benchmarks/{self.name}"
        parser.add_argument(
            "--out", default=out, help=f"folder to which rows are added ({out})"
        )
        text = "skip rows that the same source code measured with the same budget"
        parser.add_argument("--resume", action="store_true", help=text)
        text = "generate tables from existing rows without measuring"
        parser.add_argument("--no-measuring", action="store_true", help=text)
        text = "write the tables between the marks of this file"
        parser.add_argument("--markdown", type=pathlib.Path, metavar="PATH", help=text)
        options = parser.parse_args(arguments)
        if options.no_measuring and not pathlib.Path(options.out).exists():
            parser.error(f"--out={options.out}: the folder does not exist")
        try:
            if options.markdown:
                around_table(options.markdown, f"{self.name} tables")
        except ValueError as error:
            parser.error(str(error))
        return options

    def markdown(self, rows: Sequence[Row]) -> str:
        """Return the conditions of all rows, and the tables."""
        text = [sentence(run) for run in group_by(rows, "date").values()]
        return "\n".join([*text, *(table.markdown(rows) for table in self.tables)])

    def plan(self, options: argparse.Namespace) -> list[Row]:
        """Return the rows to measure; the last axis changes fastest."""
        values = [getattr(options, name) for name in self.axes]
        lists = [v if isinstance(v, tuple | list) else [v] for v in values]
        return [
            dict(zip(self.axes, row, strict=True)) for row in itertools.product(*lists)
        ]

    def _measure_all(self, options: argparse.Namespace, log: JsonLog) -> None:
        """Measure rows; each is written to disk before the next one starts."""
        shared = facts()
        for row in self.plan(options):
            identity = {k: v for k, v in row.items() if self.axes[k].identifies}
            key = json.dumps(identity)
            before = log.records.get((key,), {})
            if options.resume and before.get("source") == shared["source"]:
                if row.items() <= before.items():
                    continue
            say(f"{self.name}: {' '.join(map(str, row.values()))}")
            results = in_a_process(self.measure, **row)
            log.add({"key": key, **shared, **row, **results})


def facts() -> Row:
    """Return the conditions of a run: date, versions, source code, machine and load."""
    return {
        "date": conditions.now(),
        "versions": {**conditions.versions(), **conditions.versions_of(_OPTIONAL)},
        "source": conditions.source(),
        "cpu": conditions.cpu_model(),
        "cpu_count": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the conditions of a run's rows."""
    run = rows[0]
    versions = ", ".join(f"{k} {v}" for k, v in run["versions"].items())
    return (
        f"Measured {run['date'][:10]} on {run['cpu']}, {run['cpu_count']} cores, load "
        f"{run['load']:.1f} at the start; {versions}.\n"
    )


def group_by(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Group rows by a value, in order of first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if key in row:
            groups.setdefault(row[key], []).append(row)
    return groups


def in_a_process(function: Callable[..., Row], **values: Any) -> Row:
    """Call a function in a new process, so that its memory is measured separately."""
    ((_, row),) = Executor(1).map(_measurer, (function,), {0: values})
    return row


def _measurer(function: Callable[..., Row]) -> Callable[[Row], Row]:
    return lambda values: function(**values)


def run_command(command: Sequence[str], **options: Any) -> tuple[Row, str]:
    """Run a command whose last line of output is JSON, and measure its time.

    Args:
      command: Words of the command.
      **options: Further arguments of `subprocess.run`.

    Returns:
      The JSON, with the time of the whole process as `process_seconds`; and the text on
      stderr.

    Raises:
      subprocess.SubprocessError: If it fails or does not end in time.
    """
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, **options
    )
    seconds = time.perf_counter() - start
    report = json.loads(done.stdout.splitlines()[-1])
    return {**report, "process_seconds": seconds}, done.stderr


def say(text: str) -> None:
    """Print a progress message to stderr."""
    print(text, file=sys.stderr, flush=True)
