"""Solutions do not depend on the unit of payoffs, from 1e-12 to 1e12 and beyond.

NashConv is computed in the game with its original payoffs. If payoffs are multiplied by
a power of two, results must be bitwise identical, whatever the algorithm. If they are
multiplied by a power of ten, payoffs differ in the last digit, so NashConv may be up to
twice as large.
"""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from scipy import optimize

import spiel_cr
from spiel_cr.common.errors import SolverFailedError
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.players.bots import OOSBot, OOSConfig
from spiel_cr.policies.best_responses import best_response, nash_conv, reach_of
from spiel_cr.policies.conversions import behaviour_from_reach
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers import lp
from tests.support import games
from tests.support.made_games import random_game, scaled, scaled_game
from tests.support.strategies import everywhere

PLAYERS = (0, 1)
POWERS = (-12, -9, -6, -3, 3, 6, 9, 12)
# Below this share of the range of payoffs, NashConv is zero up to rounding.
ROUNDING = {"float64": 1e-13, "float32": 1e-7}

SWEPT = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liars_dice_1x3": "liars_dice(numdice=1,dice_sides=3)",
    "ii_goofspiel3": "python_ii_goofspiel(num_cards=3)",
}
FULL_WIDTH = ("cfr", "cfr+", "lcfr", "dcfr", "pcfr+", "pdcfr+")
SAMPLED = (
    "os-mccfr(batch=64)",
    "os-mccfr(batch=1)",
    "es-mccfr(batch=8)",
    "as-mccfr(batch=8,threshold=1,bonus=1)",
    "evr-mccfr(batch=64)",
    "evr-mccfr(batch=64,baseline=average)",
)
RESOLVING = (
    {"gadget": "cfrd"},
    {"gadget": "maxmargin"},
    {"values": "best_response"},
    {"depth": 2},
    {"solver": "os-mccfr(batch=64)"},
)


@functools.cache
def compiled(name):
    return build_tree(SWEPT[name], observations=True)


def relative_nash_conv(tree, behaviours):
    """Compute NashConv divided by the range of payoffs."""
    found = nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviours))
    return found / np.ptp(tree.histories.utility)


def by_solving(algorithm, dtype, iterations):
    def run(tree):
        return spiel_cr.solve(tree, algorithm, iterations, dtype=dtype, seed=1).average

    return run


def by_resolving(algorithm, dtype, iterations):
    def run(tree):
        return spiel_cr.resolve(tree, algorithm, iterations, dtype=dtype).average

    return run


def by_resolvers(settings, iterations):
    def run(tree):
        config = ResolvingConfig(**{"iterations": iterations, **settings})
        return tuple(everywhere(Resolver(tree, p, config)) for p in PLAYERS)

    return run


def by_online_sampling(iterations):
    def run(tree):
        found = []
        solver = "os-mccfr(epsilon=0.4,exploration=0.01,batch=64)"
        budget = {"move_ms": None, "iterations": iterations}
        for p in PLAYERS:
            bot = OOSBot(tree, p, OOSConfig(solver, **budget))
            for infoset in range(0, len(tree.infosets[p]), 5):
                bot._strategy(infoset)
            found.append(bot._solver.average_behaviour(p))
        return tuple(found)

    return run


METHODS = {
    "lp": by_solving("lp", None, None),
    **{
        f"{algorithm} {dtype}": by_solving(algorithm, dtype, iterations)
        for algorithms, iterations in ((FULL_WIDTH, 100), (SAMPLED, 20))
        for algorithm in algorithms
        for dtype in ("float64", "float32")
    },
    **{
        f"resolve {algorithm} {dtype}": by_resolving(algorithm, dtype, 50)
        for algorithm in ("cfr+", "pdcfr+")
        for dtype in ("float64", "float32")
    },
    **{f"resolver {v}": by_resolvers(v, 20) for v in RESOLVING},
    "oos": by_online_sampling(10),
}
QUICK_METHODS = ("cfr+ float64", "pdcfr+ float32")


