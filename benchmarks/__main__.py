"""The command of all benchmarks: `python -m benchmarks NAME ...`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from benchmarks.frame import Benchmark

# Modules that define a `BENCHMARK`, and its description.
NAMES = {
    "cfr": "full-width solvers compared with OpenSpiel's, LiteEFG and C",
    "deep": "deep CFR and its successors, and self-play",
    "phantom_games": "every kind of solver on phantom games, evaluated exactly",
    "exploit": "lower bounds of `exploit` compared with exact best responses",
    "spots": "rivers, turns and flops of hold'em, compared with postflop-solver",
    "lookahead_players": "matches of lookahead players in large games",
}


def find(name: str) -> Benchmark:
    """Return a benchmark by its name, one of `NAMES`."""
    return importlib.import_module(f"benchmarks.{name}").BENCHMARK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the first argument names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Benchmarks; each has its own options: NAME --help.",
        epilog="\n".join(f"  {name}: {text}" for name, text in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the benchmark")
    parsed = parser.parse_args(arguments)
    return find(parsed.name).main(parsed.options)


if __name__ == "__main__":
    sys.exit(main())
