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
    parts = treeplex.by_level(tree.levels, by_position(form, player, behaviour))
    return tuple(
        tuple(level.split(part)) for level, part in zip(tree.levels, parts, strict=True)
    )


def divergence(form, player, behaviour, centre):
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
        total += before * np.sum(played * np.log(played / middle))
    return total, reach


def test_no_other_strategy_is_better():
    compiled = games.compiled("kuhn")
    form, player = compiled.form, 1
    decisions, tree = form.decisions[player], form.arrays[player]
    reach = np.random.default_rng(0).uniform(size=form.layouts[0].size)
    centre = random_behaviours(compiled, 1)[player]
    weights = jax.tree.map(np.ones_like, regularisers.make_weights(form, player))
    with jax.enable_x64(True):
        leaves = treeplex.leaf_values(tree, jax.numpy.asarray(reach))
        response = regularisers.respond(
            tree, weights, leaves, SCALE, blocks_of(form, player, centre)
        )
        slope = np.asarray(regularisers.gradient(tree, jax.numpy.asarray(reach)))
        reach = np.asarray(treeplex.reach(tree, response.strategy))
        value = float(response.value)
    slope = slope[form.layouts[player].sequences]
    own = reach[form.layouts[player].sequences]
    behaviour = own / np.append(1.0, own[decisions.parent[decisions.owner[1:]]])

    def objective(strategy):
        cost, sequences = divergence(form, player, strategy, centre)
        return slope @ sequences - SCALE * cost

    assert behaviour.min() > 0
    assert objective(behaviour) == pytest.approx(value, abs=1e-12)
    for seed in range(2, 40):
        other = random_behaviours(compiled, seed)[player]
        near = 0.99 * behaviour + 0.01 * other
        assert objective(other) < value and objective(near) < value + 1e-12


def test_weights_by_hand():
    """Player 0 of Kuhn poker decides once, and again after check and bet."""
    found = regularisers.make_weights(games.compiled("kuhn").form, 0)
    flat = [float(np.max(factor)) for level in found for factor in level]
    # 2 + 2 · 2 above 2, over the largest.
    assert flat == pytest.approx([1, 1 / 3])
