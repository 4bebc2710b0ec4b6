"""What a player considers possible, against Bayes' rule."""

import numpy as np
import pytest

import game_defs  # noqa: F401  registers the games
from spiel_cr.games.tree.compiler import compile_game
from spiel_cr.resolving.partial.match import most_roots
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.particle_belief import (
    Belief,
    ParticleFilter,
    uniform_strategy,
)


def test_so_many_roots_that_few_histories_fit_below():
    assert most_roots(300) == 4
    assert most_roots(3000) == 46
    assert most_roots(10**6) == 1000
    assert [most_roots(n) for n in (2, 3, 5)] == [1, 2, 4]


def believe(name, player, most, steps):
    """A belief after decisions, [(action before, key), ...]."""
    particles = ParticleFilter(
        *(PartialTree.start(name, 2).simulator, player),
        strategies=(uniform_strategy, uniform_strategy),
        most=most,
        random=np.random.default_rng(0),
    )
    belief = Belief(particles.simulator.root(), np.ones(1))
    for action, key in steps:
        step = particles.step(belief, action, key)
        if step is None:
            return None
        belief = step.belief
    return belief


@pytest.mark.parametrize("name", ["python_leduc_poker", "leduc_poker"])
def test_a_belief_holds_every_consistent_history(name):
    """By Bayes' rule, from the whole game, against uniform play."""
    tree = compile_game(name)
    histories, player = tree.histories, 1
    infosets = tree.infosets[player]
    deep = int(np.flatnonzero(infosets.decisions.levels() == 1)[3])
    parent = int(infosets.decisions.parent[deep])
    above = int(infosets.decisions.owner[parent])
    steps = [
        (None, infosets.keys[above]),
        (int(infosets.actions[parent - 1]), infosets.keys[deep]),
    ]
    belief = believe(name, player, 10_000, steps)
    members = np.flatnonzero((histories.player == player) & (histories.infoset == deep))
    expected = []
    for h in members:
        reach, at = float(histories.chance[h]), int(h)
        while (up := int(histories.parent[at])) >= 0:
            if histories.player[up] == 1 - player:
                reach /= np.count_nonzero(histories.parent == up)
            at = up
        expected.append(reach)
    assert len(belief.weights) == len(members)
    np.testing.assert_allclose(
        np.sort(belief.weights), np.sort(expected) / np.sum(expected), rtol=1e-12
    )
    few = believe(name, player, 20, steps[:1])
    assert 0 < len(few.weights) <= 20
    assert few.weights.sum() == pytest.approx(1)


def test_impossible_views_are_noticed():
    assert believe("kuhn_poker", 0, 100, [(None, "no such string")]) is None


def test_systematic_draws_are_unbiased():
    """Over all shifts: each history's mean weight is its weight."""
    nodes = PartialTree.start("kuhn_poker", 4)
    nodes.grow()
    snapshot = nodes.compile()
    some = nodes.nodes(snapshot.ids[1:4])
    weights = np.array([0.7, 0.25, 0.05])

    class Shift:
        def __init__(self, number):
            self.number = number

        def random(self):
            return self.number

    total = np.zeros(3)
    shifts = (np.arange(1000) + 0.5) / 1000
    for shift in shifts:
        kept, drawn = Belief(some, weights).resample(2, Shift(shift))
        assert len(drawn) <= 2
        total[kept.action] += drawn
    np.testing.assert_allclose(total / len(shifts), weights, atol=2e-3)
