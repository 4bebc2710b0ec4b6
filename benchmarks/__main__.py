"""The command of all benchmarks: `python -m benchmarks NAME ...`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from benchmarks.frame import Benchmark

# The module that has each one's `BENCHMARK`, and what it measures.
NAMES = {
    "cfr": "full-width solvers beside OpenSpiel's, LiteEFG and C",
    "automatic": "the default algorithm beside those that it chooses among",
    "deep": "deep CFR and its successors, and self-play",
    "hidden_boards": "solvers on hidden boards, judged exactly",
    "signals": "signal games: endgames of Libratus",
    "exploiting": "what one call of `exploit` finds, beside what is exact",
    "partial": "players of games that are too large to be compiled",
    "devices": "solvers on the CPU and on a GPU",
}


def find(name: str) -> Benchmark:
    """The benchmark of a name, one of `NAMES`."""
    return importlib.import_module(f"benchmarks.{name}").BENCHMARK


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark that is named first, with the options after it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Benchmarks; each has its own options: NAME --help.",
        epilog="\n".join(f"  {name}: {words}" for name, words in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the benchmark")
    given = parser.parse_args(arguments)
    return find(given.name).main(given.options)


if __name__ == "__main__":
    sys.exit(main())
