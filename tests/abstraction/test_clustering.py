"""Clustering by k-means and k-medians: costs, weights and reproducibility."""

import itertools

import numpy as np
import pytest

from spiel_cr.abstraction.clustering import cluster


def cost_of(points, weights, labels, norm):
    """Compute the cost of a clustering by its definition."""
    total = 0.0
    for number in np.unique(labels):
        own, heavy = points[labels == number], weights[labels == number]
        if norm == 2:
            centre = np.average(own, axis=0, weights=heavy)
            total += float(heavy @ np.square(own - centre).sum(1))
            continue
        # A median is one of the points.
        total += sum(
            min(float(heavy @ np.abs(column - c)) for c in column) for column in own.T
        )
    return total


def best_cost(points, weights, count, norm):
    """Compute the lowest cost by enumerating all clusterings."""
    return min(
        cost_of(points, weights, np.array(labels), norm)
        for labels in itertools.product(range(count), repeat=len(points))
        if len(set(labels)) == count
    )


def clusters(points, weights, most, norm=2, seed=0):
    rng = np.random.default_rng(seed)
    return cluster(points, weights, most, norm=norm, restarts=8, rng=rng)


@pytest.mark.parametrize(("seed", "norm"), [(0, 2), (1, 2), (0, 1), (1, 1)])
def test_clusters_of_numbers_are_optimal(seed, norm):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(6, 1)), rng.uniform(0.1, 2, 6)
    found = clusters(points, weights, 4, norm)
    for count in (1, 2, 3):
        best = best_cost(points, weights, count, norm)
        assert found.costs[count - 1] == pytest.approx(best, abs=1e-12)
        labels = found.labels(count)
        assert cost_of(points, weights, labels, norm) == pytest.approx(best, abs=1e-12)
        assert set(labels) == set(range(count))


@pytest.mark.parametrize("norm", [1, 2])
def test_clusters_of_vectors_are_nearly_optimal(norm):
    rng = np.random.default_rng(4)
    points, weights = rng.normal(size=(6, 3)), rng.uniform(0.1, 2, 6)
    found = clusters(points, weights, 6, norm)
    assert (np.diff(found.costs) <= 0).all()
    assert found.costs[-1] == pytest.approx(0, abs=1e-12)
    for count in (1, 2):
        cost = cost_of(points, weights, found.labels(count), norm)
        assert cost == pytest.approx(found.costs[count - 1], abs=1e-12)
        # Lloyd's algorithm finds a local optimum only.
        assert cost <= 1.05 * best_cost(points, weights, count, norm)


def test_costs_equal_those_of_the_labels():
    """The knapsack relies on these costs."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points, weights = rng.normal(size=(12, 2)), rng.uniform(0.1, 2, 12)
        found = clusters(points, weights, 6, 2, seed)
        costs = [cost_of(points, weights, found.labels(k), 2) for k in range(1, 7)]
        assert costs == pytest.approx(found.costs.tolist(), abs=1e-12), seed


@pytest.mark.parametrize("norm", [1, 2])
def test_weighted_points_equal_repeated_points(norm):
    rng = np.random.default_rng(5)
    points, weights = rng.normal(size=(9, 2)), rng.integers(1, 4, 9)
    one = clusters(points, weights.astype(float), 5, norm)
    many = clusters(np.repeat(points, weights, axis=0), np.ones(weights.sum()), 5, norm)
    np.testing.assert_allclose(one.costs, many.costs, atol=1e-12)


def test_equal_points_share_a_cluster():
    points = np.array([[0.0], [1.0], [0.0], [1.0]])
    found = clusters(points, np.ones(4), 4)
    assert len(found.costs) == 2
    assert found.labels(2).tolist() == [0, 1, 0, 1]


def test_clusters_of_many_numbers_are_nearly_optimal():
    """Neighbouring numbers are merged first; the cost includes the merging."""
    rng = np.random.default_rng(6)
    points, weights = rng.uniform(size=(4000, 1)), np.ones(4000)
    found = clusters(points, weights, 10)
    labels = found.labels(10)
    assert len(set(labels)) == 10
    cost = cost_of(points, weights, labels, 2)
    assert found.costs[9] == pytest.approx(cost)
    # The optimum for uniform numbers is ten equal intervals.
    assert cost == pytest.approx(4000 / 12 / 100, rel=0.05)


def test_same_seed_gives_same_clusters():
    points = np.random.default_rng(7).normal(size=(40, 3))
    one, other = (clusters(points, np.ones(40), 9).labels(9) for _ in range(2))
    np.testing.assert_array_equal(one, other)
