"""The frame of every benchmark: rows of data, measured one by one, and tables of them.

A benchmark has parts. A part has a plan: rows that say what is measured, such as game,
algorithm, seed and budget. Each row is measured in a process of its own and is on the
disk, with the conditions of the run, before the next one begins. Tables and pictures
are made from these lines and from nothing else.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import game_defs  # noqa: F401  registers the project's games
from benchmarks import document
from benchmarks.document import Column
from spiel_cr.common import processes
from spiel_cr.common.json_log import JsonLog
from spiel_cr.eval.common import conditions

Row: TypeAlias = dict[str, Any]

# Packages that some benchmarks use, besides those that every result depends on.
_OPTIONAL = ("jaxlib", "flax", "LiteEFG")


class Option(NamedTuple):
    """An option of a command.

    Attributes:
      default: its value; a tuple: it takes one value or more.
      words: what it is.
      choices: the only values there are; empty: any.
      least: the smallest number allowed; None: any above 0.
      kind: of its values, where the default does not say.
    """

    default: Any
    words: str
    choices: Sequence[Any] = ()
    least: float | None = None
    kind: type | None = None

    def add(self, parser: argparse.ArgumentParser, name: str) -> None:
        """Declares it.

        Args:
          parser: of the command.
          name: without dashes before it.
        """
        several = isinstance(self.default, tuple)
        first = self.default[0] if several and self.default else self.default
        kind = self.kind or type(first)

        def convert(text: str) -> Any:
            value = kind(text)
            low = self.least
            if kind is not str and not (value > 0 if low is None else value >= low):
                bound = "above 0" if low is None else f"{low} or more"
                raise argparse.ArgumentTypeError(f"{text} must be {bound}")
            return value

        said = "; ".join(map(str, self.default)) if several else self.default
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            nargs="+" if several else None,
            type=convert,
            default=self.default,
            choices=self.choices or None,
            metavar=None if self.choices else name.upper().rstrip("S"),
            help=self.words if said in (None, "") else f"{self.words} (default {said})",
        )


class Table(NamedTuple):
    """A table of a part's rows.

    Attributes:
      title: what stands before it.
      columns: by their titles, or made from the lines.
      labels: columns of words, the first ones.
      lines: from the rows to the facts of its lines.
      per: a fact of lines; each of its values gets a table, and is its heading.
    """

    title: str
    columns: Mapping[str, Column] | Callable[[Sequence[Row]], Mapping[str, Column]]
    labels: int = 1
    lines: Callable[[Sequence[Row]], Sequence[Row]] = list
    per: str = ""

    def markdown(self, rows: Sequence[Row]) -> str:
        """The table of these rows."""
        lines, text = self.lines(rows), f"{self.title}\n"
        groups = group_by(lines, self.per) if self.per else {"": lines}
        columns = self.columns(lines) if callable(self.columns) else self.columns
        for name, its in groups.items():
            heading = f"\n### {name}\n" if name else ""
            body = document.table(its, columns, labels=self.labels)
            text += f"{heading}\n{body}"
        return text


class Picture(NamedTuple):
    """Curves of a part's rows.

    Attributes:
      file: its name, in the folder img beside the page.
      across: what the horizontal axis shows.
      curves: from rows to points, by titles of panels and labels.
    """

    file: str
    across: str
    curves: Callable[[Sequence[Row]], document.Panels]


class Part(NamedTuple):
    """One kind of measurement.

    Attributes:
      measure: from the values of a row of the plan, by name, to what was found.
      plan: from options to the rows to measure.
      tables: made of all rows of the part.
      pictures: likewise.
      budget: values of rows that are not part of what is measured: a row with other
        ones takes the place of the one before.
    """

    measure: Callable[..., Row]
    plan: Callable[[argparse.Namespace], Iterable[Row]]
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    budget: Sequence[str] = ("seconds",)


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What one benchmark has of its own.

    Attributes:
      name: of the command, and of the folder of its rows.
      words: one sentence for `--help`.
      options: by name.
      parts: by name.
      failures: from rows to what went wrong; the command then exits with 1.
      shares: the page that it shares with others; empty: it has its own.
    """

    name: str
    words: str
    options: Mapping[str, Option]
    parts: Mapping[str, Part]
    failures: Callable[[Sequence[Row]], Iterable[str]] = lambda rows: ()
    shares: str = ""

    @property
    def page(self) -> str:
        """The page that says what is measured and has the tables."""
        return f"docs/measurements/{self.shares or self.name}.md"

    @property
    def marks(self) -> document.Marks:
        """The lines around its tables."""
        return document.marks(self.name)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command; 1 if a measurement failed."""
        options = self.parse(arguments)
        about = {"benchmark": self.name}
        with JsonLog(options.out, "rows", about, key=("key",)) as log:
            if not options.no_measuring:
                self._measure(options, log)
            rows = list(log.records.values())
        text = self.markdown(rows) if rows else "Nothing was measured.\n"
        print(text)
        if options.markdown:
            document.write(options.markdown, text, self.marks)
            self._draw(rows, options.markdown)
        failures = list(self.failures(rows))
        for failure in failures:
            say(f"FAILED {failure}")
        return 1 if failures else 0

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """The options of a command; ends the process where they are wrong."""
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks {self.name}",
            description=self.words,
            epilog=f"What is measured, and how, is written in {self.page}.",
        )
        names = tuple(self.parts)
        shared = {"parts": Option(names, "what is measured", choices=names)}
        for name, option in {**shared, **self.options}.items():
            option.add(parser, name)
        out = f"out/benchmarks/{self.name}"
        parser.add_argument(
            "--out", default=out, help=f"a folder, to which rows are added ({out})"
        )
        words = "measure no row again that this program and budget have measured"
        parser.add_argument("--resume", action="store_true", help=words)
        words = "only make tables and pictures from the rows that are there"
        parser.add_argument("--no-measuring", action="store_true", help=words)
        words = "put the tables between this file's marks"
        parser.add_argument("--markdown", type=pathlib.Path, metavar="PATH", help=words)
        options = parser.parse_args(arguments)
        if options.no_measuring and not pathlib.Path(options.out).exists():
            parser.error(f"there is no folder {options.out}")
        try:
            if options.markdown:
                document.check(options.markdown, self.marks)
        except ValueError as error:
            parser.error(str(error))
        return options

    def markdown(self, rows: Sequence[Row]) -> str:
        """The conditions of all rows, and the tables."""
        runs = group_by(rows, "date").values()
        text = [sentence(mine) for mine in runs]
        for name, mine in self._of_parts(rows):
            text += [table.markdown(mine) for table in self.parts[name].tables]
        return "\n".join(text)

    def _of_parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
        groups = group_by(rows, "part")
        return ((name, groups[name]) for name in self.parts if name in groups)

    def _draw(self, rows: Sequence[Row], page: pathlib.Path) -> None:
        for name, mine in self._of_parts(rows):
            for picture in self.parts[name].pictures:
                panels = picture.curves(mine)
                if any(panels.values()):
                    path = page.parent / "img" / picture.file
                    document.draw(path, panels, picture.across)

    def _measure(self, options: argparse.Namespace, log: JsonLog) -> None:
        """Each row is on the disk before the next one is measured."""
        shared = facts()
        for name in options.parts:
            part = self.parts[name]
            for row in part.plan(options):
                planned = json.loads(json.dumps(row))
                same = {k: v for k, v in planned.items() if k not in part.budget}
                key = json.dumps([name, same])
                before = log.records.get((key,), {})
                if options.resume and before.get("source") == shared["source"]:
                    if planned.items() <= before.items():
                        continue
                say(f"{self.name}, {name}: {' '.join(map(str, row.values()))}")
                found = in_a_process(part.measure, **row)
                log.add({"key": key, "part": name, **shared, **row, **found})


def plan(**axes: str | Sequence[Any]) -> Callable[[argparse.Namespace], list[Row]]:
    """A part's plan: all combinations of the values of options.

    Args:
      **axes: for each name in a row an option, or values; options of one value are the
        same in all rows.
    """

    def rows(options: argparse.Namespace) -> list[Row]:
        values = {}
        for name, axis in axes.items():
            value = getattr(options, axis) if isinstance(axis, str) else axis
            values[name] = value if isinstance(value, tuple | list) else [value]
        return product(**values)

    return rows


def product(**axes: Iterable[Any]) -> list[Row]:
    """All combinations of some values, as rows; the last name changes fastest."""
    return [
        dict(zip(axes, values, strict=True))
        for values in itertools.product(*axes.values())
    ]


def facts() -> Row:
    """The conditions of a run: date, versions, source code, machine and its load."""
    return {
        "date": conditions.now(),
        "versions": {**conditions.versions(), **conditions.versions_of(_OPTIONAL)},
        "source": conditions.source(),
        "cpu": conditions.cpu_model(),
        "cpu_count": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """The conditions of a run's rows in words."""
    run = rows[0]
    versions = ", ".join(f"{k} {v}" for k, v in run["versions"].items())
    parts = ", ".join(dict.fromkeys(row["part"] for row in rows))
    return (
        f"Measured {run['date'][:10]} on {run['cpu']}, {run['cpu_count']} cores, load "
        f"{run['load']:.1f} at the start; {versions}. Parts: {parts}.\n"
    )


def group_by(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Rows in groups of equal values, in the order in which they first come."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if key in row:
            groups.setdefault(row[key], []).append(row)
    return groups


def in_a_process(function: Callable[..., Row], **values: Any) -> Row:
    """Calls a function of a module in a new process, so that its memory is its own."""
    with processes.asking(_measurer, function) as measure:
        row: Row = measure(values)
    return row


def _measurer(function: Callable[..., Row]) -> Callable[[tuple[Row]], Row]:
    return lambda request: function(**request[0])


def one_thread() -> None:
    """Takes one thread per operation; before JAX makes its threads."""
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{given} --xla_cpu_multi_thread_eigen=false"
    os.environ["OMP_NUM_THREADS"] = "1"


def say(text: str) -> None:
    """Progress, apart from the tables."""
    print(text, file=sys.stderr, flush=True)
