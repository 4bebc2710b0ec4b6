"""Trains on small games: `python -m benchmarks.deep`."""

import sys

from benchmarks.deep.training import BENCHMARK

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
