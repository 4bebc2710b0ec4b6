"""Estimates of commands compared with the time that they take, cold and warm cache.

`python -m benchmarks.time_estimates` runs each command twice in separate processes:
with an empty folder of compiled functions, and with the one that the first run filled.
It prints a table in Markdown. The machine must be idle. `--only NAME` selects commands.
"""

import argparse
import os
import re
import tempfile
from typing import NamedTuple

from benchmarks.frame import SPIEL_CR, run_command

COMMANDS = {
    "solve leduc": "solve --game leduc_poker --algorithm cfr+ --seconds 5",
    "solve liar's dice": "solve --game liars_dice --algorithm cfr+ --seconds 5",
    "solve goofspiel 5": "solve --game "
    "goofspiel(num_cards=5,points_order=descending,imp_info=True) --algorithm cfr+ "
    "--seconds 5",
    "solve Rhode Island": "solve --game python_rhode_island_holdem --algorithm cfr+ "
    "--seconds 10",
    "solve phantom": "solve --game phantom_ttt --algorithm cfr+ --seconds 10",
    "resolve II-goofspiel 4": "resolve --game python_ii_goofspiel(num_cards=4)",
    "resolve leduc": "resolve --game leduc_poker",
    "compare leduc": "compare --game leduc_poker --seconds 2 --out FOLDER/out-CACHE",
    "exploit goofspiel 6": "exploit --game "
    "goofspiel(num_cards=6,points_order=descending,imp_info=True) --policy uniform "
    "--minutes 0.5",
    "spot river": "spot --board 5c9dJs2h3c --pot 1000 --stack 1500 --seconds 5",
    "spot turn": "spot --board AsKd7c2h --pot 200 --stack 900 --seconds 10",
}
_FACTOR = 1.5
# The phases of the estimate by their keys in the command's report.
_PHASES = {
    "building": "build_seconds",
    "compiling": "compile_seconds",
    "solving": "seconds",
    "evaluating": "evaluation_seconds",
}


class _Measured(NamedTuple):
    """Estimated and measured seconds of a command, and of its phases as text."""

    estimated: float
    measured: float
    phases: str

    @property
    def is_close(self) -> bool:
        """Whether the estimate is within a factor of 1.5."""
        ratio = self.estimated / self.measured
        return 1 / _FACTOR <= ratio <= _FACTOR


def measure(command: str, folder: str, cache: str) -> _Measured:
    """Run a command whose compiled functions are in a folder.

    Args:
      command: Words of the command line.
      folder: Folder of compiled functions and outputs.
      cache: "cold" or "warm".
    """
    words = command.replace("FOLDER", folder).replace("CACHE", cache).split()
    environment = os.environ | {"SPIEL_CR_COMPILATION_CACHE": folder}
    report, messages = run_command([*SPIEL_CR, *words, "--json"], env=environment)
    measured = report["process_seconds"]
    line = re.search(r"estimate: (\S+) s in total.* \((.*)\)", messages)
    if line is None:
        return _Measured(float("nan"), measured, "no estimate")
    parts = []
    for part in line[2].split(", "):
        name, _, seconds = part.partition(" ")
        value = report.get(_PHASES[name])
        actual = f"{value:.2g} s" if isinstance(value, float) else "-"
        parts.append(f"{name} {seconds} / {actual}")
    return _Measured(float(line[1]), measured, ", ".join(parts))


def main() -> None:
    """Print the table of all commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of commands")
    only, count, close = parser.parse_args().only, 0, 0
    print("| command | cache | estimate, s | measured, s | ratio | phases |")
    print("|---|---|---:|---:|---:|---|")
    for name, command in COMMANDS.items():
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("cold", "warm"):
                run = measure(command, folder, cache)
                count, close = count + 1, close + run.is_close
                print(
                    f"| {name} | {cache} | {run.estimated:.3g} | {run.measured:.3g} | "
                    f"{run.estimated / run.measured:.2f} | {run.phases} |",
                    flush=True,
                )
    print(f"\n{close} of {count} within a factor of {_FACTOR}")


if __name__ == "__main__":
    main()
