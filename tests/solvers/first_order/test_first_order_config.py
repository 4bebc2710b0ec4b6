"""Names and settings of first-order methods, and what takes them."""

import pytest

import spiel_cr
from spiel_cr.eval.contestants import registry
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.first_order import first_order_config as config


def test_settings_in_brackets():
    found = find("egt(weights=height,growth=1.5)").config
    assert found == config.EGTConfig("any", weights="height", growth=1.5)
    assert found.name == "egt(weights=height,growth=1.5)"
    assert find(found).config is found
    assert find("pdhg").config.check == 64


def test_other_modules_know_the_names():
    for name in config.PRESETS:
        assert registry.find(name).ours


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("egt(weights=two)", "weights"),
        ("egt(first_share=1)", "first_share"),
        ("egt(growth=0.5)", "growth"),
        ("egt(shrinkage=1)", "shrinkage"),
        ("egt(gamma=1)", "unknown parameter"),
        ("iterated-smoothing(factor=1)", "factor"),
        ("pdhg(check=0)", "check"),
        ("pdhg(sufficient=0)", "sufficient"),
        ("pdhg(longest=2)", "longest"),
    ],
)
def test_bad_settings_are_refused(text, word):
    with pytest.raises(ValueError, match=word):
        spiel_cr.solve("kuhn_poker", text, 1)


def test_where_they_do_not_belong():
    with pytest.raises(ValueError, match="is first-order, and must be full-width"):
        find("egt(weights=one)", families=(CFR,))
    with pytest.raises(ValueError, match="no regrets"):
        spiel_cr.solve(
            "kuhn_poker", "pdhg", 1, layout=spiel_cr.Layout(buckets=(None, None))
        )
