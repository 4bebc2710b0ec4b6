"""GameShrink: partitions of private states, their tests, and the abstract games."""

from spiel_cr.abstraction.gameshrink.counts import DealCounts, count
from spiel_cr.abstraction.gameshrink.equitable import (
    UnequalSignals,
    difference,
    lossless_partition,
)
from spiel_cr.abstraction.gameshrink.histograms import histogram_partition
from spiel_cr.abstraction.gameshrink.linear_program import LPSize, lp_rows, lp_size
from spiel_cr.abstraction.gameshrink.partition import Partition, coarsen, lift

__all__ = [
    "DealCounts",
    "UnequalSignals",
    "LPSize",
    "Partition",
    "coarsen",
    "count",
    "difference",
    "histogram_partition",
    "lift",
    "lossless_partition",
    "lp_rows",
    "lp_size",
]
