"""Random choices by weights."""

import numpy as np
import pytest

from spiel_cr.common.draws import choose


@pytest.mark.parametrize("axis", [0, 1])
def test_choices_are_proportional_to_weights(axis):
    """Evenly spaced points are assigned to choices in order."""
    odds = np.tile([0.0, 0.5, 0.0, 1.5, 2.0, 0.0], (8, 1))
    points = (np.arange(8) + 0.5) / 8
    given = odds if axis == 1 else odds.T
    assert choose(given, points, axis).tolist() == [1, 3, 3, 3, 4, 4, 4, 4]


def test_choices_of_zero_probability_are_never_chosen():
    """The points are both ends of [0, 1), and the sums of weights are rounded."""
    random = np.random.default_rng(0)
    odds = random.random((2000, 30)) * (random.random((2000, 30)) < 0.5)
    odds[:, 7] += 1e-9
    for point in (0.0, np.nextafter(1, 0)):
        chosen = choose(odds, np.full(2000, point))
        assert (odds[np.arange(2000), chosen] > 0).all()
