"""Sampled values of subgames are unbiased in Kuhn poker, by exact enumeration.

Every random number of a trajectory takes evenly spaced values. All probabilities are
multiples of the spacing, so each value represents the same probability, and the mean
over all combinations is exactly the expectation.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np
import pytest

from spiel_cr.common.jax_utils import cast, precision
from spiel_cr.resolving import decomposition, sampled_subgames, subgame_sampling
from spiel_cr.resolving.layer_subgames import Layer, Subgame
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.mccfr import descent
from tests.support import games

PLAYERS = (0, 1)
# Double precision; sums of thousands of numbers up to a hundred.
TOLERANCE = 1e-10
DOUBLE = np.dtype(np.float64)
# Probabilities are in quarters; with epsilon 1/2 those of sampling are in eighths.
QUARTERS = 4
# The probability of following, at all augmented infosets.
FOLLOWS = 0.25
# (player, layer) in Kuhn poker: numbers of points for the random number of each depth,
# and for the random number that selects a root.
POINTS = {
    (0, 1): (6, 2, 8, 8, 8, 1),
    (1, 1): (6, 2, 8, 8, 8, 1),
    (0, 2): (8, 1, 1, 1, 1, 6),
}
BASELINES = ("none", "average", "expected")


def sampler(baseline):
    text = f"os-mccfr(epsilon=0.5,delta=0.5,baseline={baseline})"
    return find(text).config


@functools.cache
def sampled_layer(player, number, baseline):
    tree = games.compiled("kuhn")
    d = decomposition.decompose(tree, player)
    layer = sampled_subgames.sampled_layers(d, sampler(baseline))[number - 1]
    subgames = Layer(d, number)
    return d, layer, subgames


def in_quarters(rng, count):
    """Return a random positive distribution over one or two actions, in quarters."""
    first = rng.integers(1, QUARTERS) / QUARTERS
    return np.array([1.0]) if count == 1 else np.array([first, 1 - first])


def strategies(d, rng):
    """Return random action probabilities of each player."""
    found = []
    for infosets in d.tree.infosets:
        counts = infosets.decisions.num_actions
        found.append(np.concatenate([[1.0], *(in_quarters(rng, n) for n in counts)]))
    return found


class SampledSubgame(NamedTuple):
    """A subgame's tables in double precision, with strategies and the rows' meaning."""

    d: decomposition.Decomposition
    layer: sampled_subgames.SampledLayer
    number: int
    subgame: Subgame
    nodes: np.ndarray
    roots: frozenset
    tree: subgame_sampling.SubgameTree
    mass: float
    given: np.ndarray
    behaviours: list
    strategy: np.ndarray
    rows: dict
    gadgets: int


def make_subgame(player, number, baseline, rng):
    """Return the last subgame of a layer with random values and strategies."""
    d, layer, subgames = sampled_layer(player, number, baseline)
    label = max(subgames)
    subgame, nodes = subgames[label], layer._groups.of(label)
    given = rng.normal(size=len(subgame.augmented))
    cut = layer._cut(label, subgame)
    tree, mass = layer._fill(cut, nodes, subgame, np.ones(len(subgame.roots)), given)
    tree = cast(tree, DOUBLE)
    # Restore thirds and sixths in double precision.
    used = tree.uniform.sum(axis=0) > 0
    tree.uniform[:, used] /= tree.uniform.sum(axis=0)[used]
    tree = tree._replace(share=tree.share / tree.share.sum())
    behaviours, histories = strategies(d, rng), d.tree.histories
    strategy, rows = tree.uniform.copy(), {}
    for p in (player, 1 - player):
        decisions = d.tree.infosets[p].decisions
        acts = histories.player[nodes] == p
        for i in np.unique(histories.infoset[nodes[acts]]).tolist():
            first, count = decisions.first_sequence[i], decisions.num_actions[i]
            strategy[:count, len(rows)] = behaviours[p][first : first + count]
            rows[p, i] = len(rows)
    places = slice(len(rows), len(rows) + len(given))
    strategy[:2, places] = np.array([[1 - FOLLOWS], [FOLLOWS]])
    return SampledSubgame(
        *(d, layer, number, subgame, nodes),
        frozenset(d.roots[d.layer[d.roots] == number].tolist()),
        *(tree, mass, given, behaviours, strategy, rows, len(rows)),
    )


sample = jax.jit(subgame_sampling._sample, static_argnums=5)


def mean_of_all_trajectories(made, baseline, player, points, rng):
    """Return the mean of the sampled values over all trajectories."""
    config, groups = sampler(baseline), made.layer.shape.below
    grid = itertools.product(*[(np.arange(n) + 0.5) / n for n in points])
    draws = np.array(list(grid)).T
    with precision(DOUBLE):
        state = subgame_sampling.init(made.tree, groups, config, seed=0)
        if state.baseline is not None:
            learned = rng.normal(size=state.baseline.shape)
            state = state._replace(baseline=learned)
        arrays = (made.tree, state, made.strategy, draws, player)
        values, below, _ = sample(*jax.device_put(arrays), config)
        values = np.asarray(values).reshape(made.strategy.shape)
        return values, np.asarray(below)


def history_values(histories, behaviours, first_of):
    """Return each history's value for player 0, and its reach by player and chance."""
    played = np.ones(len(histories))
    for h in range(1, len(histories)):
        up = histories.parent[h]
        p = histories.player[up]
        if p >= 0:
            actions = np.flatnonzero(histories.parent == up)
            first = first_of[p][histories.infoset[up]]
            played[h] = behaviours[p][first + h - actions[0]]
        else:
            played[h] = histories.chance[h] / histories.chance[up]
    value = np.array(histories.utility, np.float64)
    reach = np.ones((3, len(histories)))
    for h in range(len(histories) - 1, 0, -1):
        value[histories.parent[h]] += played[h] * value[h]
    for h in range(1, len(histories)):
        up = histories.parent[h]
        reach[:, h] = reach[:, up]
        reach[histories.player[up] if histories.player[up] >= 0 else 2, h] *= played[h]
    return value, reach


