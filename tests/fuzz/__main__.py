"""Campaigns of the fuzzers: many trials, which are counted, recorded and resumed.

    python -m tests.fuzz NAME FIRST LAST [--record FILE] [--only NAME ...]

runs the trials FIRST .. LAST - 1 of a fuzzer in a separate process. A crash or a hang
is a fault of its trial, and the next trial follows. A trial depends only on its number,
and on the speed of the machine if it has time limits or interruptions. A fuzzer is a
module with a context manager `trials(only)`. Its value is a function from the number of
a trial to a dict of counts, which raises AssertionError for a fault.
"""

import argparse
import collections
import contextlib
import faulthandler
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from typing import Any

from spiel_cr.common import compilation_cache

# Outcome, counts and faults of a trial.
Row = dict[str, Any]

ROOT = pathlib.Path(__file__).parents[2]
NAMES = (
    *("command_lines", "damaged_files", "damaged_lines", "interruptions"),
    *("interrupt_moments", "kill_moments", "malformed_games"),
    *("moves", "moves_by_clock"),
)
# Seconds after which a trial is ended with its process.
_STUCK = 400


def run(
    name: str,
    first: int,
    last: int,
    record: pathlib.Path,
    only: Sequence[str] = (),
    *,
    programs: pathlib.Path | None = None,
    progress: bool = False,
) -> list[Row]:
    """Run a campaign.

    Args:
      name: Name of the fuzzer.
      first: Number of the first trial.
      last: Number after the last trial.
      record: File with a JSON line for each trial; existing lines are kept.
      only: Restrictions of the fuzzer to some of its cases; empty for none.
      programs: Folder in which commands cache compiled functions after the campaign;
        None for a temporary cache next to the record.
      progress: Whether to print faults when they are found.

    Returns:
      The rows of all trials.
    """
    record.touch()
    shown = 0
    # Each trial may be a new process.
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(record.with_suffix(".programs")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    if programs is not None:
        environment = os.environ | {compilation_cache.VARIABLE: str(programs)}
    while True:
        rows = [json.loads(line) for line in record.read_text().splitlines()]
        for row in rows[shown:] if progress else ():
            for fault in row["faults"]:
                print(f"FAULT {name} {row['trial']}: {fault}", flush=True)
        shown = len(rows)
        if len(rows) >= last - first:
            return rows
        begin = first + len(rows)
        words = [name, str(begin), str(last), "--record", str(record)]
        words += ["--child", "--only", *only]
        words = [sys.executable, "-m", "tests.fuzz", *words]
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True)
        if done.returncode:
            crashed = first + len(record.read_text().splitlines())
            what = f"the process ended with {done.returncode}: {done.stderr[-600:]!r}"
            _add(record, {"trial": crashed, "outcome": "crash", "faults": [what]})


def _add(record: pathlib.Path, row: Row) -> None:
    with record.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _do(
    name: str, first: int, last: int, record: pathlib.Path, only: Sequence[str]
) -> None:
    """Run the trials of a campaign in this process."""
    # Unlike signals, this does not wait for loops in C++. Trials redirect stderr.
    last_words = open(os.dup(2), "w")
    module = importlib.import_module(f"tests.fuzz.{name}")
    with module.trials(only) as trial:
        for number in range(first, last):
            faulthandler.dump_traceback_later(_STUCK, exit=True, file=last_words)
            began = time.monotonic()
            row: Row = {"trial": number, "faults": []}
            try:
                row |= trial(number)
            except AssertionError as error:
                row |= {
                    "outcome": "fault",
                    "faults": [str(error) or traceback.format_exc(limit=-1)],
                }
            _add(record, row | {"seconds": round(time.monotonic() - began, 2)})


def report(rows: Sequence[Row]) -> str:
    """Return the number of trials by outcome, and the sums of their counts."""
    outcomes = collections.Counter(row["outcome"] for row in rows)
    sums: collections.Counter[str] = collections.Counter()
    for row in rows:
        sums.update({k: v for k, v in row.items() if isinstance(v, int | float)})
    del sums["trial"]
    lines = [f"{count:7d}  {outcome}" for outcome, count in sorted(outcomes.items())]
    lines += [f"{value:12,.1f}  {key}" for key, value in sums.items()]
    slowest = max((row.get("seconds", 0) for row in rows), default=0)
    faults = sum(len(row["faults"]) for row in rows)
    return "\n".join(
        [*lines, f"{len(rows)} trials, {faults} faults, the longest {slowest:.1f} s"]
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Run the command; return 1 if there was a fault."""
    given = parser().parse_args()
    if given.child:
        _do(given.name, given.first, given.last, given.record, given.only)
        return 0
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        record = given.record or pathlib.Path(folder) / "trials.jsonl"
        rows = run(
            *(given.name, given.first, given.last, record, given.only), progress=True
        )
        print(report(rows))
    return int(any(row["faults"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
