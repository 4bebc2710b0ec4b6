"""Estimates of commands compared with the time that they take, cold and warm cache.

`python -m benchmarks.time_estimates` runs each command twice in separate processes:
with an empty folder of compiled functions, and with the one that the first run filled.
It prints a table in Markdown. The machine must be idle. `--only NAME` selects commands.
"""

import argparse
import os
import pathlib
import re
import tempfile
import tomllib
from typing import NamedTuple

from benchmarks.frame import SPIEL_CR, run_command

COMMANDS: dict[str, str] = tomllib.loads(
    pathlib.Path(__file__).with_suffix(".toml").read_text("utf-8")
)
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
