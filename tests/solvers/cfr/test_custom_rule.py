"""User-defined update rules, averaging weights, sampling and baselines."""

import ast
import dataclasses
import inspect
import pathlib
import runpy

import jax.numpy as jnp
import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr import policies
from spiel_cr.common import plugins
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.cfr import CFRConfig, CustomRule, MCCFRConfig, Rule

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
    """NashConv of hedge falls to a small share of that of uniform play."""
    options = spiel_cr.GameOptions(form)
    uniform = spiel_cr.solve(game, _HEDGE, 1, options=options).nash_conv()
    result = spiel_cr.solve(game, _HEDGE, 1000, options=options)
    assert result.algorithm == "hedge" and result.nash_conv() < share * uniform


def test_user_defined_cfr_plus_equals_the_built_in_rule():
    """Custom rules use linear averaging by default, as CFR+ does."""
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


def test_checkpoint_is_resumed_only_with_the_same_function(tmp_path):
    """A function is identified by its source, so a reloaded one is the same."""
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


def by_size(state, gains, uniform, iteration):
    """Averaging weights that grow with the size of an infoset's regrets."""
    return iteration * (1 + jnp.abs(gains).max(0))


def linear(state, gains, uniform, iteration):
    return iteration


@pytest.mark.parametrize(
    ("game", "form", "buckets"),
    [
        ("kuhn_poker", "tree", None),
        ("kuhn_poker", "tree", ([0, 0, 1, 2, 3, 4], None)),
        (_RIVER, "public-tree", None),
        pytest.param("dark_hex(board_size=2)", "phantom", None, marks=pytest.mark.slow),
    ],
)
def test_equal_infoset_weights_give_the_linear_average(game, form, buckets):
    """If all infosets have weight t, the average is the linear one of CFR+."""
    options = spiel_cr.GameOptions(form, buckets=buckets)
    one, other = (
        spiel_cr.solve(game, rule, 60, options=options)
        for rule in (CustomRule(plus, averaging=linear), plus)
    )
    for mine, shipped in zip(one.average, other.average, strict=True):
        np.testing.assert_allclose(mine, shipped, atol=1e-9)
    assert one.nash_conv() == pytest.approx(other.nash_conv(), abs=1e-9)


def test_infoset_weighted_average_equals_slow_code():
    """The average is the sum of weight · reach · strategy, as slow code computes it."""
    tree = spiel_cr.build_tree("leduc_poker")
    rule = CustomRule(plus, averaging=by_size, raw=True)
    sums = [np.zeros(of.num_sequences) for of in tree.decisions]
    for t in range(1, 6):
        played = spiel_cr.solve(tree, rule, t - 1).current if t > 1 else None
        before = played or [policies.uniform_behaviour(of) for of in tree.decisions]
        # Player 1 responds to the update of player 0.
        first = spiel_cr.solve(tree, rule, t).current[0]
        for player, other in enumerate((before[1], first)):
            of = tree.decisions[player]
            sides = (before[0], other) if player == 0 else (other, before[1])
            gains = _gains(tree, player, sides)
            size = np.zeros(len(of))
            np.maximum.at(size, of.owner[1:], np.abs(gains[1:]))
            reach = policies.reach_from_behaviour(of, before[player])
            sums[player][1:] += t * (1 + size[of.owner[1:]]) * reach[1:]
    result = spiel_cr.solve(tree, rule, 5)
    plain = spiel_cr.solve(tree, plus, 5)
    for player, of in enumerate(tree.decisions):
        mean = policies.behaviour_from_reach(of, sums[player])
        np.testing.assert_allclose(result.average[player], mean, atol=1e-9)
        assert np.abs(plain.average[player] - mean).max() > 1e-3


def _gains(tree, player, behaviours):
    """Compute counterfactual regrets [S] from the histories' reach and returns."""
    h, decisions = tree.histories, tree.decisions
    over = h.player == -4
    reach = list(map(policies.reach_from_behaviour, decisions, behaviours))
    ends = h.sequence[:, over]
    paid = h.chance[over] * h.utility[over] * (1 if player == 0 else -1)
    value = np.zeros(decisions[player].num_sequences)
    np.add.at(value, ends[player], paid * reach[1 - player][ends[1 - player]])
    of, gains = decisions[player], np.zeros(len(value))
    for infoset in reversed(range(len(of))):
        begin = of.first_sequence[infoset]
        rows = slice(begin, begin + of.num_actions[infoset])
        mean = value[rows] @ behaviours[player][rows]
        gains[rows] = value[rows] - mean
        value[of.parent[infoset]] += mean
    return gains


def late(t):
    """Averaging weights that begin after iteration 10 and grow linearly."""
    return jnp.where(t > 10, t - 10, 0)


def half(strategy, uniform):
    return 0.5 * strategy + 0.5 * uniform


def recent(old, mean, count):
    return old + (1 - 0.5**count) * (mean - old)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("weights", "gamma"), [(lambda t: t**2, 2.0), (lambda t: 1.0 + 0 * t, 0.0)]
)
def test_weights_as_function_equal_weights_as_exponent(weights, gamma, dtype):
    config = CFRConfig("cfr", weights=weights)
    plain = CFRConfig("cfr", gamma=gamma)
    one, other = (
        spiel_cr.solve("kuhn_poker", each, 50, dtype=dtype) for each in (config, plain)
    )
    for mine, shipped in zip(one.average, other.average, strict=True):
        np.testing.assert_allclose(mine, shipped, atol=1e-5)


