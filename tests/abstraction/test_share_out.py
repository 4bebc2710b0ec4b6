"""The knapsack that distributes a budget, compared with enumeration."""

import itertools

import numpy as np
import pytest

from spiel_cr.abstraction.buckets import share_out


@pytest.mark.parametrize("seed", range(4))
def test_shares_have_the_lowest_total_cost(seed):
    rng = np.random.default_rng(seed)
    # Costs are not convex, so a greedy distribution is not optimal.
    costs = [
        np.sort(rng.uniform(size=n))[::-1] * 2 ** rng.integers(0, 5)
        for n in (3, 5, 1, 4)
    ]
    for budget in range(4, 14):
        shares = share_out(costs, budget)
        ways = itertools.product(*(range(1, 1 + len(own)) for own in costs))
        best = min(
            sum(own[k - 1] for own, k in zip(costs, way, strict=True))
            for way in ways
            if sum(way) <= budget
        )
        total = sum(own[k - 1] for own, k in zip(costs, shares, strict=True))
        assert total == pytest.approx(best, rel=1e-11)
        assert shares.sum() <= budget and (shares >= 1).all()


def test_unneeded_budget_is_not_used():
    costs = [np.array([1.0, 0.0]), np.array([2.0])]
    assert share_out(costs, 9).tolist() == [2, 1]


def test_rejects_budgets_below_one_child_per_parent():
    with pytest.raises(ValueError, match="budget=1.*raise the budget to at least 2"):
        share_out([np.ones(1), np.ones(1)], 1)
