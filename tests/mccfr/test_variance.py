"""Variance of sampled values: exact on Kuhn by enumeration, and what baselines help.

The exact figures come from recursion over OpenSpiel's states: every trajectory of
outcome sampling with its probability (Lanctot et al. 2009) and its estimates.
"""

import functools
import math

import numpy as np
import pytest

import spiel_cr
from spiel_cr.cfr import cfr
from spiel_cr.mccfr import variance
from spiel_cr.policies import conversions
from tests.support import games, reference
from tests.support.strategies import random_behaviours

PLAYERS = (0, 1)
EPSILON = 0.6


@functools.cache
def late_strategy(name, iterations=200):
    """Averages, so that nothing has probability 0."""
    compiled = games.compiled(name)
    solver = cfr.make_solver(compiled.form, config=spiel_cr.parse_algorithm("cfr+"))
    solver.run(iterations)
    return tuple(solver.average_behaviour(p) for p in PLAYERS)


def _policy(tree, compiled, behaviours):
    """The strategies by the reference's infosets."""
    table = conversions.tabular_policy(compiled, behaviours)
    return reference.from_openspiel(tree, table)


def reference_values(name, behaviours):
    """Counterfactual values of actions by (player, infoset key, action)."""
    compiled = games.compiled(name)
    tree = reference.Tree(compiled.game)
    policy = _policy(tree, compiled, behaviours)
    result = {}
    for (player, key), members in tree.infosets.items():
        for action in tree.actions((player, key)):
            result[player, key, action] = (1 - 2 * player) * math.fsum(
                tree.nodes[h].chance
                * tree.own_reach(h, 1 - player, policy)
                * reference.value_at(tree, policy, tree.nodes[h].children[action])
                for h in members
            )
    return result, reference.value_at(tree, policy)


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "princess4", "dark_hex"])
@pytest.mark.parametrize("zeros", [False, True])
def test_action_values_by_recursion(name, zeros):
    compiled = games.compiled(name)
    behaviours = random_behaviours(compiled, 7, zeros=zeros)
    found, root = variance.action_values(compiled, behaviours)
    expected, value = reference_values(name, behaviours)
    assert root == pytest.approx(value, abs=1e-12)
    for p, infosets in enumerate(compiled.infosets):
        assert found[p].shape == (infosets.decisions.num_sequences,)
        assert found[p][0] == 0
        for s, owner in enumerate(infosets.decisions.owner[1:], start=1):
            key = (p, infosets.keys[owner], int(infosets.actions[s - 1]))
            # Sums of dozens of doubles of size 10.
            assert found[p][s] == pytest.approx(expected[key], abs=1e-11)


class Enumerated:
    """Moments of outcome sampling's estimates over all its trajectories."""

    def __init__(self, name, behaviours, player, epsilon):
        self.compiled = games.compiled(name)
        self.tree = reference.Tree(self.compiled.game)
        self.policy = _policy(self.tree, self.compiled, behaviours)
        self.player, self.epsilon = player, epsilon
        self.exact, self.value = reference_values(name, behaviours)
        # Lists of (probability, what the trajectory gives).
        self.total = {key: [] for key in self.tree.infosets if key[0] == player}
        self.visiting = {key: [] for key in self.total}
        self.root = []
        self._walk(0, 1.0, [])

    def _walk(self, index, probability, steps):
        """`steps`: (history, action, sigma, rho) of the player on the way."""
        node = self.tree.nodes[index]
        if node.player == reference.TERMINAL:
            self._collect(node, probability, steps)
            return
        weights = node.probabilities if node.key is None else self.policy[node.key]
        for action, child in node.children.items():
            sigma = rho = weights[action]
            below = steps
            if node.player == self.player:
                rho = self.epsilon / len(node.children) + (1 - self.epsilon) * sigma
                below = [*steps, (index, action, sigma, rho)]
            if rho:
                self._walk(child, probability * rho, below)

    def _collect(self, leaf, probability, steps):
        sign = 1 - 2 * self.player
        ratio = math.prod(sigma / rho for _, _, sigma, rho in steps)
        self.root.append((probability, (leaf.utility * ratio - self.value) ** 2))
        visited = set()
        for k, (history, action, _, _) in enumerate(steps):
            node = self.tree.nodes[history]
            visited.add(node.key)
            # The others' reach is sampled as it is, and cancels.
            weight = 1 / math.prod(rho for _, _, _, rho in steps[:k])
            tail = math.prod(sigma / rho for _, _, sigma, rho in steps[k + 1 :])
            sampled = weight * sign * leaf.utility * tail / steps[k][3]
            ours, perfect = [], []
            for other, child in node.children.items():
                exact = self.exact[(*node.key, other)]
                ours.append(((sampled if other == action else 0.0) - exact) ** 2)
                value = sign * reference.value_at(self.tree, self.policy, child)
                perfect.append((weight * value - exact) ** 2)
            self.total[node.key].append((probability, np.mean(ours)))
            self.visiting[node.key].append((probability, np.mean(perfect)))
        for key in self.total:
            if key not in visited:
                away = np.mean(
                    [self.exact[(*key, a)] ** 2 for a in self.tree.actions(key)]
                )
                self.total[key].append((probability, away))
                self.visiting[key].append((probability, away))


