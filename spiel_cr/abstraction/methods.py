"""Methods of clustering private states: settings, and features of each private state.

Both methods are those of Gilpin & Sandholm 2008, "Expectation-based versus
potential-aware automated abstraction in imperfect information games: an experimental
comparison using poker".
"""

import dataclasses

import numpy as np

from spiel_cr.abstraction.clustering import Clusters, cluster
from spiel_cr.abstraction.outcomes import Outcomes, averages
from spiel_cr.common.checks import check_choice, check_integer

DISTANCES = ("l2", "cumulative", "earth-movers")
_MOST_BINS = 2000


@dataclasses.dataclass(frozen=True)
class Method:
    """Settings of the clustering of private states.

    Attributes:
      name: Name for display; the preset or the string from which it was made.
      histograms: Use of histograms. If True, earlier rounds are clustered by histograms
        over clusters of the next round; otherwise by average strength.
      distance: Distance between histograms. "l2": Euclidean, centres are means.
        "cumulative": Euclidean distance of cumulative shares, with clusters in the
        order of their strength (Cramér's distance with a distance of one between
        neighbours). "earth-movers": the least work (mass times distance) that turns one
        histogram into the other; the distance between two clusters is the difference of
        their average strengths, and centres are medians.
      bins: Largest number of clusters of a later round in a histogram.
      restarts: Number of random starts of each clustering in several dimensions.
    """

    name: str = dataclasses.field(compare=False)
    histograms: bool = dataclasses.field(metadata={"fixed": True})
    distance: str = "cumulative"
    bins: int = 50
    restarts: int = 8

    def __post_init__(self) -> None:
        check_choice(self.distance, "distance", DISTANCES)
        check_integer(self.bins, "bins", 2, _MOST_BINS)
        check_integer(self.restarts, "restarts", 0, 1000)
        if not self.histograms:
            for name in ("distance", "bins"):
                if getattr(self, name) != getattr(Method, name):
                    raise ValueError(
                        f"{name}={getattr(self, name)}: {self.name} does not use "
                        f"histograms; omit this setting"
                    )


METHODS = {
    "win-probability": Method("win-probability", histograms=False),
    "potential-aware": Method("potential-aware", histograms=True),
}


class Features:
    """Points by which one player's private states are clustered, by round."""

    def __init__(
        self,
        parents: tuple[np.ndarray, ...],
        outcomes: Outcomes,
        method: Method,
        rng: np.random.Generator,
    ) -> None:
        """Compute average strengths; histograms are computed by `look_ahead`.

        Args:
          parents: Private state of the round before, for each round int32 [H], that
            each private state refines.
          outcomes: Weights and strengths of the player's private states.
          method: Settings of the clustering.
          rng: Random generator, advanced by `look_ahead`.
        """
        self._parents, self._outcomes, self._method = parents, outcomes, method
        self._rng = rng
        self._means = [outcomes.means(parents, r) for r in range(len(parents))]
        self._points = list(self._means)

    @property
    def norm(self) -> int:
        """Norm of distances between histograms; see `clustering.cluster`."""
        method = self._method
        return 1 if method.histograms and method.distance == "earth-movers" else 2

    def points(self, round: int, members: np.ndarray) -> np.ndarray:
        """Return the points of some private states of a round, float64 [n, d]."""
        return self._points[round][members]

    def clusters(self, round: int, members: np.ndarray, most: int) -> Clusters:
        """Cluster some private states of a round into 1 .. `most` clusters."""
        return cluster(
            self.points(round, members),
            self._outcomes.weights[round][members],
            most,
            # The distance between strengths, in the last round, is Euclidean.
            norm=self.norm if round + 1 < len(self._parents) else 2,
            restarts=self._method.restarts,
            rng=self._rng,
        )

    def look_ahead(self, round: int, members: np.ndarray) -> None:
        """Compute new histograms for some private states and all that refine them.

        Clusters of the last round are computed first, then those of earlier rounds,
        down to the histograms of `round` itself.

        Args:
          round: Round of the private states.
          members: Private states, int64 [n].
        """
        if not self._method.histograms:
            return
        levels = [members]
        for parent in self._parents[round + 1 :]:
            inside = np.zeros(1 + int(parent.max(initial=0)), bool)
            kept = levels[-1]
            inside[kept[kept < len(inside)]] = True
            levels.append(np.flatnonzero(inside[parent]))
        for r in range(len(self._parents) - 1, round, -1):
            self._histogram(r, levels[r - round], levels[r - 1 - round])

    def _histogram(self, r: int, below: np.ndarray, members: np.ndarray) -> None:
        """Compute histograms of members of round r - 1 over clusters of round r."""
        method, weights = self._method, self._outcomes.weights[r]
        ways = self.clusters(r, below, method.bins)
        labels = ways.labels(len(ways.costs))
        count = 1 + int(labels.max(initial=0))
        heavy = np.maximum(np.bincount(labels, weights[below], count), 1e-300)
        # Clusters in the order of their strength.
        strength = self._means[r][below].sum(axis=1)
        mean = np.bincount(labels, weights[below] * strength, count) / heavy
        order = np.argsort(mean, kind="stable")
        shares = np.zeros((len(below), count))
        shares[np.arange(len(below)), np.argsort(order)[labels]] = 1.0
        place = np.searchsorted(members, self._parents[r][below])
        above = self._outcomes.weights[r - 1][members]
        histograms = averages(place, weights[below], shares, above)
        if self.norm == 1:
            # Work is the mass below each gap, which is moved across it, times the gap.
            histograms = histograms.cumsum(axis=1)[:, :-1] * np.diff(mean[order])
        elif method.distance == "cumulative":
            histograms = histograms.cumsum(axis=1)[:, :-1]
        width = max(method.bins, histograms.shape[1])
        if self._points[r - 1].shape[1] != width:
            self._points[r - 1] = np.zeros((len(self._parents[r - 1]), width))
        self._points[r - 1][members] = 0.0
        self._points[r - 1][members, : histograms.shape[1]] = histograms
