"""Runs the benchmark: `python -m benchmarks.uncompiled`."""

import sys

from benchmarks.uncompiled.measuring import BENCHMARK

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
