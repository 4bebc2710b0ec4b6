"""A user's rule runs wherever the shipped ones run."""

import ast
import inspect
import pathlib
import runpy

import jax.numpy as jnp
import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.solvers.cfr import CFRConfig, CustomRule, Rule

_EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "custom_rule.py"
_MODULE = runpy.run_path(str(_EXAMPLE))
_HEDGE = CustomRule(_MODULE["hedge"], _MODULE["first"])
_RIVER = "python_poker_spot(pot=100,stack=100,ranges=AA QQ;KK JJ,bets=allin)"


def plus(regrets, gains, uniform, iteration):
    """CFR+ as a user would write it."""
    regrets = regrets + gains
    regrets = jnp.where(regrets > 0, regrets, 0)
    return regrets, regrets


def test_the_example_is_short():
    tree = ast.parse(_EXAMPLE.read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert sum(node.end_lineno - node.lineno + 1 for node in functions) <= 20


@pytest.mark.parametrize(
    ("game", "form", "share"),
    [
        ("kuhn_poker", "tree", 0.05),
        pytest.param("leduc_poker", "tree", 0.05, marks=pytest.mark.slow),
        (_RIVER, "public-tree", 0.05),
        ("dark_hex(board_size=2)", "phantom", 0.05),
    ],
)
def test_the_example_converges(game, form, share):
    """Hedge loses a small share of what its first, uniform, strategy loses."""
    options = spiel_cr.GameOptions(form)
    uniform = spiel_cr.solve(game, _HEDGE, 1, options=options).nash_conv()
    result = spiel_cr.solve(game, _HEDGE, 1000, options=options)
    assert result.algorithm == "hedge" and result.nash_conv() < share * uniform


def test_same_as_the_shipped_one():
    """Written by a user CFR+ is CFR+; linear averages are the default."""
    theirs = spiel_cr.solve("kuhn_poker", plus, 200)
    ours = spiel_cr.solve("kuhn_poker", "cfr+", 200)
    for one, other in zip(theirs.average, ours.average, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    config = CFRConfig("mine", Rule(custom=CustomRule(plus)), gamma=2.0)
    quadratic = spiel_cr.solve("kuhn_poker", config, 200)
    assert np.abs(quadratic.average[0] - theirs.average[0]).max() > 1e-6
    shared = spiel_cr.GameOptions(buckets=([0, 0, 1, 2, 3, 4], None))
    both = [
        spiel_cr.solve("kuhn_poker", rule, 50, options=shared)
        for rule in (plus, "cfr+")
    ]
    np.testing.assert_allclose(both[0].average[0], both[1].average[0], atol=1e-9)


def test_checkpoints(tmp_path):
    """Another process would go on with the same function, and refuse another one."""
    path = tmp_path / "checkpoint"
    spiel_cr.solve("kuhn_poker", _HEDGE, 20, checkpoint=path)
    resumed = spiel_cr.solve("kuhn_poker", _HEDGE, 50, checkpoint=path)
    whole = spiel_cr.solve("kuhn_poker", _HEDGE, 50)
    np.testing.assert_array_equal(resumed.average[0], whole.average[0])
    other = inspect.getsource(_HEDGE.update).replace("2 /", "3 /")
    space = {"jnp": jnp}
    exec(other, space)
    with pytest.raises(ValueError, match="checkpoint"):
        changed = CustomRule(space["hedge"], _HEDGE.start)
        spiel_cr.solve("kuhn_poker", changed, 60, checkpoint=path)
    again = runpy.run_path(str(_EXAMPLE))
    assert repr(_HEDGE) == repr(CustomRule(again["hedge"], again["first"]))
