"""What is carried on from iteration to iteration, beside recursions written out."""

import numpy as np
import pytest

from spiel_cr.common import networks
from spiel_cr.common.network_fits import Targets
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.advantages import Advantages
from spiel_cr.solvers.deep.infosets import ActingInfosets, TreeKnowledge
from tests.support import games

# Means are kept in single precision and multiplied by weights of at most 32.
TOLERANCE = 1e-5


@pytest.mark.parametrize("player", range(2))
@pytest.mark.parametrize(
    ("name", "alpha", "predictive"),
    [("vr-deep-dcfr+", 2.0, False), ("vr-deep-pdcfr+", 2.3, True)],
)
def test_a_bootstrapped_table_is_the_recursion(name, alpha, predictive, player):
    """R <- [R]^+ t'^alpha / (t'^alpha + 1) + sum of the visits, t' = t - 1.

    At all infosets, also those that some iterations do not visit. Visits count by their
    weights, so that an infoset that others hardly reach changes little.
    """
    knowledge = TreeKnowledge(games.compiled("kuhn"))
    legal = knowledge.legal[player]
    config = find(f"{name}(network=table,memory=reservoir,fallback=uniform)").config
    advantages = Advantages(knowledge, player, config, 0)
    random = np.random.default_rng(5 + player)
    regret, summed = np.zeros(legal.shape), np.zeros(len(legal))
    gaps = 0
    for t in range(1, 9):
        rows = random.integers(len(legal), size=7)
        target = np.where(legal[rows], random.normal(size=(7, legal.shape[1])), 0)
        weight = random.random(7) + 0.5
        advantages.learn([Targets(rows, legal[rows], target, weight)], t, random)

        gain, newest = np.zeros(legal.shape), np.zeros(len(legal))
        for row, advantage, share in zip(rows, target, weight, strict=True):
            gain[row] += share * advantage
            newest[row] += share
        gaps += len(legal) - len(set(rows))
        before, after = ((k**alpha) / (k**alpha + 1) for k in (t - 1, t))
        regret = np.maximum(regret, 0) * before + gain
        summed = summed * before + newest
        positive = np.maximum(regret, 0)
        if predictive:
            positive = np.maximum(positive * after + gain, 0)
        total = positive.sum(axis=1, keepdims=True)
        wanted = np.where(total > 0, positive, legal) / np.where(
            total > 0, total, legal.sum(axis=1, keepdims=True)
        )

        everywhere = np.arange(len(legal))
        found = summed[:, None] * advantages.approximator.outputs(everywhere)
        np.testing.assert_allclose(
            np.maximum(found, 0), np.maximum(regret, 0), atol=TOLERANCE
        )
        played = advantages.strategy(ActingInfosets(everywhere, legal))
        sure = abs(regret).max(axis=1) > 1e-3
        np.testing.assert_allclose(played[sure], wanted[sure], atol=1e-3)
        assert sure.any()
    assert gaps > 8


def test_a_network_is_asked_once_per_fit(monkeypatch):
    """Also where strategies ask two of them in turn, of advantages and predictions."""
    knowledge = TreeKnowledge(games.compiled("kuhn"))
    asked = []

    def evaluate(parameters, table):
        asked.append(parameters)
        return np.full((len(table), 2), parameters)

    monkeypatch.setattr(networks, "evaluate", evaluate)
    # Parameters are told apart by what they are, not by what they hold.
    old, prediction, new = (np.array([number]) for number in range(3))
    rows = np.array([3, 1])
    for _ in range(4):
        for own in (old, prediction):
            assert (knowledge.outputs(own, rows, 0) == own).all()
    assert len(asked) == 2
    # The oldest answers make room.
    for own in (new, prediction):
        assert (knowledge.outputs(own, rows, 0) == own).all()
    assert len(asked) == 3