def expected(made, p):
    """Return the exact values that player p's updates estimate.

    They are the values of all rows, including terminate and follow in the gadget, and
    the values at the augmented infosets of the next layer.
    """
    d, layer, subgame, nodes = made.d, made.layer, made.subgame, made.nodes
    histories, number = d.tree.histories, made.number
    first = [infosets.decisions.first_sequence for infosets in d.tree.infosets]
    value, reach = history_values(histories, made.behaviours, first)
    group = np.full(len(histories), -1)
    group[d.roots] = d.root_augmented
    values = np.zeros_like(made.strategy)
    beyond = np.zeros(layer.shape.below)
    root = np.full(len(histories), -1)
    for h in nodes:
        starts = number == 1 or h in made.roots
        root[h] = h if starts else root[histories.parent[h]]
        top = 0 if number == 1 else root[h]
        others = reach[1 - p, h] * reach[2, h] / reach[1 - p, top] / reach[2, top]
        others *= histories.chance[top] / made.mass
        if number > 1 and p == d.player:
            others *= FOLLOWS
        worth_here = (1 - 2 * p) * others / layer._shared.scale
        if histories.player[h] == p:
            below = np.flatnonzero(histories.parent == h)
            row = made.rows[p, int(histories.infoset[h])]
            values[: len(below), row] += worth_here * value[below]
        if group[h] >= 0 and d.layer[h] == number + 1:
            beyond[np.searchsorted(subgame.next_augmented, group[h])] += (
                worth_here * value[h]
            )
        if number > 1 and starts and p != d.player:
            row = made.gadgets + np.searchsorted(subgame.augmented, group[h])
            values[1, row] += worth_here * value[h]
    if p != d.player:
        rows = made.gadgets + np.arange(len(subgame.augmented))
        values[0, rows] = made.given / made.mass / layer._shared.scale
    return values, beyond[:-1]


CASES = [(*seat, baseline) for seat in POINTS for baseline in BASELINES]
# The other cases compile for seconds each.
QUICK = (0, 1, "expected")
MARKED = [
    pytest.param(*case, marks=() if case == QUICK else pytest.mark.slow)
    for case in CASES
]


@pytest.mark.parametrize(("player", "number", "baseline"), MARKED)
def test_sampled_values_are_unbiased(player, number, baseline):
    """Check actions, gadget choices and augmented infosets, for random baselines."""
    rng = np.random.default_rng(5)
    made = make_subgame(player, number, baseline, rng)
    for p in PLAYERS:
        values, beyond = mean_of_all_trajectories(
            made, baseline, p, POINTS[player, number], rng
        )
        wanted, further = expected(made, p)
        mine = made.tree.owner == p
        np.testing.assert_allclose(values[:, mine], wanted[:, mine], atol=TOLERANCE)
        assert np.abs(wanted[:, mine]).max() > 0.01
        if p != player:
            np.testing.assert_allclose(beyond[:-1], further, atol=TOLERANCE)
            # Only player 0 of Kuhn poker acts twice.
            assert (np.abs(further) > 0.01).any() == ((player, number) == (0, 1))


@pytest.mark.parametrize("targets", ["one infoset", "no root"])
def test_targeted_values_are_unbiased(targets):
    """Half of the trajectories start at one infoset; the expectations do not change."""
    rng = np.random.default_rng(6)
    made = make_subgame(0, 2, "none", rng)
    mask = np.zeros(len(made.tree.root), bool)
    roots = made.d.tree.histories.infoset[made.nodes[made.tree.root[:-1]]]
    mask[: len(roots)] = (roots == made.subgame.roots[-1]) & (targets != "no root")
    assert mask.sum() == (2 if targets == "one infoset" else 0)
    made = made._replace(tree=made.tree._replace(target=mask))
    # The two targets have probability 4/12 each, and the other four roots 1/12 each.
    points = (*POINTS[0, 2][:-1], 12)
    for p in PLAYERS:
        values, _ = mean_of_all_trajectories(made, "none", p, points, rng)
        wanted, _ = expected(made, p)
        mine = made.tree.owner == p
        np.testing.assert_allclose(values[:, mine], wanted[:, mine], atol=TOLERANCE)


def test_targets_are_sampled_more_often():
    """The share of trajectories by root is the mixture of Lisý et al. 2015."""
    made = make_subgame(0, 2, "none", np.random.default_rng(6))
    tree, config = made.tree, sampler("none")
    mask = np.arange(len(tree.root)) < 2
    batch = descent.Batch(made.strategy, None, 1, 1, config)
    draw = jax.numpy.asarray((np.arange(1200) + 0.5) / 1200)
    tree = tree._replace(target=mask)
    place, front = subgame_sampling._start(tree, batch, made.strategy, draw)
    counts = np.bincount(place, minlength=len(tree.root))
    np.testing.assert_array_equal(counts[:-1], [400, 400, 100, 100, 100, 100])
    weights = np.bincount(place, front.weight, len(tree.root))
    np.testing.assert_allclose(weights, tree.share, rtol=1e-5)
