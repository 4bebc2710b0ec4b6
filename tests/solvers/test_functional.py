"""Pure JAX functions agree with the solvers, with OpenSpiel and with slow code."""

import doctest

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score, exploitability
from scipy import optimize

import spiel_cr
from spiel_cr.solvers import functional
from spiel_cr.solvers.cfr import CustomRule
from tests.solvers.test_deep_trees import centipede


@pytest.fixture(autouse=True)
def double_precision():
    """Use float64 in this module's own functions, as a user would set it."""
    with jax.enable_x64(True):
        yield


def hedge(regrets, gains, uniform, iteration):
    """Update by hedge, which is smooth in the regrets, unlike regret matching."""
    regrets = regrets + gains
    weights = jnp.where(uniform > 0, regrets / 2, -jnp.inf)
    return regrets, jnp.exp(weights - jax.lax.stop_gradient(weights.max(0)[None]))


def matrix_arrays(rows, columns):
    payoffs = np.zeros((rows, columns)).tolist()
    return functional.arrays(pyspiel.create_matrix_game(payoffs, payoffs))


def average_value(game, algorithm, payoffs):
    game = game._replace(payoffs=payoffs)
    return functional.value(
        game, functional.average(functional.solve(game, algorithm, 50))
    )


def test_infoset_weighted_averages_equal_those_of_solve():
    tree = spiel_cr.build_tree("kuhn_poker")
    game, rule = functional.arrays(tree), CustomRule(hedge, averaging=by_size, raw=True)
    state = SOLVE(game, rule, 20)
    with pytest.raises(ValueError, match="average"):
        functional.average(state)
    strategies = functional.average(state, game)
    result = spiel_cr.solve(tree, rule, 20)
    policy = functional.policy(tree, strategies).action_probability_array
    expected = result.average_policy().action_probability_array
    np.testing.assert_allclose(policy, expected, atol=1e-9)
    found = functional.nash_conv(game, strategies)
    assert float(found) == pytest.approx(result.nash_conv(), abs=1e-9)
    state = SOLVE(game, "cfr+", 20)
    plain, with_game = functional.average(state), functional.average(state, game)
    for one, other in zip(plain, with_game, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def by_size(state, gains, uniform, iteration):
    return iteration * jnp.abs(gains).max(0)


def slopes(function, at):
    """Compute central differences of a compiled function, one per element."""
    steps = 1e-6 * np.eye(len(at))
    return np.array([(function(at + h) - function(at - h)) / 2e-6 for h in steps])


def exact(matrix):
    """Compute the row player's equilibrium strategy and value by a linear program."""
    rows, columns = matrix.shape
    found = optimize.linprog(
        np.append(np.zeros(rows), -1),
        A_ub=np.column_stack([-matrix.T, np.ones(columns)]),
        b_ub=np.zeros(columns),
        A_eq=[[1] * rows + [0]],
        b_eq=[1],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    return found.x[:rows], found.x[rows]


STEP = jax.jit(functional.step, static_argnums=2)
SOLVE = jax.jit(functional.solve, static_argnums=(1, 2))


@jax.jit
def measures(game, strategies):
    """Compute player 0's value and NashConv."""
    return (
        functional.value(game, strategies),
        functional.nash_conv(game, strategies),
    )


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        pytest.param("leduc_poker", marks=pytest.mark.slow),
        pytest.param("liars_dice(numdice=1,dice_sides=3)", marks=pytest.mark.slow),
    ],
)
def test_results_equal_those_of_solve_and_openspiel(name):
    tree = spiel_cr.build_tree(name)
    game = functional.arrays(tree)
    state = SOLVE(game, "dcfr", 40)
    strategies = functional.average(state)
    policy = functional.policy(tree, strategies)
    expected = spiel_cr.solve(tree, "dcfr", 40)
    value, measured = map(float, measures(game, strategies))
    assert measured == pytest.approx(expected.nash_conv(), abs=1e-9)
    assert measured == pytest.approx(
        exploitability.nash_conv(tree.game, policy), abs=1e-9
    )
    root = tree.game.new_initial_state()
    score = expected_game_score.policy_value(root, [policy] * 2)[0]
    assert value == pytest.approx(score, abs=1e-9)
    # Single steps give the same state.
    state = functional.init(game, "dcfr")
    for _ in range(40):
        state = STEP(game, state, "dcfr")
    np.testing.assert_allclose(state.players[0].average, strategies[0], atol=1e-12)


