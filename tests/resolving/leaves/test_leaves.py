"""Leaf values that strings describe, and the settings that they require."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr.eval.adapters import registry
from spiel_cr.policies.leaf_values import UniformValue
from spiel_cr.resolving.leaves import Continuations
from spiel_cr.resolving.leaves.leaf_strings import LEAVES, is_fixed, parse_leaf
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import games

KINDS = {"uniform": (UniformValue, True)}


@pytest.mark.parametrize("name", KINDS)
def test_parses_leaf_strings(name):
    kind, fixed = KINDS[name]
    assert isinstance(parse_leaf(name), kind)
    assert is_fixed(name) == is_fixed(parse_leaf(name)) == fixed
    assert any(text.partition("(")[0] == name for text in LEAVES)


def test_all_listed_leaves_are_parsed():
    """Leaves that need a file fail only because the file FILE does not exist."""
    for text in LEAVES:
        if "FILE" not in text:
            parse_leaf(text)
            continue
        with pytest.raises(OSError, match="FILE"):
            parse_leaf(text)


def test_rejects_leaves_without_a_depth_limit():
    for settings in ({"leaf": "uniform"}, {"depth_unit": "rounds"}):
        with pytest.raises(ValueError, match="set depth=N, or leave"):
            ResolvingConfig(iterations=1, **settings)
    with pytest.raises(
        ValueError, match=r"leaf=3: not a leaf value; use continuations"
    ):
        ResolvingConfig(iterations=1, depth=1, leaf=3)


def test_best_response_values_require_a_fixed_leaf():
    leaf = Continuations((np.ones(1), np.ones(1)))
    assert not is_fixed(leaf)
    with pytest.raises(
        ValueError, match="values='best_response' is not supported with"
    ):
        ResolvingConfig(iterations=1, depth=1, leaf=leaf, values="best_response")


def test_public_tree_form_rejects_depth_limits():
    with pytest.raises(ValueError, match="depth=1: re-solving in public-tree form"):
        spiel_cr.resolve(
            "kuhn_poker",
            ResolvingConfig(iterations=1, depth=1),
            options=spiel_cr.GameOptions("public-tree"),
        )


def test_bot_strings_accept_nested_parentheses():
    tree = games.compiled("kuhn")
    text = "resolving(iterations=3,depth=1,depth_unit=moves,leaf=uniform(),solver=cfr)"
    bot = spiel_cr.load_bot(tree, text, 0)
    text = text.replace("leaf=uniform()", "leaf=continuations(k=(1))")
    with pytest.raises(ValueError, match="k"):
        spiel_cr.load_bot(tree, text, 0)
    assert bot.resolver.config.leaf == "uniform()"


def test_adapters_list_the_files_of_leaves():
    name = "resolving(iterations=3,depth=1,leaf=continuations(path=x.npz,k=1))"
    assert registry.find(name).files == ("x.npz",)
    name = "resolve(solver=cfr,depth=1,leaf=uniform)"
    assert registry.find(name).files == ()
    with pytest.raises(ValueError, match="needs a depth limit; set depth=N"):
        registry.find("resolve(solver=cfr,leaf=uniform)")


@pytest.mark.slow
def test_resolve_adapters_and_bots_agree(capsys):
    """`resolve`, both adapters, and a bot queried at every infoset play the same."""
    tree = games.compiled("kuhn")
    settings = {"depth": 1, "leaf": "uniform"}
    whole = spiel_cr.resolve(tree, ResolvingConfig("cfr+", 10, **settings))
    text = "depth=1,leaf=uniform"
    for name in (
        f"resolve(solver=cfr+,iterations=10,{text})",
        f"resolving(solver=cfr+,iterations=10,{text})",
    ):
        adapter = registry.find(name).make(_Instance(tree), 0)
        adapter.run(1)
        for found, expected in zip(adapter.strategy(), whole.average, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-9)


class _Instance:
    """The attributes of a game instance that these adapters use."""

    def __init__(self, tree):
        self.tree, self.memory_limit = tree, None
