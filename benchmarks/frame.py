"""The frame of every benchmark: its command, its JSON lines, its tables in a document.

A benchmark measures rows of facts, one after the other. Each row is written as a line
of JSON as soon as it is there, together with the conditions of the run. The tables are
made from these rows and from nothing else.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import game_defs  # noqa: F401  registers the project's games
from benchmarks import document
from spiel_cr.eval.common import conditions

Row: TypeAlias = dict[str, Any]

# Packages that some benchmarks use, besides those that every result depends on.
_OPTIONAL = ("jaxlib", "flax", "LiteEFG")


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What one benchmark has of its own.

    Attributes:
      name: of its module, and of its file of JSON lines.
      description: one sentence for `--help`.
      add_options: declares its options.
      measure: from the options to rows, which are written as they come.
      markdown: from rows to tables.
      tables: in the marks around its tables, which are one document's; empty: its name;
        None: no document has tables of it.
      page: the document that says what is measured; empty: that of its name.
      check: after parsing; raises ValueError for options that do not fit together.
      finish: from rows and options, at the end; draws pictures.
      failures: from rows to what went wrong; the command then exits with 1.
      group: from a row to what it is one measurement of. Its newest run counts; the
        lines of earlier runs stay in the file. None: a run replaces the file.
    """

    name: str
    description: str
    add_options: Callable[["Parser"], object]
    measure: Callable[[argparse.Namespace], Iterable[Row]]
    markdown: Callable[[Sequence[Row]], str]
    tables: str | None = ""
    page: str = ""
    check: Callable[[argparse.Namespace], object] = lambda options: None
    finish: Callable[[Sequence[Row], argparse.Namespace], object] = (
        lambda rows, options: None
    )
    failures: Callable[[Sequence[Row]], Iterable[str]] = lambda rows: ()
    group: Callable[[Row], Hashable] | None = None

    @property
    def marks(self) -> document.Marks:
        """The lines around its tables."""
        return document.marks(self.tables or self.name)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command; 1 if a measurement failed."""
        options = self._parse(arguments)
        path = pathlib.Path(options.out)
        rows = self.read(path) if options.no_measuring else self._record(options, path)
        text = self.markdown(rows) if rows else "Nothing was measured.\n"
        print(text)
        if self.tables is not None and options.markdown:
            document.write(options.markdown, text, self.marks)
        self.finish(rows, options)
        failures = list(self.failures(rows))
        for failure in failures:
            say(f"FAILED {failure}")
        return 1 if failures else 0

    def read(self, path: pathlib.Path) -> list[Row]:
        """The rows of a file that are of the newest run of what they measure."""
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return rows if self.group is None else latest(rows, self.group)

    def _record(self, options: argparse.Namespace, path: pathlib.Path) -> list[Row]:
        """Measures; each row is on the disk before the next one is measured."""
        path.parent.mkdir(parents=True, exist_ok=True)
        shared, rows = facts(), []
        with path.open("w" if self.group is None else "a", encoding="utf-8") as file:
            for row in self.measure(options):
                rows.append({**shared, **row})
                print(json.dumps(rows[-1]), file=file, flush=True)
        return rows

    def _parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        where = f"docs/{self.page or f'{self.name}.md'}"
        parser = Parser(
            prog=f"python -m benchmarks.{self.name}",
            description=self.description,
            epilog=f"What is measured, and how, is written in {where}.",
        )
        self.add_options(parser)
        how = "replace this file" if self.group is None else "are appended to this file"
        out = f"out/benchmarks/{self.name}.jsonl"
        parser.add_argument(
            "--out", default=out, help=f"JSON lines {how} (default {out})"
        )
        parser.add_argument(
            "--no-measuring",
            "--draw-only",
            action="store_true",
            help="only make tables and pictures from the lines that are there",
        )
        if self.tables is not None:
            parser.add_argument(
                "--markdown",
                type=pathlib.Path,
                metavar="PATH",
                help="put the tables between this file's marks",
            )
        options = parser.parse_args(arguments)
        if options.no_measuring and not pathlib.Path(options.out).exists():
            parser.error(f"there is no file {options.out}")
        try:
            if self.tables is not None and options.markdown:
                document.check(options.markdown, self.marks)
            self.check(options)
        except ValueError as error:
            parser.error(str(error))
        return options


class Parser(argparse.ArgumentParser):
    """A parser with the kinds of options that benchmarks have."""

    def number(
        self,
        name: str,
        default: float | None,
        words: str,
        *,
        least: float | None = None,
        kind: type[int] | type[float] = float,
    ) -> None:
        """A number, above 0 or at least `least`.

        Args:
          name: of the option.
          default: if it is left out.
          words: what it is.
          least: the smallest number allowed.
          kind: of number; that of the default, if there is one.
        """
        make = kind if default is None else type(default)

        def convert(text: str) -> float:
            value = make(text)
            if not (value > 0 if least is None else value >= least):
                bound = "above 0" if least is None else f"{least} or more"
                raise argparse.ArgumentTypeError(f"{text} must be {bound}")
            return value

        help_text = words if default is None else f"{words} (default {default})"
        self.add_argument(name, type=convert, default=default, help=help_text)

    def several(
        self,
        name: str,
        choices: Iterable[str],
        words: str,
        default: Iterable[str] | None = None,
    ) -> None:
        """One or more of some names; by default all of them."""
        known = list(choices)
        self.strings(name, known if default is None else default, words, choices=known)

    def strings(
        self, name: str, default: Iterable[str], words: str, **settings: Any
    ) -> None:
        """One or more strings."""
        values = list(default)
        words = f"{words} (default: {'; '.join(values)})"
        self.add_argument(name, nargs="+", default=values, help=words, **settings)

    def choice(
        self, name: str, choices: Iterable[str], default: str, words: str
    ) -> None:
        """One of some names."""
        words = f"{words} (default {default})"
        self.add_argument(name, choices=list(choices), default=default, help=words)

    def games(self, names: Iterable[str], words: str = "short names") -> None:
        """`--games`, OpenSpiel strings or short names."""
        self.strings("--games", names, f"OpenSpiel strings, or {words}", metavar="GAME")


def goofspiel(num_cards: int, settings: str = "points_order=descending") -> str:
    """The string of OpenSpiel's own goofspiel, with hidden bids and sequential moves.

    Args:
      num_cards: of each player.
      settings: what else goofspiel takes.
    """
    return (
        f"turn_based_simultaneous_game(game=goofspiel(imp_info=true,"
        f"num_cards={num_cards},players=2,{settings}))"
    )


def facts() -> Row:
    """The conditions of a run: date, versions, machine and its load."""
    return {
        "date": conditions.now(),
        "versions": {**conditions.versions(), **conditions.versions_of(_OPTIONAL)},
        "cpu": conditions.cpu_model(),
        "cpu_count": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def sentence(run: Mapping[str, Any], devices: Iterable[str]) -> str:
    """The conditions in words.

    Args:
      run: as `facts` gives them, or a row that has them.
      devices: where the rows of the run iterated, as JAX names it.
    """
    versions = ", ".join(f"{k} {v}" for k, v in run["versions"].items())
    return (
        f"Measured {run['date'][:10]} on {run['cpu']}, {run['cpu_count']} cores, "
        f"device {', '.join(sorted(set(devices))) or 'none'}, load {run['load']:.1f} "
        f"at the start; {versions}."
    )


def group_by(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Rows in groups of equal values, in the order in which they first come."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if key in row:
            groups.setdefault(row[key], []).append(row)
    return groups


def latest(rows: Iterable[Row], group: Callable[[Row], Hashable]) -> list[Row]:
    """The rows of each group's newest run; ratios are only taken within one run."""
    rows = list(rows)
    newest: dict[Hashable, str] = {}
    for row in rows:
        newest[group(row)] = max(row.get("date", ""), newest.get(group(row), ""))
    return [row for row in rows if row.get("date", "") == newest[group(row)]]


def in_a_process(function: Callable[..., Row], *arguments: object) -> Row:
    """Calls a function of a module in a new process, so that its memory is its own."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def one_thread() -> None:
    """Takes one thread per operation; before JAX makes its threads."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.environ["OMP_NUM_THREADS"] = "1"


def say(text: str) -> None:
    """Progress, apart from the tables."""
    print(text, file=sys.stderr, flush=True)
