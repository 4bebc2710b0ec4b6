"""Smoothed responses are the best there are, against strategies drawn at random."""

import jax
import numpy as np
import pytest

from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.first_order import regularisers
from tests.support import games
from tests.support.strategies import random_behaviours

SCALE = 0.3


def by_position(form, player, behaviour):
    vector = np.zeros(form.layouts[player].size)
    vector[form.layouts[player].sequences] = behaviour
    vector[0] = 1
    return vector


def blocks_of(form, player, behaviour):
    tree = form.arrays[player]
    parts = regularisers.split(tree, by_position(form, player, behaviour))
    return tuple(
        tuple(level.split(part)) for level, part in zip(tree.levels, parts, strict=True)
    )


def divergence(form, player, kind, behaviour, centre):
    """d(x) by its definition, infoset by infoset, weights one."""
    decisions = form.decisions[player]
    reach = np.ones(decisions.num_sequences)
    total = 0.0
    order = np.argsort(decisions.levels(), kind="stable")
    for infoset in order:
        first, count = decisions.first_sequence[infoset], decisions.num_actions[infoset]
        mine = slice(first, first + count)
        before = reach[decisions.parent[infoset]]
        played, middle = behaviour[mine], centre[mine]
        reach[mine] = before * played
        if kind == "entropy":
            total += before * np.sum(played * np.log(played / middle))
        else:
            total += before * np.sum((played - middle) ** 2) / 2
    return total, reach


@pytest.mark.parametrize("kind", ["entropy", "euclidean"])
def test_no_other_strategy_is_better(kind):
    compiled = games.compiled("kuhn")
    form, player = compiled.form, 1
    decisions, tree = form.decisions[player], form.arrays[player]
    rng = np.random.default_rng(0)
    slope = rng.normal(size=decisions.num_sequences)
    centre = random_behaviours(compiled, 1)[player]
    weights = ones_like(regularisers.make_weights(form, player, "height"))
    with jax.enable_x64(True):
        response = regularisers.respond(
            *(tree, kind, weights, by_slope(form, player, slope), SCALE),
            blocks_of(form, player, centre),
        )
        reach = np.asarray(treeplex.reach(tree, response.strategy))
        value = float(response.value)
    own = reach[form.layouts[player].sequences]
    behaviour = own / np.append(1.0, own[decisions.parent[decisions.owner[1:]]])

    def objective(strategy):
        cost, sequences = divergence(form, player, kind, strategy, centre)
        return slope @ sequences - SCALE * cost

    if kind == "entropy":
        assert behaviour.min() > 0
    assert objective(np.maximum(behaviour, 1e-300)) == pytest.approx(value, abs=1e-12)
    for seed in range(2, 40):
        other = random_behaviours(compiled, seed)[player]
        near = 0.99 * behaviour + 0.01 * other
        assert objective(other) < value and objective(near) < value + 1e-12


def ones_like(weights):
    return jax.tree.map(np.ones_like, weights)


def by_slope(form, player, slope):
    vector = np.zeros(form.layouts[player].size)
    vector[form.layouts[player].sequences] = slope
    return vector


def test_weights_and_diameters_by_hand():
    """Player 0 of Kuhn poker decides once, and again after check and bet."""
    form = games.compiled("kuhn").form
    weights = {
        name: regularisers.make_weights(form, 0, name)
        for name in ("height", "balanced")
    }
    weights["one"] = ones_like(weights["height"])
    flat = {
        name: [float(np.max(factor)) for level in found for factor in level]
        for name, found in weights.items()
    }
    assert flat["one"] == [1, 1] and flat["height"] == [2, 1]
    # 2 + 2 · 2 above 2, over the largest.
    assert flat["balanced"] == pytest.approx([1, 1 / 3])
    found = {
        (kind, name): regularisers.diameter(form, 0, kind, weights[name])
        for kind in ("entropy", "euclidean")
        for name in ("one", "height")
    }
    assert found["entropy", "one"] == pytest.approx(6 * np.log(2))
    assert found["entropy", "height"] == pytest.approx(9 * np.log(2))
    assert found["euclidean", "height"] == pytest.approx(9 / 4)
