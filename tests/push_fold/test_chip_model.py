"""The independent chip model: published values and invariants."""

import numpy as np
import pytest

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.push_fold.chip_model import chip_model, finishing_orders


@pytest.mark.parametrize(
    ("stacks", "prizes", "expected", "digits"),
    [
        ([5000, 3000, 2000], [50, 30, 20], [38.3929, 32.75, 28.8571], 4),
        # Ganzfried & Sandholm (2008) give these to two digits.
        (
            [150000, 98750, 45500, 13250],
            [425, 280, 130, 75],
            [323.20, 278.12, 195.79, 112.89],
            2,
        ),
        # Heads-up, the value is the share of the chips.
        ([1, 3], [1, 0], [0.25, 0.75], 12),
        # Players without chips share the last places.
        ([2, 0, 0], [9, 5, 1], [9, 3, 3], 12),
    ],
)
def test_chip_model_equals_published_values(stacks, prizes, expected, digits):
    np.testing.assert_allclose(
        chip_model(np.array(stacks), np.array(prizes)), expected, atol=0.51 / 10**digits
    )


def test_batched_chip_model_is_symmetric_and_sums_to_the_prizes():
    rng = np.random.default_rng(0)
    stacks = rng.integers(1, 100, (5, 7))
    prizes = np.array([5.0, 3, 2])
    values = chip_model(stacks, prizes)
    np.testing.assert_allclose(values.sum(axis=1), 10)
    np.testing.assert_allclose(values[2], chip_model(stacks[2], prizes))
    order = rng.permutation(7)
    np.testing.assert_allclose(chip_model(stacks[:, order], prizes), values[:, order])
    # A share of all prizes for the first place is a share of the chips.
    np.testing.assert_allclose(
        chip_model(stacks, np.array([1.0])), stacks / stacks.sum(axis=1, keepdims=True)
    )


@pytest.mark.parametrize(
    ("stacks", "prizes", "said"),
    [
        ([1, -1], [1], "stacks"),
        ([0, 0], [1], "no player"),
        ([1, 1], [3, 2, 1], "prizes"),
        ([1, np.nan], [1], "stacks"),
    ],
)
def test_rejects_invalid_stacks_and_prizes(stacks, prizes, said):
    with pytest.raises(ValueError, match=said):
        chip_model(np.array(stacks), np.array(prizes))


def test_rejects_too_many_players():
    with pytest.raises(GameTooLargeError, match="19"):
        chip_model(np.ones(19), np.ones(1))


def test_number_of_finishing_orders_is_the_fubini_number():
    assert [len(finishing_orders(n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 75]
