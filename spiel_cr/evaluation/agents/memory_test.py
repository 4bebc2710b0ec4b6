"""A test whether an agent's answers depend on earlier hands."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Probability of a false alarm.
LEVEL = 0.01
_PERMUTATIONS = 1999


class MemoryTest(NamedTuple):
    """Comparison of answers in separate sessions with those after other hands.

    Attributes:
      p_value: Probability of a difference at least as large without memory; None if
        nothing was compared.
      infosets: Number of compared infosets.
    """

    p_value: float | None
    infosets: int

    @property
    def has_memory(self) -> bool:
        """Whether the answers differ at the level of 1%."""
        return self.p_value is not None and self.p_value <= LEVEL


def memory_test(
    tables: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    exact: bool = False,
    seed: int = 0,
) -> MemoryTest:
    """Compare counts of moves by a pooled chi-square statistic.

    Its distribution is that of random permutations of the answers at each infoset, so
    that the level also holds for small counts.

    Args:
      tables: Two arrays of counts by action for each infoset.
      exact: Whether they are sums of probabilities, which may differ by rounding alone.
      seed: Seed of the permutations.
    """
    if exact and tables:
        shares = ((one / one.sum(), other / other.sum()) for one, other in tables)
        differs = any(np.abs(one - other).max() > 1e-6 for one, other in shares)
        return MemoryTest(0.0 if differs else 1.0, len(tables))
    random = np.random.default_rng(seed)
    observed, permuted, compared = 0.0, np.zeros(_PERMUTATIONS), 0
    for one, other in tables:
        one, other = np.rint(one), np.rint(other)
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