@functools.cache
def unscaled(name, method):
    """Return the strategies that a method computes for the original payoffs."""
    return METHODS[method](compiled(name))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, marks=() if method in QUICK_METHODS else pytest.mark.slow)
        for method in METHODS
        if method != "lp"
    ],
)
@pytest.mark.parametrize("power", [-300, 100])
def test_results_are_bitwise_identical_for_payoffs_times_power_of_two(method, power):
    """This holds even if payoffs times importance weights would overflow float32."""
    found = METHODS[method](scaled(compiled("kuhn"), 2.0**power))
    for mine, expected in zip(found, unscaled("kuhn", method), strict=True):
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SWEPT)
def test_nash_conv_does_not_depend_on_the_payoff_scale(name, method):
    run, tree = METHODS[method], compiled(name)
    rounding = ROUNDING["float32" if "float32" in method else "float64"]
    expected = max(relative_nash_conv(tree, unscaled(name, method)), rounding)
    # A resolver solves hundreds of subgames of leduc_poker.
    for power in POWERS if name != "leduc" else (-12, 12):
        found = relative_nash_conv(tree, run(scaled(tree, 10.0**power)))
        print(f"{name} {method} 1e{power}: {found / expected:.3g}")
        assert found <= 2 * expected, power


@pytest.mark.parametrize("power", [-9, 30])
def test_linear_programs_are_exact_at_every_payoff_scale(power):
    tree = compiled("kuhn")
    result = spiel_cr.solve(scaled(tree, 10.0**power), "lp")
    assert relative_nash_conv(tree, result.average) <= ROUNDING["float64"]
    _, value, _ = lp.realisation_plan(result.tree.sequence_form, 0)
    assert value == pytest.approx(-(10.0**power) / 18, rel=1e-12)


