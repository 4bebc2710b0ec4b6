"""Linear programs, compared with OpenSpiel, known values and another formulation."""

import functools

import numpy as np
import pytest
from open_spiel.python.algorithms import expected_game_score, exploitability

import spiel_cr
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.solvers import lp
from tests.support import games, lp_reference
from tests.support.made_games import random_game
from tests.support.solving import solve_with

PLAYERS = (0, 1)
# Of the games with more than `_SMALL` histories, only `_TRIED` is a quick test.
_SMALL, _TRIED = 2_500, "leduc"
CASES = tuple(
    pytest.param(
        case,
        id=case.name,
        marks=[pytest.mark.slow] * (case.histories > _SMALL and case.name != _TRIED),
    )
    for case in games.CASES
    if case.histories <= 10_000
)


@functools.cache
def plan(name, player):
    """Compute `lp.realisation_plan` of a game of the catalogue, once for all tests."""
    return lp.realisation_plan(games.compiled(name).sequence_form, player)


@pytest.mark.parametrize("case", CASES)
def test_lp_policy_has_zero_nash_conv_and_the_known_value(case):
    compiled = games.compiled(case.name)
    result = spiel_cr.solve(compiled, "lp")
    policy = result.average_policy()
    assert exploitability.nash_conv(compiled.game, policy) <= 1e-9
    value, minus = expected_game_score.policy_value(
        compiled.game.new_initial_state(), [policy] * 2
    )
    assert value == -minus == pytest.approx(case.value, abs=case.tolerance + 1e-9)
    for player in PLAYERS:
        _, own, _ = plan(case.name, player)
        sign = 1 - 2 * player
        assert sign * own == pytest.approx(case.value, abs=case.tolerance + 1e-9)


@pytest.mark.parametrize("name", ["kuhn", "leduc", "princess4", "dark_hex"])
def test_realisation_plans_are_valid(name):
    form = games.compiled(name).sequence_form
    for player in PLAYERS:
        reach, _, _ = plan(name, player)
        decisions = form.decisions[player]
        assert reach[0] == pytest.approx(1) and reach.min() >= 0
        below = np.bincount(
            decisions.owner[1:], weights=reach[1:], minlength=len(decisions)
        )
        np.testing.assert_allclose(below, reach[decisions.parent], atol=1e-9)


def test_lp_result_has_no_current_policy_and_no_curve():
    result = solve_with("kuhn_poker", "lp", memory_limit="3GB")
    assert result.algorithm == "lp" and result.iterations > 0
    assert result.nash_conv() <= 1e-9
    assert result.current is None and result.curve == ()
    with pytest.raises(ValueError, match="average_policy"):
        result.current_policy()


@pytest.mark.slow
def test_lp_finds_the_value_of_liars_dice_1x6():
    result = spiel_cr.solve("liars_dice(numdice=1,dice_sides=6)", "lp")
    form = result.tree.sequence_form
    reach = reach_of(form, result.average)
    rows, columns, values = form.payoffs
    value = values @ (reach[0][rows] * reach[1][columns])
    assert value == pytest.approx(-7 / 258, abs=1e-9)
    assert result.nash_conv() <= 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_lp_equals_the_reference_on_random_games(seed):
    game = random_game(seed)
    expected = lp_reference.game_value(game)
    result = spiel_cr.solve(game, "lp")
    assert exploitability.nash_conv(game, result.average_policy()) <= 1e-9
    for player in PLAYERS:
        _, value, _ = lp.realisation_plan(result.tree.sequence_form, player)
        assert (1 - 2 * player) * value == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    "arguments",
    [{"seconds": 1}, {"until": 1e-3}, {"eval_every": 5}, {"checkpoint_path": "x"}],
    ids=lambda a: next(iter(a)),
)
def test_rejects_options_of_iterative_algorithms(arguments):
    with pytest.raises(ValueError, match="lp.*leave out"):
        solve_with("kuhn_poker", "lp", **arguments)


def test_rejects_unsupported_dtypes():
    with pytest.raises(ValueError, match="dtype=int8 must be float32 or float64"):
        spiel_cr.solve(games.compiled("kuhn"), "lp", dtype="int8")
