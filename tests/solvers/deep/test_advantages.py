"""Bootstrapped advantages, compared with the recursion in plain numpy."""

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
def test_bootstrapped_advantages_equal_the_recursion(name, alpha, predictive, player):
    """R <- [R]^+ t'^alpha / (t'^alpha + 1) + sum of the visits, t' = t - 1.

    All infosets are compared, including those that some iterations do not visit. Visits
    count by their weights, so an infoset that is rarely reached changes little.
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


def test_network_is_evaluated_once_per_fit(monkeypatch):
    """This holds if networks of advantages and predictions are queried in turn."""
    knowledge = TreeKnowledge(games.compiled("kuhn"))
    evaluated = []

    def evaluate(parameters, table):
        evaluated.append(parameters)
        return np.full((len(table), 2), parameters)

    monkeypatch.setattr(networks, "evaluate", evaluate)
    # Parameters are distinguished by identity, not by value.
    old, prediction, new = (np.array([number]) for number in range(3))
    rows = np.array([3, 1])
    for _ in range(4):
        for own in (old, prediction):
            assert (knowledge.outputs(own, rows, 0) == own).all()
    assert len(evaluated) == 2
    # The cached outputs of the oldest network are replaced.
    for own in (new, prediction):
        assert (knowledge.outputs(own, rows, 0) == own).all()
    assert len(evaluated) == 3