@pytest.mark.parametrize(
    "seeds",
    [range(2), pytest.param(range(2, 47), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_linear_programs_of_random_games_are_exact_at_every_scale(seeds):
    for seed in seeds:
        tree = build_tree(random_game(seed))
        unit = np.ptp(tree.histories.utility) or 1.0
        for power in POWERS if len(seeds) > 2 else (-9,):
            result = spiel_cr.solve(scaled(tree, 10.0**power), "lp")
            found = nash_conv(
                tree.sequence_form, reach_of(tree.sequence_form, result.average)
            )
            assert found <= ROUNDING["float64"] * unit, (seed, power)


def with_draws(tree):
    """Return Kuhn poker in which all games below some infosets are drawn.

    These are the infosets of both players where the player holds the queen and responds
    to a bet.
    """
    histories = tree.histories
    utility = histories.utility.copy()
    for terminal in np.flatnonzero(utility):
        first, second, *moves = tree.histories.actions_to(int(terminal))
        answers = {(1, 0): second, (1, 1): second, (0, 1, 0): first, (0, 1, 1): first}
        if answers.get(tuple(moves)) == 1:
            utility[terminal] = 0.0
    drawn = dataclasses.replace(histories, utility=utility)
    return scaled(dataclasses.replace(tree, histories=drawn), 1.0)


@pytest.mark.parametrize("name", ["drawn", "ii_goofspiel3"])
def test_linear_programs_are_exact_if_subtrees_have_only_draws(name, monkeypatch):
    """In every formulation, coefficients lie in [-1, 1] and a solution is found."""
    tree = with_draws(compiled("kuhn")) if name == "drawn" else compiled(name)
    linprog, largest = optimize.linprog, []

    def look(objective, A_ub, **others):
        largest.append(max(np.abs(objective).max(), np.abs(A_ub.data).max()))
        return linprog(objective, A_ub=A_ub, **others)

    monkeypatch.setattr(optimize, "linprog", look)
    form = scaled(tree, 1e-9).sequence_form
    for method in itertools.product((True, False), ("highs-ds", "highs-ipm")):
        behaviour = tuple(
            behaviour_from_reach(
                form.decisions[p], lp.realisation_plan(form, p, *method)[0]
            )
            for p in PLAYERS
        )
        assert relative_nash_conv(tree, behaviour) <= 1e-8, method
    assert len(largest) == 8 and max(largest) <= 1


def test_solves_a_python_game_with_tiny_payoffs():
    """Goals are in the game's units, and `solve` itself builds the game tree."""
    game = scaled_game("kuhn_poker", 1e-9)
    tree = compiled("kuhn")
    exact = spiel_cr.solve(game, "lp")
    assert relative_nash_conv(tree, exact.average) <= ROUNDING["float64"]
    result = spiel_cr.solve(game, "cfr+", spiel_cr.Goal(until=1e-12, eval_every=100))
    assert result.curve[-1].nash_conv <= 1e-12 < result.curve[0].nash_conv
    assert 4e-13 < 4 * relative_nash_conv(tree, result.average) * 1e-9 <= 1.001e-12


def test_best_response_tie_threshold_scales_with_payoffs():
    """Differences of 1e-14 are ties for payoffs of 1, but not for payoffs of 1e-13."""
    tree = compiled("kuhn")
    uniform = tuple(
        np.append(1.0, np.repeat(0.5, i.decisions.num_sequences - 1))
        for i in tree.infosets
    )
    reach = reach_of(tree.sequence_form, uniform)
    for player in PLAYERS:
        expected = best_response(tree.sequence_form, player, reach[1 - player])
        for power in (-13, 13):
            form = scaled(tree, 10.0**power).sequence_form
            found = best_response(form, player, reach[1 - player])
            np.testing.assert_array_equal(found, expected)


def test_failed_linear_program_raises_and_suggests_cfr_plus(monkeypatch):
    tree = compiled("kuhn")

    def fail(*_, **options):
        raise SolverFailedError("HiGHS found no optimum: it was too hard")

    monkeypatch.setattr(lp, "realisation_plan", fail)
    with pytest.raises(SolverFailedError, match=r"too hard.*use.*'cfr\+'"):
        spiel_cr.solve(tree, "lp")


def test_rejects_a_linear_program_solution_that_is_not_optimal(monkeypatch):
    """Exact best responses detect that HiGHS reports a wrong optimum."""
    tree = compiled("kuhn")
    plan = lp.realisation_plan

    def blunder(form, player, *method, **options):
        reach, value, iterations = plan(form, player, *method, **options)
        return np.ones_like(reach), value, iterations

    monkeypatch.setattr(lp, "realisation_plan", blunder)
    with pytest.raises(SolverFailedError, match="NashConv 0.9"):
        spiel_cr.solve(tree, "lp")


def test_retries_another_formulation_if_a_linear_program_fails(monkeypatch):
    tree, plan, methods = games.compiled("kuhn"), lp.realisation_plan, []

    def stumble(form, player, *method, **options):
        methods.append(method)
        if len(methods) == 1:
            raise SolverFailedError("HiGHS found no optimum")
        return plan(form, player, *method, **options)

    monkeypatch.setattr(lp, "realisation_plan", stumble)
    assert spiel_cr.solve(tree, "lp").nash_conv() <= 1e-12
    assert len(set(methods)) == 2


def test_solves_games_whose_payoffs_are_all_equal():
    """The range of payoffs is zero, so no player gains more than a rounding error."""
    tree = compiled("kuhn")
    histories = tree.histories
    equal = np.where(histories.utility != 0, 0.1, 0.0)
    equal = scaled(
        dataclasses.replace(
            tree, histories=dataclasses.replace(histories, utility=equal)
        ),
        1.0,
    )
    assert abs(spiel_cr.solve(equal, "lp").nash_conv()) <= 1e-15