def test_custom_rule_with_its_own_state():
    def update(state, gains, uniform, iteration):
        regrets, count = state
        return (jnp.maximum(regrets + gains, 0), count + 1), regrets + gains

    rule = CustomRule(update, lambda uniform: (uniform * 0, uniform[:1] * 0))
    game = functional.arrays("kuhn_poker")
    own, plain = (SOLVE(game, each, 20) for each in (rule, "cfr+"))
    np.testing.assert_allclose(own.players[0].average, plain.players[0].average)
    assert float(own.players[0].regrets[0][0][1][0, 0]) == 20


def test_vmap_solves_many_matrix_games():
    """Values of 200 random matrices lie within NashConv of the exact ones."""
    matrices = np.random.default_rng(0).normal(size=(200, 3, 3))
    game = matrix_arrays(3, 3)

    def solved(payoffs):
        played = game._replace(payoffs=payoffs)
        strategies = functional.average(functional.solve(played, "cfr+", 500))
        return functional.value(played, strategies), functional.nash_conv(
            played, strategies
        )

    values, conv = jax.jit(jax.vmap(solved))(matrices.reshape(-1, 9))
    exact_values = np.array([exact(matrix)[1] for matrix in matrices])
    assert (np.abs(values - exact_values) <= conv + 1e-9).all()
    assert (conv >= -1e-12).all() and conv.max() < 0.02


@pytest.mark.parametrize(
    "algorithm", [hedge, pytest.param("cfr", marks=pytest.mark.slow)]
)
def test_gradient_of_unrolled_iterations_equals_finite_differences(algorithm):
    game = functional.arrays("kuhn_poker")
    payoffs = np.asarray(game.payoffs)
    if algorithm == "cfr":
        # Regret matching jumps where regrets are exactly 0, as they are in Kuhn poker.
        payoffs = payoffs + np.random.default_rng(1).normal(0, 0.01, payoffs.shape)
    value = jax.jit(lambda at: average_value(game, algorithm, at))
    gradient = np.asarray(jax.jit(jax.grad(value))(payoffs))
    np.testing.assert_allclose(gradient, slopes(value, payoffs), atol=1e-6)
    assert np.abs(gradient).max() > 0.01


@pytest.mark.parametrize("games", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_gradient_of_the_value_satisfies_the_envelope_theorem(games):
    """At a unique equilibrium, the gradient of the value is that at fixed play."""
    game = matrix_arrays(3, 3)
    random = np.random.default_rng(2)
    gradient = jax.jit(
        jax.grad(
            lambda payoffs, played: functional.value(
                game._replace(payoffs=payoffs), played
            )
        )
    )
    for matrix in random.normal(size=(games, 3, 3)):
        played = tuple(jnp.append(1.0, exact(each)[0]) for each in (matrix, -matrix.T))
        measured = gradient(matrix.reshape(-1), played)
        expected = slopes(lambda at: exact(at.reshape(3, 3))[1], matrix.reshape(-1))
        np.testing.assert_allclose(measured, expected, atol=1e-6)


def test_payoffs_of_zero_can_be_changed():
    """Payoffs that are 0 when the arrays are built are variables like all others."""
    game = matrix_arrays(2, 2)
    assert game.payoffs.shape == (4,) and not np.any(game.payoffs)
    matrix = jnp.array([3.0, 0.0, 0.0, 1.0])
    played = game._replace(payoffs=matrix)
    result = functional.average(SOLVE(played, "cfr+", 2000))
    assert float(measures(played, result)[0]) == pytest.approx(0.75, abs=1e-4)


def test_deep_trees_are_rejected():
    with pytest.raises(ValueError, match="too deep"):
        functional.arrays(centipede(100))


def test_docstring_examples_pass():
    assert doctest.testmod(functional) == (0, 7)