def moments(weighted):
    """Mean, and standard deviation, of a list of (probability, value)."""
    assert math.fsum(p for p, _ in weighted) == pytest.approx(1)
    mean = math.fsum(p * v for p, v in weighted)
    return mean, math.sqrt(math.fsum(p * (v - mean) ** 2 for p, v in weighted))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_variances_of_outcome_sampling_by_enumeration(seed):
    """Kuhn, every infoset; 50 figures, each within five of its own standard errors.

    The errors are enumerated too. A false alarm: 3e-5, if the means are normal.
    """
    compiled = games.compiled("kuhn")
    behaviours = random_behaviours(compiled, seed)
    found = spiel_cr.estimate_variance(
        compiled, f"os-mccfr(epsilon={EPSILON})", behaviours, samples=20_000, learning=0
    )
    assert found.samples >= 20_000
    off = []
    for p, infosets in enumerate(compiled.infosets):
        expected = Enumerated("kuhn", behaviours, p, EPSILON)
        rows = [
            *((expected.total[p, k], v) for k, v in _named(infosets, found.total[p])),
            *(
                (expected.visiting[p, k], v)
                for k, v in _named(infosets, found.visiting[p])
            ),
            (expected.root, found.root[p]),
        ]
        for weighted, measured in rows:
            mean, deviation = moments(weighted)
            assert mean > 0
            off.append((measured - mean) / deviation * math.sqrt(found.samples))
    assert len(off) == 2 * 13
    assert np.abs(off).max() < 5
    # Nor are they all near: the errors are those of samples, not of the method.
    assert np.abs(off).max() > 0.5
    _check_parts(found)


def _named(infosets, values):
    return list(zip(infosets.keys, values, strict=True))


def _check_parts(found):
    every = np.concatenate(found.total)
    assert found.mean_total == pytest.approx(every.mean())
    visiting = np.concatenate(found.visiting)
    assert found.mean_visiting == pytest.approx(visiting.mean())
    values = np.concatenate(found.values)
    assert found.mean_values == pytest.approx(values.mean())
    # The parts are uncorrelated; a sample of 10 000 is within a few per cent of that.
    assert values.mean() == pytest.approx((every - visiting).mean(), rel=0.05)


@pytest.mark.parametrize("scheme", ["os", pytest.param("es", marks=pytest.mark.slow)])
def test_with_the_oracle_only_visiting_varies(scheme):
    """Up to rounding; the estimate at the root does not vary at all."""
    found = spiel_cr.estimate_variance(
        games.compiled("kuhn"),
        f"{scheme}-mccfr(baseline=oracle)",
        samples=256,
        learning=0,
    )
    assert found.mean_total > 1e-3
    assert abs(found.mean_values) < 1e-12 * found.mean_total
    assert max(found.root) < 1e-24
    for total, visiting in zip(found.total, found.visiting, strict=True):
        np.testing.assert_allclose(total, visiting, rtol=1e-9)


@functools.cache
def measured(name, algorithm, samples=5_000, learning=100_000):
    return spiel_cr.estimate_variance(
        games.compiled(name),
        algorithm,
        late_strategy(name),
        samples=samples,
        learning=learning,
        seed=4,
    )


def check_learned(name, kind, share):
    none = measured(name, "os-mccfr")
    learned = measured(name, f"os-mccfr(baseline={kind})")
    assert none.mean_values > 0
    assert learned.mean_values < none.mean_values * share
    for p in PLAYERS:
        assert learned.root[p] < none.root[p] * share


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["history", "expected"])
def test_learned_baselines_remove_what_they_can(kind):
    """Kuhn poker at the average of 200 iterations of CFR+: 0.66 becomes 0.0004."""
    check_learned("kuhn", kind, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), [("history", 0.2), ("expected", 0.1)])
def test_learned_baselines_on_leduc_poker(kind, share):
    """Measured: 5.39 without, 0.57 with history baselines (a tenth)."""
    check_learned("leduc", kind, share)


@pytest.mark.slow
def test_what_baselines_learn_depends_on_learning():
    few, many = (
        spiel_cr.estimate_variance(
            games.compiled("kuhn"),
            "os-mccfr(baseline=history,decay=0.05,batch=16)",
            samples=2_000,
            learning=learning,
        )
        for learning in (0, 20_000)
    )
    assert many.mean_values < few.mean_values / 2


def test_the_same_seed_gives_the_same_figures():
    runs = [
        spiel_cr.estimate_variance(
            "kuhn_poker", "os-mccfr", samples=300, learning=0, seed=seed
        )
        for seed in (1, 1, 2)
    ]
    for p in PLAYERS:
        np.testing.assert_array_equal(runs[0].total[p], runs[1].total[p])
    assert runs[0].mean_total != runs[2].mean_total
    # Whole chunks are measured.
    assert runs[0].samples >= 300


def test_uniform_strategies_by_default():
    compiled = games.compiled("kuhn")
    uniform = tuple(
        conversions.uniform_behaviour(i.decisions) for i in compiled.infosets
    )
    given, default = (
        spiel_cr.estimate_variance(
            compiled, "os-mccfr", behaviours, samples=128, learning=0
        )
        for behaviours in (uniform, None)
    )
    assert given.mean_total == default.mean_total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "cfr+"}, "algorithm='cfr\\+' does not sample; choose one of os"),
        ({"algorithm": "os-mccfr(speed=1)"}, "unknown parameter 'speed'"),
        ({"samples": 0}, "samples=0"),
        ({"samples": 1.5}, "samples=1.5"),
    ],
    ids=str,
)
def test_refusals(change, message):
    arguments = {"game": "kuhn_poker", "algorithm": "os-mccfr", **change}
    with pytest.raises(ValueError, match=message):
        spiel_cr.estimate_variance(**arguments)
