"""A test whether an agent's answers depend on earlier hands."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Probability of a false alarm.
LEVEL = 0.01
_PERMUTATIONS = 1999


class MemoryTest(NamedTuple):
    """Comparison of answers in new processes with those after other hands.

    Attributes:
      p_value: Probability of a difference at least as large without memory; None if
        nothing was compared.
      infosets: Number of compared infosets.
    """

    p_value: float | None
    infosets: int

    @property
    def is_found(self) -> bool:
        """Whether the answers differ at the level of 1%."""
        return self.p_value is not None and self.p_value <= LEVEL


def memory_test(
    tables: Sequence[tuple[np.ndarray, np.ndarray]], *, seed: int = 0
) -> MemoryTest:
    """Compare counts of moves by a pooled chi-square statistic.

    Its distribution is that of random permutations of the answers at each infoset, so
    that the level also holds for small counts.

    Args:
      tables: Two arrays of counts by action for each infoset.
      seed: Seed of the permutations.
    """
    random = np.random.default_rng(seed)
    observed, permuted, compared = 0.0, np.zeros(_PERMUTATIONS), 0
    for one, other in tables:
        both = (one + other).astype(np.int64)
        if not (one.sum() and other.sum() and (both > 0).sum() > 1):
            continue
        compared += 1
        drawn = random.multivariate_hypergeometric(both, int(one.sum()), _PERMUTATIONS)
        expected = both * (one.sum() / both.sum())
        # The terms of the second row are proportional to those of the first one.
        used, factor = both > 0, 1 + one.sum() / other.sum()
        observed += factor * np.sum((one - expected)[used] ** 2 / expected[used])
        permuted += factor * np.sum(
            (drawn - expected)[:, used] ** 2 / expected[used], axis=1
        )
    if not compared:
        return MemoryTest(1.0 if tables else None, len(tables))
    exceeded = int(np.sum(permuted >= observed * (1 - 1e-9)))
    return MemoryTest((1 + exceeded) / (1 + _PERMUTATIONS), len(tables))


def compare_probabilities(
    tables: Sequence[tuple[np.ndarray, np.ndarray]],
) -> MemoryTest:
    """Compare an agent's probabilities, which must not depend on other hands.

    Args:
      tables: Probabilities in a new process and after other hands, for each infoset.
    """
    if not tables:
        return MemoryTest(None, 0)
    differs = any(np.abs(one - other).max() > 1e-6 for one, other in tables)
    return MemoryTest(0.0 if differs else 1.0, len(tables))
