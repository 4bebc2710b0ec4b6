"""Weighted k-means for all numbers of clusters up to a limit, with their costs.

Points in one dimension are clustered optimally, by dynamic programming (Wang & Song
2011, "Ckmeans.1d.dp"), with means or medians. In several dimensions Lloyd's algorithm
is used: each clustering starts from the one with one cluster fewer, and also from
random starts (Arthur & Vassilvitskii 2007, "k-means++").

Legend for shapes: n points, d dimensions, k clusters.
"""

from typing import NamedTuple, Protocol

import numpy as np

# Maximum number of distinct numbers that are clustered exactly. If there are more,
# neighbours are merged first, which moves each number by at most a thousandth of the
# range.
_MOST_NUMBERS = 1000
_MOST_STEPS = 100


class Clusters(Protocol):
    """Clusterings of the same points into different numbers of clusters.

    Attributes:
      costs: Cost of each clustering, into 1, 2, ..., m clusters, float64 [m]: the sum
        of weights times distances. Costs never increase with the number of clusters.
    """

    costs: np.ndarray

    def labels(self, count: int) -> np.ndarray:
        """Return the cluster of each point among `count` clusters, int32 [n].

        Clusters are numbered from 0 without gaps. There are fewer than `count` if
        points coincide.
        """


def cluster(
    points: np.ndarray,
    weights: np.ndarray,
    most: int,
    *,
    norm: int,
    restarts: int,
    rng: np.random.Generator,
) -> Clusters:
    """Cluster points into 1 .. `most` clusters.

    Args:
      points: Points, float64 [n, d].
      weights: Weights of the points, float64 [n], at least 0.
      most: Largest number of clusters; it is limited by the number of distinct points.
      norm: Distance. 2: squared Euclidean distance to a mean; 1: sum of absolute
        differences to a median.
      restarts: Number of random starts of Lloyd's algorithm.
      rng: Random generator for the restarts, advanced by them.
    """
    distinct, first, inverse = _distinct(points)
    heavy = np.bincount(inverse, weights, len(distinct))
    # Points without weight get a tiny one, so that splitting them has a cost.
    heavy = np.maximum(heavy, 1e-12 * max(heavy.max(initial=0), 1e-300))
    most = min(most, len(distinct))
    if points.shape[1] == 1:
        return _Intervals(distinct[:, 0], heavy, inverse, most, norm)
    return _Grown(distinct, heavy, inverse, most, norm, restarts, rng)


def _distinct(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct points (up to rounding), their indices, and the inverse."""
    _, first, inverse = np.unique(
        np.round(points, 12), axis=0, return_index=True, return_inverse=True
    )
    return points[first], first, inverse.reshape(-1)


class _Intervals:
    """Optimal clusterings in one dimension, whose clusters are intervals."""

    def __init__(
        self,
        values: np.ndarray,
        weights: np.ndarray,
        inverse: np.ndarray,
        most: int,
        norm: int,
    ) -> None:
        """Cluster ascending, distinct numbers, float64 [n]; see `cluster`."""
        group = np.arange(len(values))
        if len(values) > _MOST_NUMBERS:
            span = values[-1] - values[0]
            place = (values - values[0]) / span * _MOST_NUMBERS
            group = np.unique(place.astype(int), return_inverse=True)[1].reshape(-1)
        self._group = group[inverse]
        count = 1 + int(group[-1])
        weight = np.bincount(group, weights, count)
        mean = np.bincount(group, weights * values, count) / weight
        spread = weights @ np.abs(values - mean[group]) ** norm
        most = min(most, count)
        cost = _interval_costs(mean, weight, norm)
        best = cost[0]
        self._begins = [np.zeros(count + 1, np.int32)]
        costs = [best[-1]]
        # One row for each end, so that searching for the minimum is contiguous.
        cost = np.ascontiguousarray(cost.T)
        through, ends = np.empty_like(cost), np.arange(count + 1)
        for _ in range(1, most):
            np.add(cost, best, out=through)
            begin = through.argmin(axis=1)
            best = through[ends, begin]
            self._begins.append(begin.astype(np.int32))
            costs.append(best[-1])
        self.costs = np.minimum.accumulate(np.array(costs)) + spread

    def labels(self, count: int) -> np.ndarray:
        """Return the cluster of each point; see `Clusters`."""
        end = len(self._begins[0]) - 1
        interval_of = np.zeros(end, np.int32)
        for k in reversed(range(count)):
            begin = int(self._begins[k][end])
            interval_of[begin:end] = k
            end = begin
        return _in_use(interval_of[self._group])


def _interval_costs(values: np.ndarray, weights: np.ndarray, norm: int) -> np.ndarray:
    """Return the costs of all intervals, float64 [n + 1, n + 1].

    Entry [i, j] is the cost of the points from i to before j; inf if the interval is
    empty.
    """
    total = np.append(0.0, np.cumsum(weights))
    # Values are centred, so that squares do not cancel.
    moved = values - np.average(values, weights=weights)
    first = np.append(0.0, np.cumsum(weights * moved))
    heavy = total[None] - total[:, None]
    if norm == 1:
        half = total[:, None] + heavy / 2
        middle = np.clip(np.searchsorted(total, half) - 1, 0, len(values) - 1)
        below, above = total[middle] - total[:, None], total[None] - total[middle]
        cost = moved[middle] * (below - above) + first[None] + first[:, None]
        cost -= 2 * first[middle]
    else:
        second = np.append(0.0, np.cumsum(weights * moved**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = second[None] - second[:, None]
            cost -= np.square(first[None] - first[:, None]) / heavy
    return np.where(heavy > 0, np.maximum(cost, 0), np.inf)


class _Grown:
    """Clusterings in several dimensions, each grown out of the one before.

    The new cluster starts at the point with the highest cost.
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        inverse: np.ndarray,
        most: int,
        norm: int,
        restarts: int,
        rng: np.random.Generator,
    ) -> None:
        """Cluster distinct points, float64 [n, d]; for the arguments see `cluster`."""
        self._points, self._weights, self._inverse = points, weights, inverse
        self._norm, self._rng = norm, rng
        centres = _centres(points, weights, np.zeros(len(points), np.int32), 1, norm)
        clustering = _lloyd(points, weights, centres, norm)
        self._steps = [clustering]
        while len(self._steps) < most:
            far = int(np.argmax(weights * clustering.distances))
            centres = np.vstack([clustering.centres, points[far : far + 1]])
            starts = [centres]
            if len(centres) < len(points):
                count = 1 + len(self._steps)
                starts += [self._start(count) for _ in range(restarts)]
            tried = [_lloyd(points, weights, start, norm) for start in starts]
            clustering = min([*tried, clustering], key=lambda step: step.cost)
            self._steps.append(clustering)
        self.costs = np.array([step.cost for step in self._steps])

    def labels(self, count: int) -> np.ndarray:
        """Return the cluster of each point; see `Clusters`."""
        return _in_use(self._steps[count - 1].labels[self._inverse])

    def _start(self, count: int) -> np.ndarray:
        """Draw centres [k, d] with k-means++, which prefers distant points."""
        points, weights = self._points, self._weights
        chosen = [int(self._rng.choice(len(points), p=weights / weights.sum()))]
        distances = _distances(points, points[chosen], self._norm)[:, 0]
        while len(chosen) < count:
            weighted = weights * distances
            if not weighted.sum() > 0:
                break
            chosen.append(
                int(self._rng.choice(len(points), p=weighted / weighted.sum()))
            )
            far = _distances(points, points[chosen[-1:]], self._norm)[:, 0]
            distances = np.minimum(distances, far)
        return points[chosen]


