"""Players of partial trees: how exploitable they are, what they lose, matches."""

from benchmarks.partial.matches import BENCHMARK

__all__ = ["BENCHMARK"]
