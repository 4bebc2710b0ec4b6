"""Networks: masked losses, fits, and conversion to arrays."""

import jax
import numpy as np
import pytest

from spiel_cr.common import network_fits, networks
from spiel_cr.common.network_fits import FitSchedule, Targets

WIDTHS = 4, 16, 16, 3


def data(rows: int = 24) -> tuple[np.ndarray, Targets]:
    """Return features, and targets with arbitrary values at illegal actions."""
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
    """The gradient of the loss is zero at illegal actions, too."""
    _, targets = data()
    found = np.random.default_rng(1).normal(size=targets.target.shape)
    arrays = (targets.legal, targets.target, targets.weight)
    slope = jax.grad(network_fits.loss)(found, *arrays, kind)
    value = network_fits.loss(found, *arrays, kind)
    illegal = ~targets.legal
    assert illegal.any() and not np.asarray(slope)[illegal].any()
    several = targets.legal & (targets.legal.sum(axis=1) > 1)[:, None]
    assert np.asarray(slope)[several].all()
    other = np.where(targets.legal, targets.target, 1e6)
    assert network_fits.loss(found, targets.legal, other, targets.weight, kind) == value
    moved = np.where(targets.legal, found, found + 1e3)
    again = network_fits.loss(moved, targets.legal, other, targets.weight, kind)
    assert float(again) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize(
    ("batch", "tabled"),
    [
        pytest.param(64, True, id="whole-rows", marks=pytest.mark.slow),
        pytest.param(64, False, id="whole-features", marks=pytest.mark.slow),
        pytest.param(8, True, id="drawn-rows"),
        pytest.param(8, False, id="drawn-features", marks=pytest.mark.slow),
    ],
)
def test_fits_converge_to_the_targets_reproducibly(batch, tabled):
    """Fit rows of a table or features; repeated fits are bitwise identical."""
    features, targets = data()
    start = networks.make(WIDTHS, 2)
    table = jax.numpy.asarray(features) if tabled else None
    if not tabled:
        targets = targets._replace(rows=features)
    plan = FitSchedule(400, batch, 1e-2)
    ends = []
    for _ in range(2):
        random = np.random.default_rng(5)
        found, loss = network_fits.fit(start, table, targets, plan, random)
        ends.append(networks.leaves(found))
    assert all(map(np.array_equal, *ends))
    output = networks.evaluate(found, features)
    error = np.where(targets.legal, output - targets.target, 0)
    before = np.where(targets.legal, targets.target, 0)
    assert np.square(error).mean() < np.square(before).mean() / 20
    assert 0 < loss < 1


@pytest.mark.slow
def test_parameters_are_restored_from_arrays():
    features, _ = data()
    parameters = networks.make(WIDTHS, 7)
    arrays = networks.leaves(parameters)
    assert all(own.dtype == np.float32 for own in arrays)
    again = networks.assembled(arrays)
    networks.check_arrays(WIDTHS, arrays)
    one, other = (networks.evaluate(p, features) for p in (parameters, again))
    assert np.array_equal(one, other) and abs(one).max() < 1
    assert networks.evaluate(parameters, features[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="shapes"):
        networks.check_arrays((4, 8, 8, 3), arrays)
