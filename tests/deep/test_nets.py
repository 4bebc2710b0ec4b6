"""Networks: masks, fits, arrays and back."""

import jax
import numpy as np
import pytest

from spiel_cr.deep import fitting, nets
from spiel_cr.deep.fitting import Plan
from spiel_cr.deep.memory import Targets

SHAPE = nets.Shape(4, 3, 16, 2)


def data(rows: int = 24) -> tuple[np.ndarray, Targets]:
    """Features, and targets with nonsense where an action is not legal."""
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, 4)).astype(np.float32)
    legal = random.random((rows, 3)) < 0.7
    legal[:, 1] = True
    target = features[:, :3] * 2
    weight = random.random(rows) + 0.1
    return features, Targets(np.arange(rows), legal, target, weight)


@pytest.mark.parametrize(
    "kind", ["squared", pytest.param("cross", marks=pytest.mark.slow)]
)
def test_illegal_targets_do_not_change_the_loss(kind):
    """Nor does its slope at the network's outputs there."""
    _, targets = data()
    found = np.random.default_rng(1).normal(size=targets.target.shape)
    arrays = (targets.legal, targets.target, targets.weight)
    slope = jax.grad(fitting.loss)(found, *arrays, kind)
    value = fitting.loss(found, *arrays, kind)
    illegal = ~targets.legal
    assert illegal.any() and not np.asarray(slope)[illegal].any()
    several = targets.legal & (targets.legal.sum(axis=1) > 1)[:, None]
    assert np.asarray(slope)[several].all()
    other = np.where(targets.legal, targets.target, 1e6)
    assert fitting.loss(found, targets.legal, other, targets.weight, kind) == value
    moved = np.where(targets.legal, found, found + 1e3)
    again = fitting.loss(moved, targets.legal, other, targets.weight, kind)
    assert float(again) == pytest.approx(float(value), rel=1e-12)


def test_strategies_are_zero_where_illegal():
    legal = np.array([[True, False, True], [False, True, False], [True, True, False]])
    numbers = np.array([[-1.0, 1e9, -2.0], [5.0, -3.0, 9.0], [1.0, 3.0, 1e9]])
    best = [[1, 0, 0], [0, 1, 0], [0.25, 0.75, 0]]
    alike = [[0.5, 0, 0.5], [0, 1, 0], [0.25, 0.75, 0]]
    assert np.array_equal(nets.regret_matching(numbers, legal), best)
    assert np.array_equal(nets.regret_matching(numbers, legal, "uniform"), alike)
    smooth = nets.softmax(numbers, legal)
    assert np.array_equal(smooth > 0, legal) and smooth.sum(axis=1) == pytest.approx(1)
    assert smooth[2, 1] == pytest.approx(1 / (1 + np.exp(-2)))


@pytest.mark.parametrize(
    ("batch", "tabled"),
    [
        pytest.param(64, True, id="whole-rows", marks=pytest.mark.slow),
        pytest.param(64, False, id="whole-features", marks=pytest.mark.slow),
        pytest.param(8, True, id="drawn-rows"),
        pytest.param(8, False, id="drawn-features", marks=pytest.mark.slow),
    ],
)
def test_fits_find_the_targets(batch, tabled):
    """By rows of a table or by features; the same arguments give the same bits."""
    features, targets = data()
    graph, start = nets.make(SHAPE, 2)
    table = jax.numpy.asarray(features) if tabled else None
    if not tabled:
        targets = targets._replace(rows=features)
    plan = Plan(400, batch, 1e-2)
    ends = []
    for _ in range(2):
        random = np.random.default_rng(5)
        found, loss = fitting.fit(graph, start, table, targets, plan, random)
        ends.append(nets.leaves(found))
    assert all(map(np.array_equal, *ends))
    output = nets.evaluate(graph, found, features)
    error = np.where(targets.legal, output - targets.target, 0)
    before = np.where(targets.legal, targets.target, 0)
    assert np.square(error).mean() < np.square(before).mean() / 20
    assert 0 < loss < 1


@pytest.mark.slow
def test_arrays_and_back():
    features, _ = data()
    graph, parameters = nets.make(SHAPE, 7)
    arrays = nets.leaves(parameters)
    assert all(own.dtype == np.float32 for own in arrays)
    again = nets.from_leaves(SHAPE, arrays)
    assert again[0] == graph
    one, other = (nets.evaluate(graph, p, features) for p in (parameters, again[1]))
    assert np.array_equal(one, other) and abs(one).max() < 1
    assert nets.evaluate(graph, parameters, features[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="shapes"):
        nets.from_leaves(SHAPE._replace(hidden=8), arrays)
