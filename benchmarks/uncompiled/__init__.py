"""Games that are never compiled: how far sampling gets, beside OpenSpiel's sampler."""

from benchmarks.uncompiled.measuring import BENCHMARK

__all__ = ["BENCHMARK"]
