"""Memories of deep solvers: reservoirs, sums by infoset, and replay buffers."""

import numpy as np
import pytest
from scipy import stats

from spiel_cr.solvers.deep.reservoirs import (
    InfosetSums,
    Replay,
    Reservoir,
    Targets,
    Transitions,
    per_infoset,
)


def visits_of(rows: np.ndarray, actions: int = 2) -> Targets:
    """Return visits whose targets are their row numbers."""
    legal = np.ones((len(rows), actions), bool)
    target = np.repeat(rows[:, None], actions, axis=1).astype(np.float32)
    return Targets(rows, legal, target, np.ones(len(rows)))


@pytest.mark.parametrize("batches", [(40,), (3, 9, 28), (12, 13, 15)])
def test_reservoirs_are_uniform_samples(batches):
    """A chi-squared test of how often each of 40 visits is among the 12 that are kept.

    The chance of a false alarm is 1e-4. Counts of a sample without replacement vary
    less than independent ones, so the statistic is divided by the share that is not
    kept.
    """
    runs, capacity, total = 600, 12, sum(batches)
    counts = np.zeros(total)
    random = np.random.default_rng(1)
    for _ in range(runs):
        reservoir = Reservoir(capacity)
        first = 0
        for size in batches:
            reservoir.add(visits_of(np.arange(first, first + size)), random)
            first += size
        kept = reservoir.targets()
        assert len(set(kept.rows)) == capacity == len(reservoir)
        assert np.array_equal(kept.target[:, 0], kept.rows)
        counts[kept.rows] += 1
    expected = runs * capacity / total
    spread = 1 - capacity / total
    statistic = ((counts - expected) ** 2 / expected).sum() / spread
    assert stats.chi2.sf(statistic * (total - 1) / total, total - 1) > 1e-4
    # Keeping only the newest visits would give a much larger statistic.
    newest = np.where(np.arange(total) >= total - capacity, runs, 0)
    assert ((newest - expected) ** 2 / expected).sum() > 1000 * statistic / total


@pytest.mark.parametrize("size", [0, 2, 700])
def test_reservoirs_keep_all_visits_below_their_capacity(size):
    reservoir = Reservoir(1000)
    random = np.random.default_rng(0)
    reservoir.add(visits_of(np.arange(0)), random)
    for rows in np.split(np.arange(size), size // 7 or 1):
        reservoir.add(visits_of(rows), random)
    if not size:
        assert not len(reservoir) and reservoir.arrays() == {"num_seen": 0}
        return
    assert np.array_equal(reservoir.targets().rows, np.arange(size))
    again = Reservoir(1000)
    again.restore(reservoir.arrays())
    assert np.array_equal(again.targets().target, reservoir.targets().target)
    with pytest.raises(ValueError, match="another size"):
        again.restore({**reservoir.arrays(), "num_seen": np.array(1)})


def test_infoset_sums_give_the_weighted_means_of_visits():
    random = np.random.default_rng(3)
    legal = random.random((5, 3)) < 0.7
    legal[:, 0] = True
    rows = random.integers(5, size=200)
    target = random.normal(size=(200, 3))
    # Targets of illegal actions are ignored.
    target[~legal[rows]] = np.nan
    visits = Targets(rows, legal[rows], target, random.random(200))
    sums = InfosetSums(legal)
    sums.add(visits._replace(weight=visits.weight * 0.25))
    sums.add(visits._replace(weight=visits.weight * 0.75))
    once = per_infoset(visits, legal)
    for row in range(5):
        mine = rows == row
        mean = np.average(target[mine], axis=0, weights=visits.weight[mine])
        assert sums.mean()[row, legal[row]] == pytest.approx(mean[legal[row]])
        assert once.target[row, legal[row]] == pytest.approx(mean[legal[row]])
    sums.discount(0.5)
    assert (sums.total >= 0).all()
    assert sums.weight == pytest.approx(once.weight / 2)


def test_replay_keeps_the_newest_moves():
    replay = Replay(10)
    for first in range(0, 24, 4):
        number = np.arange(first, first + 4)
        replay.add(
            Transitions(
                *(number, number.astype(np.int32), number.astype(np.float32)),
                *(np.zeros(4, np.int8), number, np.ones((4, 2), bool)),
            )
        )
    assert sorted(replay.at(np.arange(10)).rows) == list(range(14, 24))
    again = Replay(10)
    again.restore(replay.arrays())
    assert again.num_seen == 24
    assert np.array_equal(again.at(np.arange(10)).rows, replay.at(np.arange(10)).rows)