def test_delayed_weights_average_only_late_iterates():
    """The average is the last strategy during the delay, and a mean after it."""
    config = CFRConfig("delayed", Rule(beta=-np.inf), weights=late)
    during = spiel_cr.solve("kuhn_poker", config, 10)
    played = spiel_cr.solve("kuhn_poker", "cfr+", 9).current
    np.testing.assert_allclose(during.average[0], played[0], atol=1e-12)
    # Slow code: the mean of the iterates' realisation plans with the same weights.
    form = spiel_cr.build_tree("kuhn_poker")
    total, reach = 0.0, 0.0
    for t in range(11, 31):
        iterate = spiel_cr.solve(form, "cfr+", t - 1).current
        reach += (t - 10) * policies.reach_from_behaviour(form.decisions[0], iterate[0])
        total += t - 10
    result = spiel_cr.solve(form, config, 30)
    mean = policies.behaviour_from_reach(form.decisions[0], reach / total)
    np.testing.assert_allclose(result.average[0], mean, atol=1e-9)


def test_user_defined_sampling_and_baseline_equal_built_in_ones():
    """Functions that reimplement built-in ones override the other settings."""
    # Such an exponent needs the solver that updates all infosets.
    plain = MCCFRConfig(
        *("plain", Rule(beta=-np.inf), 6.0),
        **{"epsilon": 0.5, "baseline": "average", "decay": 0.5, "batch": 16},
    )
    # Without the functions, each of these settings would give another strategy.
    other = dataclasses.replace(plain, rule=Rule(), epsilon=1.0, decay=0.1)
    rule = Rule(custom=CustomRule(plus))
    own = dataclasses.replace(other, rule=rule, sampling=half, learning=recent)
    one, same = (spiel_cr.solve("kuhn_poker", each, 30) for each in (plain, own))
    np.testing.assert_allclose(one.average[0], same.average[0], atol=1e-5)


def test_user_defined_rule_equals_built_in_rule_for_batches_of_one():
    own = MCCFRConfig("own", Rule(custom=CustomRule(plus)), 6.0, batch=1)
    shipped = MCCFRConfig("shipped", Rule(beta=-np.inf), 6.0, batch=1)
    one, other = (spiel_cr.solve("kuhn_poker", each, 20) for each in (own, shipped))
    np.testing.assert_allclose(one.average[0], other.average[0], atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CFRConfig("x", weights=lambda t: -t), "weight of iteration 1 is -1"),
        (lambda: CFRConfig("x", weights=5), "weights=5: not a function"),
        (lambda: CFRConfig("x", weights="no:where"), "module 'no' was not imported"),
        (
            lambda: MCCFRConfig("x", sampling=half, scheme="external"),
            "scheme='outcome'",
        ),
        (lambda: MCCFRConfig("x", learning=recent), "baseline='average'"),
        (
            lambda: MCCFRConfig("x", Rule(custom=CustomRule(plus, raw=True))),
            "CFRConfig",
        ),
        (lambda: Rule(1.5, custom=CustomRule(plus)), "no other settings"),
        (
            lambda: spiel_cr.resolve(
                "kuhn_poker", CustomRule(plus, averaging=linear), iterations=2
            ),
            "mean values",
        ),
        (
            lambda: spiel_cr.solve(
                "kuhn_poker",
                MCCFRConfig("x", weights=late),
                5,
                options=spiel_cr.GameOptions("simulator"),
            ),
            "weights requires a game tree",
        ),
        (
            lambda: spiel_cr.ResolvingConfig(MCCFRConfig("x", weights=late)),
            "a function as weights",
        ),
    ],
)
def test_rejects_invalid_functions(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_imported_rules_and_configs_can_be_named(tmp_path, monkeypatch):
    """Rules and configurations of an imported file are named `module:attribute`."""
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    path = tmp_path / "own_variants.py"
    functions = "\n".join(map(inspect.getsource, (plus, late)))
    path.write_text(
        f"import jax.numpy as jnp\nfrom spiel_cr.solvers.cfr import *\n{functions}\n"
        "delayed = CFRConfig('delayed', Rule(custom=CustomRule(plus)), weights=late)\n"
    )
    with pytest.raises(ValueError, match="--import"):
        spiel_cr.solve("kuhn_poker", "own_variants:plus", 10)
    plugins.import_user_modules([str(path)])
    pairs = {
        "own_variants:plus": "cfr+",
        "own_variants:plus(gamma=5)": "cfr+(gamma=5)",
        "own_variants:delayed": "cfr+(weights=own_variants:late)",
    }
    for own, shipped in pairs.items():
        one, other = (spiel_cr.solve("kuhn_poker", each, 50) for each in (own, shipped))
        np.testing.assert_allclose(one.average[0], other.average[0], atol=1e-9)
        assert one.algorithm == own
    assert algorithms.names_algorithm("own_variants:plus")
    config = spiel_cr.ResolvingConfig("own_variants:plus", 20)
    resolved = spiel_cr.resolve("kuhn_poker", config)
    shipped = spiel_cr.resolve("kuhn_poker", spiel_cr.ResolvingConfig("cfr+", 20))
    np.testing.assert_allclose(resolved.average[0], shipped.average[0], atol=1e-9)
    with pytest.raises(ValueError, match="no attribute 'gone'"):
        spiel_cr.solve("kuhn_poker", "own_variants:gone", 10)
    with pytest.raises(ValueError, match="unknown parameter 'epsilon'"):
        spiel_cr.solve("kuhn_poker", "own_variants:plus(epsilon=1)", 10)
