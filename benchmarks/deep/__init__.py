"""Deep CFR, its successors and self-play: what they cost and come to."""

from benchmarks.deep.training import BENCHMARK

__all__ = ["BENCHMARK"]
