"""Names of first-order methods, and the modules that accept them."""

import pytest

from spiel_cr.eval.adapters import registry
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.first_order import first_order_config as config
from tests.support.solving import solve_with


def test_adapters_accept_the_names_of_first_order_methods():
    for name in config.PRESETS:
        assert registry.find(name).is_spiel_cr


def test_rejects_first_order_methods_with_invalid_settings():
    with pytest.raises(ValueError, match="is first-order, but must be full-width"):
        find("pdhg", families=(CFR,))
    with pytest.raises(
        ValueError, match="unknown parameter 'gamma'; pdhg accepts none"
    ):
        find("pdhg(gamma=1)")
    with pytest.raises(ValueError, match="prox='l1' must be one of euclidean, entropy"):
        find("egt(prox=l1)")
    with pytest.raises(ValueError, match="pdhg accepts none|smoothing accepts none"):
        find("iterated-smoothing(prox=entropy)")
    with pytest.raises(ValueError, match="neither shared regrets"):
        solve_with("kuhn_poker", "pdhg", 1, buckets=(None, None))
