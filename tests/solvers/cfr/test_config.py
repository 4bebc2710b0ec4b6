"""CFR algorithms by name: convergence, degenerate games, invalid arguments."""

import functools
import math

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr_config as algorithm
from spiel_cr.solvers.solve import solve
from tests.support import games
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node
from tests.support.strategies import solver_of

PLAYERS = (0, 1)
slow = pytest.mark.slow


@functools.cache
def nash_convs(name, variant):
    """Compute NashConv after 100 and after 1000 iterations with OpenSpiel."""
    compiled = games.compiled(name)
    solver = solver_of(compiled.sequence_form, variant)
    result = []
    for more in (100, 900):
        solver.run(more)
        table = conversions.tabular_policy(
            compiled, [solver.average_behaviour(p) for p in PLAYERS]
        )
        result.append(exploitability.nash_conv(compiled.game, table))
    return result


# Results of other implementations with the same schedules. On leduc, plain CFR has no
# ties early in the run, so results agree to the last digit. Elsewhere, regrets that
# should be zero are ±1e-17 in those implementations. Ours treats them as zero, so runs
# of the same algorithm differ; the factors allow for that.
@pytest.mark.parametrize(
    ("name", "variant", "early", "late", "factor"),
    [
        ("leduc", "cfr", 0.191, 0.0236, 1.01),
        pytest.param("leduc", "cfr+", 0.0268, 5.1e-4, 1.3, marks=slow),
        pytest.param("leduc", "dcfr", 0.0156, 3.6e-4, 1.5, marks=slow),
        pytest.param("leduc", "pcfr+", 0.040, 1.4e-3, 1.5, marks=slow),
        pytest.param("goofspiel5_descending", "cfr", 0.108, 0.0147, 2, marks=slow),
        pytest.param("goofspiel5_descending", "cfr+", 0.0211, 7.1e-4, 2, marks=slow),
        pytest.param("goofspiel5_descending", "pcfr+", 0.0178, 9e-5, 3, marks=slow),
        pytest.param("goofspiel5_descending", "pdcfr+", 0.019, 1.5e-5, 8, marks=slow),
        pytest.param("goofspiel5", "cfr+", 0.0170, 5.2e-4, 2, marks=slow),
        pytest.param("goofspiel5", "pdcfr+", 0.0086, 1e-6, 8, marks=slow),
    ],
)
def test_nash_conv_is_close_to_reference_runs(name, variant, early, late, factor):
    for found, printed in zip(nash_convs(name, variant), (early, late), strict=True):
        assert printed / factor <= found <= printed * factor


@slow
def test_nash_conv_of_liars_dice_is_close_to_reference_runs():
    compiled = tree_builder.build_tree("liars_dice(numdice=1,dice_sides=6)")
    for variant, printed in (("cfr", (0.0449, 0.0053)), ("cfr+", (0.0098, 2.5e-4))):
        solver = solver_of(compiled.sequence_form, variant)
        for more, figure in zip((100, 900), printed, strict=True):
            solver.run(more)
            reach = (solver.average(0), solver.average(1))
            found = nash_conv(compiled.sequence_form, reach)
            assert found == pytest.approx(figure, rel=0.02)


# Every algorithm runs on every game. `BOUNDS` limits NashConv after 300 iterations, in
# units of the range of utilities: two to three times the worst of all games, which was
# 0.0081, 0.0014, 0.0112, 0.0023, 0.0003 and 0.0002. The quick tests run every algorithm
# on the cheapest game, and one of them on a game without chance.
CONTRACT = [
    pytest.param(
        *(case.name, variant),
        marks=()
        if case.name == "kuhn" or (case.name, variant) == ("dark_hex", "cfr")
        else slow,
    )
    for case in games.SMALL
    for variant in algorithm.PRESETS
]
BOUNDS = {
    "cfr": 0.02,
    "cfr+": 0.004,
    "lcfr": 0.03,
    "dcfr": 0.006,
    "hs-dcfr": 0.006,
    "dcfr+": 0.006,
    "pcfr+": 0.001,
    "pcfr+30": 0.001,
    "sapcfr+": 0.0005,
    "pdcfr+": 0.0005,
    "vad-cfr": 0.004,
}


@pytest.mark.parametrize(("name", "variant"), CONTRACT)
def test_policy_is_valid_and_nash_conv_below_its_bound(name, variant):
    compiled, case = games.compiled(name), games.BY_NAME[name]
    result = solve(compiled, variant, 300)
    for policy in (result.average_policy(), result.current_policy()):
        table = policy.action_probability_array
        assert np.isfinite(table).all() and (table >= 0).all()
        assert (table[policy.legal_actions_mask == 0] == 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
        assert len(table) == sum(case.infosets)
    found = exploitability.nash_conv(compiled.game, result.average_policy())
    assert -1e-9 <= found <= BOUNDS[variant] * case.utility_range
    reach = reach_of(compiled.sequence_form, result.average)
    value = best_responses.expected_value(compiled.sequence_form, reach)
    # The value of a profile differs from the game's by at most its NashConv.
    assert abs(value - case.value) <= found + case.tolerance + 1e-9
    assert result.iterations == 300 and result.solves == 1
    assert result.iterations_per_second > 0


def chance_only(path):
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    return Node(TERMINAL, utility=float(path[0]))


def only_player_1(path):
    if not path:
        return Node(1, (0, 1, 2), ("a", "b"))
    return Node(TERMINAL, utility=[1.0, -1.0, 0.0][path[0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solves_games_where_a_player_never_acts(dtype):
    result = solve(MadeGame(chance_only, "nobody"), "cfr+", 5, dtype=dtype)
    assert [list(b) for b in result.average] == [[1.0], [1.0]]
    game = MadeGame(only_player_1, "second")
    result = solve(game, "cfr+", 100, dtype=dtype)
    assert result.average[1][2] > 0.99
    assert result.average_policy().action_probability_array.shape == (1, 16)


def test_strategy_stays_uniform_if_all_utilities_are_zero():
    """No line of four fits on a 2 x 3 board, so there are no payoffs other than 0."""
    result = solve("connect_four(rows=2,columns=3)", "pdcfr+", 5)
    for p, infosets in enumerate(result.tree.infosets):
        uniform = conversions.uniform_behaviour(infosets.decisions)
        np.testing.assert_allclose(result.average[p], uniform, rtol=1e-12)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True, math.nan, "many"])
def test_rejects_invalid_iterations(iterations):
    with pytest.raises((ValueError, TypeError), match="iterations"):
        solve("kuhn_poker", "cfr", iterations)


def test_parses_algorithm_strings():
    config = find("dcfr(alpha=inf,beta=-inf,gamma=3)").config
    assert (config.rule.alpha, config.rule.beta) == (math.inf, -math.inf)
    assert config.gamma == 3 and config.alternating
    assert find(config).config is config
    assert find("cfr(beta=-inf,gamma=1)").config == (algorithm.PRESETS["cfr+"])
    assert not find("cfr(alternating=False)").config.alternating
