"""Runs the benchmark: `python -m benchmarks.signals`."""

import sys

from benchmarks.signals.measuring import BENCHMARK

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
