"""Signal games: Rhode Island Hold'em whole, rivers and turns, and what that takes."""

from benchmarks.signals.measuring import BENCHMARK

__all__ = ["BENCHMARK"]