class _Clustering(NamedTuple):
    """One clustering.

    Attributes:
      labels: Cluster of each point, int32 [n].
      centres: Centres of the clusters, float64 [k, d].
      distances: Distance of each point to its centre, float64 [n].
      cost: Weighted sum of the distances.
    """

    labels: np.ndarray
    centres: np.ndarray
    distances: np.ndarray
    cost: float


def _lloyd(
    points: np.ndarray, weights: np.ndarray, centres: np.ndarray, norm: int
) -> _Clustering:
    """Improve centres until the cost no longer decreases."""
    best: _Clustering | None = None
    for _ in range(_MOST_STEPS):
        distance = _distances(points, centres, norm)
        labels = distance.argmin(axis=1)
        distances = distance[np.arange(len(points)), labels]
        cost = float(weights @ distances)
        if best is not None and not cost < best.cost * (1 - 1e-12):
            break
        best = _Clustering(labels.astype(np.int32), centres, distances, cost)
        centres = _centres(points, weights, labels, len(centres), norm, centres)
    assert best is not None
    return best


def _distances(points: np.ndarray, centres: np.ndarray, norm: int) -> np.ndarray:
    """Return the distances between points and centres, float64 [n, k]."""
    if norm == 2:
        squares = np.square(points).sum(1)[:, None] + np.square(centres).sum(1)
        return np.maximum(squares - 2 * points @ centres.T, 0.0)
    distance = np.zeros((len(points), len(centres)))
    for coordinates, centre in zip(points.T, centres.T, strict=True):
        distance += np.abs(coordinates[:, None] - centre)
    return distance


def _centres(
    points: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    count: int,
    norm: int,
    empty: np.ndarray | None = None,
) -> np.ndarray:
    """Return means or medians, float64 [k, d]; empty clusters keep their centres."""
    total = np.bincount(labels, weights, count)
    used = total > 0
    centres = np.zeros((count, points.shape[1])) if empty is None else empty.copy()
    for j, coordinates in enumerate(points.T):
        if norm == 2:
            sums = np.bincount(labels, weights * coordinates, count)
            centres[used, j] = sums[used] / total[used]
            continue
        order = np.lexsort((coordinates, labels))
        heavy = np.cumsum(weights[order])
        ends = np.cumsum(np.bincount(labels, minlength=count))
        before = np.append(0.0, heavy)[ends - np.bincount(labels, minlength=count)]
        middle = np.searchsorted(heavy, before + total / 2)
        centres[used, j] = coordinates[order[np.minimum(middle, len(order) - 1)]][used]
    return centres


def _in_use(labels: np.ndarray) -> np.ndarray:
    """Number the same clusters from 0 without gaps, int32."""
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int32)
