"""Regret-matching rules: worked examples, and properties on random numbers."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spiel_cr.solvers.cfr import cfr_config as config
from spiel_cr.solvers.cfr import regret_matching

# Rules with a state of their own, such as vad-cfr, have thresholds in units of utility
# and are tested elsewhere.
RULES = {
    **{n: p.rule for n, p in config.PRESETS.items() if p.rule.custom is None},
    "explorative": regret_matching.Rule(exploration=0.25),
    "dpcfr": regret_matching.Rule(
        alpha=2.0, beta=0.5, predictive=True, exploration=0.1
    ),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
# Regrets are sums of utilities: neither so small that they become subnormal, nor so
# large that sums overflow.
NUMBERS = st.floats(-1e6, 1e6).map(lambda x: 0.0 if abs(x) < 1e-6 else x)


@st.composite
def blocks(draw):
    """Draw regrets, instantaneous regrets [A, n] and a mask of legal actions.

    At least one action of an infoset is legal, and the legal ones come first.
    """
    # Few shapes, because each one is compiled; 20 actions are summed differently.
    shape = (draw(st.sampled_from([1, 3, 20])), draw(st.sampled_from([1, 3])))
    counts = draw(hnp.arrays(int, shape[1], elements=st.integers(1, shape[0])))
    legal = np.arange(shape[0])[:, None] < counts
    numbers = hnp.arrays(float, shape, elements=NUMBERS)
    return np.where(legal, draw(numbers), 0.0), draw(numbers), legal


def uniform_of(legal):
    return legal / legal.sum(axis=0)


def update(rule, regrets, gained, legal, iteration=3, tolerance=0.0):
    with jax.enable_x64(True):
        new, strategy = regret_matching.update(
            rule,
            regrets,
            gained,
            uniform_of(legal),
            np.where(legal, tolerance, np.inf),
            np.float64(iteration),
        )
        return np.asarray(new), np.asarray(strategy)


# Probabilities sum to 1 up to rounding: at most 20 terms of relative error 2^-53.
ROUNDING = 1e-14


@every_rule
@given(block=blocks(), iteration=st.integers(1, 10**6))
@settings(max_examples=40, deadline=None)
def test_strategy_is_a_distribution_over_legal_actions(rule, block, iteration):
    new, strategy = update(rule, *block, iteration)
    legal = block[2]
    assert np.isfinite(new).all()
    assert (strategy >= 0).all()
    assert (strategy[~legal] == 0).all()
    np.testing.assert_allclose(strategy.sum(axis=0), 1, rtol=0, atol=ROUNDING)
    least = rule.exploration * uniform_of(legal)
    assert (strategy[legal] >= least[legal] - ROUNDING).all()


@every_rule
@given(block=blocks())
@settings(max_examples=25, deadline=None)
def test_values_in_padding_do_not_change_results(rule, block):
    """The padding of the instantaneous regrets may contain any values."""
    regrets, gained, legal = block
    new, strategy = update(rule, regrets, gained, legal)
    assert (new[~legal] == 0).all()
    for rubbish in (math.nan, math.inf, 1e9):
        other = update(rule, regrets, np.where(legal, gained, rubbish), legal)
        np.testing.assert_array_equal(other[0], new)
        np.testing.assert_array_equal(other[1], strategy)


@every_rule
@given(block=blocks(), scale=st.sampled_from([0.25, 2.0, 1024.0]))
@settings(max_examples=25, deadline=None)
def test_strategies_do_not_depend_on_the_unit_of_utility(rule, block, scale):
    """Powers of two scale without rounding, so equality is exact."""
    regrets, gained, legal = block
    new, strategy = update(rule, regrets, gained, legal)
    scaled, same = update(rule, scale * regrets, scale * gained, legal)
    np.testing.assert_array_equal(scaled, scale * new)
    np.testing.assert_array_equal(same, strategy)


@every_rule
@given(block=blocks())
@settings(max_examples=25, deadline=None)
def test_infosets_do_not_depend_on_each_other(rule, block):
    regrets, gained, legal = block
    new, strategy = update(rule, regrets, gained, legal)
    for i in range(legal.shape[1]):
        column = slice(i, i + 1)
        alone = update(rule, regrets[:, column], gained[:, column], legal[:, column])
        np.testing.assert_array_equal(alone[0], new[:, column])
        np.testing.assert_array_equal(alone[1], strategy[:, column])


def test_strategy_is_uniform_without_positive_regrets():
    legal = np.array([[True, True], [True, True], [True, False]])
    worst = np.where(legal, -1.0, 0.0)
    _, strategy = update(regret_matching.Rule(), worst, np.zeros((3, 2)), legal)
    np.testing.assert_array_equal(strategy, uniform_of(legal))


# One infoset with three actions, worked out by hand from the papers' formulas:
# cumulative regrets 2, -2, 1, instantaneous 1, -1, -2, iteration 4.
BEFORE = np.array([[2.0], [-2.0], [1.0]])
GAINED = np.array([[1.0], [-1.0], [-2.0]])


@pytest.mark.parametrize(
    ("rule", "regrets", "strategy"),
    [
        # Sums 3, -3, -1.
        ("cfr", (3, -3, -1), (1, 0, 0)),
        ("cfr+", (3, 0, 0), (1, 0, 0)),
        # Times 4 / 5, both signs.
        ("lcfr", (2.4, -2.4, -0.8), (1, 0, 0)),
        # 4^1.5 = 8: positive times 8 / 9; 4^0 = 1: negative times 1 / 2.
        ("dcfr", (24 / 9, -1.5, -0.5), (1, 0, 0)),
        # Matched: 3 + 1, 0 - 1, 0 - 2.
        ("pcfr+", (3, 0, 0), (1, 0, 0)),
        ("explorative", (3, -3, -1), (5 / 6, 1 / 12, 1 / 12)),
    ],
)
def test_rules_equal_worked_example(rule, regrets, strategy):
    new, matched = update(RULES[rule], BEFORE, GAINED, np.ones((3, 1), bool), 4)
    np.testing.assert_allclose(new[:, 0], regrets, atol=ROUNDING)
    np.testing.assert_allclose(matched[:, 0], strategy, atol=ROUNDING)


def test_predictive_rules_match_predicted_regrets():
    """Regrets 3, 1 with gains 1, -1 are matched as 4, 0; PDCFR+ discounts first."""
    before, gained = np.array([[2.0], [2.0]]), np.array([[1.0], [-1.0]])
    legal = np.ones((2, 1), bool)
    new, strategy = update(RULES["pcfr+"], before, gained, legal, 4)
    np.testing.assert_array_equal(new[:, 0], [3, 1])
    np.testing.assert_array_equal(strategy[:, 0], [1, 0])
    rule = regret_matching.Rule(alpha=0.5, beta=-math.inf, predictive=True)
    # 4^0.5 / (4^0.5 + 1) = 2 / 3: regrets 2 and 2 / 3, matched as 3 and 0.
    new, strategy = update(rule, before, gained, legal, 4)
    np.testing.assert_allclose(new[:, 0], [2, 2 / 3], atol=ROUNDING)
    np.testing.assert_array_equal(strategy[:, 0], [1, 0])


@pytest.mark.parametrize("exponent", [0.0, 1.5, 2.3, 40.0])
def test_discounts_do_not_overflow(exponent):
    """t^40 overflows for t = 10^9; the discount is 1 there."""
    rule = regret_matching.Rule(alpha=exponent, beta=exponent)
    legal = np.ones((2, 1), bool)
    new, _ = update(rule, np.array([[1.0], [-1.0]]), np.zeros((2, 1)), legal, 10**9)
    expected = 1 / (1 + 1e9**-exponent)
    np.testing.assert_allclose(new[:, 0], [expected, -expected], rtol=1e-15)


@pytest.mark.parametrize("iteration", [1, 2, 1000])
@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
@pytest.mark.parametrize(
    ("alpha", "beta", "factors"),
    [
        (math.inf, math.inf, (1, 1)),
        (math.inf, -math.inf, (1, 0)),
        (math.inf, 0.0, (1, 0.5)),
        (0.0, math.inf, (0.5, 1)),
        (0.0, -math.inf, (0.5, 0)),
    ],
)
def test_infinite_exponents_keep_or_drop_regrets(alpha, beta, factors, kind, iteration):
    """This is exact even in iteration 1, where t^a / (t^a + 1) is 1/2 for finite a."""
    rule = regret_matching.Rule(alpha=kind(alpha), beta=kind(beta))
    legal = np.ones((2, 1), bool)
    regrets = np.array([[3.0], [-5.0]])
    new, _ = update(rule, regrets, np.zeros((2, 1)), legal, iteration)
    np.testing.assert_array_equal(new[:, 0], regrets[:, 0] * factors)


@pytest.mark.parametrize(
    "setting",
    [
        {"alpha": math.nan},
        {"alpha": -math.inf},
        {"beta": math.nan},
        {"ramp": -1.0},
        {"ramp": math.nan},
        {"ramp": 9.0, "alpha": 2.0},
        {"ramp": 9.0, "beta": 0.0},
        {"exploration": -0.1},
        {"exploration": 1.1},
        {"exploration": math.nan},
    ],
    ids=str,
)
def test_rejects_invalid_settings(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        regret_matching.Rule(**setting)


@every_rule
def test_regrets_within_the_tolerance_are_ties(rule):
    """Rounding errors of sums that cancel do not affect strategies in any iteration."""
    legal = np.array([[True], [True], [False]])
    noise = np.array([[3e-17], [-2e-17], [0.0]])
    for iteration in (1, 1000):
        new, strategy = update(
            rule, noise, np.zeros((3, 1)), legal, iteration, tolerance=1e-15
        )
        assert (new == 0).all()
        np.testing.assert_array_equal(strategy, uniform_of(legal))
    _, strategy = update(rule, 1e3 * noise, np.zeros((3, 1)), legal, 1, tolerance=1e-15)
    assert strategy[0] > strategy[1]
