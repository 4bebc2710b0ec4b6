"""Strategies from the outputs of networks."""

import numpy as np
import pytest

from spiel_cr.solvers.deep import outputs


def test_strategies_are_zero_at_illegal_actions():
    legal = np.array([[True, False, True], [False, True, False], [True, True, False]])
    numbers = np.array([[-1.0, 1e9, -2.0], [5.0, -3.0, 9.0], [1.0, 3.0, 1e9]])
    best = [[1, 0, 0], [0, 1, 0], [0.25, 0.75, 0]]
    uniform = [[0.5, 0, 0.5], [0, 1, 0], [0.25, 0.75, 0]]
    assert np.array_equal(outputs.regret_matching(numbers, legal), best)
    assert np.array_equal(outputs.regret_matching(numbers, legal, "uniform"), uniform)
    smooth = outputs.softmax(numbers, legal)
    assert np.array_equal(smooth > 0, legal) and smooth.sum(axis=1) == pytest.approx(1)
    assert smooth[2, 1] == pytest.approx(1 / (1 + np.exp(-2)))
