"""Shares a budget of buckets out: the integer program, as a knapsack.

Gilpin, Sandholm & Sorensen 2007, "Potential-aware automated abstraction of sequential
games": each bucket of a round gets at least one child in the next, all together no more
than the budget, and what the children cost in sum is least. The costs of a parent's
children are those of its own clusterings, so the program is a knapsack with choices of
one class each; dynamic programming solves it exactly.
"""

from collections.abc import Sequence

import numpy as np


def share_out(costs: Sequence[np.ndarray], budget: int) -> np.ndarray:
    """How many children each parent gets.

    Args:
      costs: for each parent float64 [m], what 1 .. m children cost.
      budget: of all children; more than the parents could use is left over.

    Returns:
      int64 [parents], at least 1 each, at most `budget` in sum. Of equally cheap ways
      one with the fewest children.

    Raises:
      ValueError: there are more parents than children.
    """
    if len(costs) > budget:
        raise ValueError(
            f"budget={budget}: there are {len(costs)} parents, and each needs a bucket "
            f"of its own; raise the budget to at least {len(costs)}"
        )
    spare = budget - len(costs)
    # What the parents so far cost with s children beyond their first ones, in all.
    best = np.zeros(spare + 1)
    chosen = []
    for parent_costs in costs:
        most = min(len(parent_costs) - 1, spare)
        total, extra = best + parent_costs[0], np.zeros(spare + 1, np.int64)
        for more in range(1, most + 1):
            through = best[: spare + 1 - more] + parent_costs[more]
            better = through < total[more:] * (1 - 1e-12)
            total[more:][better] = through[better]
            extra[more:][better] = more
        best = total
        chosen.append(extra)
    counts = np.ones(len(costs), np.int64)
    left = int(np.argmax(best <= best.min() * (1 + 1e-12)))
    for parent in reversed(range(len(costs))):
        counts[parent] += chosen[parent][left]
        left -= int(chosen[parent][left])
    return counts
