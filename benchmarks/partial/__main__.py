"""Plays the matches: `python -m benchmarks.partial`."""

import sys

from benchmarks.partial.matches import BENCHMARK

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
