"""Values of jamming and folding, compared with enumerated hands."""

import jax
import numpy as np
import pytest

from spiel_cr.push_fold import hands, rules
from tests.push_fold.reference import enumerate_hands, small_tables

# Sums of a few hundred float32 products of numbers up to ten.
ROUNDING = 2e-6


@pytest.mark.parametrize("players", [2, 3])
def test_values_equal_enumerated_hands(players):
    rng = np.random.default_rng(players)
    tables, deals, strength = small_tables(5, 3)
    infosets, ends = len(rules.infosets(players)), len(rules.outcomes(players))
    jams = rng.random((2, infosets, 3)).astype(np.float32)
    worth = rng.normal(size=(2, ends, players)).astype(np.float32)
    if players == 2:
        found = jax.jit(hands.two)(tables, jams, worth)
        deals = deals.sum(axis=2)
    else:
        slow = jax.jit(hands.three_slow)(tables, jams, worth)
        found = jax.jit(hands.three)(tables, jams, worth, slow)
    for b in range(2):
        expected = enumerate_hands(deals, strength, jams[b], worth[b])
        for name, mine, theirs in zip(found._fields, found, expected, strict=True):
            np.testing.assert_allclose(mine[b], theirs, atol=ROUNDING, err_msg=name)
    np.testing.assert_allclose(found.outcomes.sum(axis=1), 1, atol=ROUNDING)
