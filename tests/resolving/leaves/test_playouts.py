"""Leaf values by playouts: means, seeds, policies, and re-solving with them."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr.policies.conversions import history_values
from spiel_cr.policies.leaf_values import UniformValue
from spiel_cr.policies.queries import query
from spiel_cr.resolving.leaves.leaf_strings import is_fixed, leaf_files, parse_leaf
from spiel_cr.resolving.leaves.playout_values import PlayoutValue
from tests.support import games


@pytest.mark.parametrize(
    "name", ["kuhn", "leduc7", pytest.param("leduc", marks=pytest.mark.slow)]
)
def test_playouts_converge_to_uniform_play(name):
    """The errors of 400 playouts agree with their variance.

    The chance of a false alarm is that of a chi-square statistic, below 1e-6.
    """
    tree, n = games.compiled(name), 400
    every = np.arange(len(tree.histories))
    exact = UniformValue()(tree, every)
    few = [PlayoutValue(n=1, seed=seed)(tree, every) for seed in range(n)]
    mean, spread = np.mean(few, axis=0), np.std(few, axis=0, ddof=1)
    varies = spread > 0
    assert (mean[~varies] == exact[~varies]).mean() > 0.99
    # One history each of the deepest layers, whose playouts are independent.
    layer = tree.histories.by_depth[len(tree.histories.by_depth) // 2]
    some = np.arange(layer.start, layer.stop)
    some = some[varies[some]]
    scores = (mean[some] - exact[some]) / (spread[some] / np.sqrt(n))
    statistic, count = (scores**2).sum(), len(some)
    assert abs(statistic - count) < 7 * np.sqrt(2 * count) + 10


def test_one_playout_returns_a_payoff_below_the_history():
    tree = games.compiled("kuhn")
    every = np.arange(len(tree.histories))
    histories, value = tree.histories, PlayoutValue(n=1, seed=3)(tree, every)
    for history in every[::-1]:
        children = np.flatnonzero(histories.parent == history)
        children = children[children > history]
        if len(children):
            assert value[history] in value[children]
        else:
            assert value[history] == histories.utility[history]


def test_playouts_of_a_policy_average_to_its_values(tmp_path):
    """Playouts follow the policy that is loaded from a file."""
    tree, path = games.compiled("leduc7"), str(tmp_path / "leduc.npz")
    result = spiel_cr.solve(tree, "cfr+", 200)
    result.save(path)
    every = np.arange(len(tree.histories))
    exact = history_values(tree, query(tree, result.average_policy()))
    mean = PlayoutValue(n=3000, seed=1, path=path)(tree, every)
    assert abs(mean - exact).max() < 3
    assert abs(mean - exact).mean() < 0.1
    assert abs(mean[0] - exact[0]) < 0.25  # five standard errors


def test_same_seed_gives_same_playouts():
    tree = games.compiled("leduc")
    every = np.arange(len(tree.histories))
    first, again, other = (
        PlayoutValue(n=5, seed=seed)(tree, every) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_parses_rollouts_leaf_strings():
    assert isinstance(parse_leaf("rollouts(n=7,seed=2)"), PlayoutValue)
    assert isinstance(parse_leaf("rollouts"), PlayoutValue)
    assert is_fixed("rollouts(n=7)") and leaf_files("rollouts(n=7)") == ()
    with pytest.raises(ValueError, match="n="):
        parse_leaf("rollouts(n=0)")
    with pytest.raises(ValueError, match="depth"):
        spiel_cr.resolve("kuhn_poker", spiel_cr.ResolvingConfig(leaf="rollouts(n=3)"))


def test_many_playouts_resolve_like_exact_uniform_values():
    tree = games.compiled("leduc7")

    def nash_conv(leaf):
        config = spiel_cr.ResolvingConfig(
            solver="cfr+", iterations=100, depth=3, leaf=leaf
        )
        return spiel_cr.nash_conv(tree, spiel_cr.resolve(tree, config))

    uniform, few, many = map(
        nash_conv, ("uniform", "rollouts(n=1)", "rollouts(n=3000)")
    )
    assert abs(many - uniform) < abs(few - uniform)
    assert abs(many - uniform) < 0.3
