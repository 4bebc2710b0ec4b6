"""The unit of payoffs does not matter: solutions as good from 1e-12 to 1e12 and beyond.

NashConv is taken in the game of the usual payoffs. Multiplied by powers of two, payoffs
must give the same bits, whatever the algorithm; by powers of ten they differ in the
last place, so NashConv may be up to twice as large.
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
# Below this share of the range of payoffs NashConv is what rounding leaves of zero.
NOTHING = {"float64": 1e-13, "float32": 1e-7}

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
    """NashConv over the range of payoffs."""
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


WAYS = {
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
QUICK_WAYS = ("cfr+ float64", "pdcfr+ float32")


@functools.cache
def unscaled(name, way):
    """What a way gives on the usual payoffs."""
    return WAYS[way](compiled(name))


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=() if way in QUICK_WAYS else pytest.mark.slow)
        for way in WAYS
        if way != "lp"
    ],
)
@pytest.mark.parametrize("power", [-300, 100])
def test_payoffs_times_a_power_of_two_give_the_same_bits(way, power):
    """Also where products of payoffs and importance weights would leave float32."""
    found = WAYS[way](scaled(compiled("kuhn"), 2.0**power))
    for mine, expected in zip(found, unscaled("kuhn", way), strict=True):
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SWEPT)
def test_every_algorithm_at_every_scale(name, way):
    run, tree = WAYS[way], compiled(name)
    nothing = NOTHING["float32" if "float32" in way else "float64"]
    expected = max(relative_nash_conv(tree, unscaled(name, way)), nothing)
    # A resolver answers hundreds of questions on leduc_poker.
    for power in POWERS if name != "leduc" else (-12, 12):
        found = relative_nash_conv(tree, run(scaled(tree, 10.0**power)))
        print(f"{name} {way} 1e{power}: {found / expected:.3g}")
        assert found <= 2 * expected, power


@pytest.mark.parametrize("power", [-9, 30])
def test_linear_programs_at_every_scale(power):
    tree = compiled("kuhn")
    result = spiel_cr.solve(scaled(tree, 10.0**power), "lp")
    assert relative_nash_conv(tree, result.average) <= NOTHING["float64"]
    _, value, _ = lp.realisation_plan(result.tree.sequence_form, 0)
    assert value == pytest.approx(-(10.0**power) / 18, rel=1e-12)


@pytest.mark.parametrize(
    "seeds",
    [range(2), pytest.param(range(2, 47), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_linear_programs_of_random_games_at_every_scale(seeds):
    for seed in seeds:
        tree = build_tree(random_game(seed))
        unit = np.ptp(tree.histories.utility) or 1.0
        for power in POWERS if len(seeds) > 2 else (-9,):
            result = spiel_cr.solve(scaled(tree, 10.0**power), "lp")
            found = nash_conv(
                tree.sequence_form, reach_of(tree.sequence_form, result.average)
            )
            assert found <= NOTHING["float64"] * unit, (seed, power)


def with_draws(tree):
    """Kuhn poker, but from some infosets of both players on all games are drawn.

    They are those where a player holds the queen and answers a bet.
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
def test_infosets_with_draws_only_below_do_not_spoil_linear_programs(name, monkeypatch):
    """All coefficients lie in [-1, 1] in every form, and every form finds solutions."""
    tree = with_draws(compiled("kuhn")) if name == "drawn" else compiled(name)
    linprog, largest = optimize.linprog, []

    def look(objective, A_ub, **others):
        largest.append(max(np.abs(objective).max(), np.abs(A_ub.data).max()))
        return linprog(objective, A_ub=A_ub, **others)

    monkeypatch.setattr(optimize, "linprog", look)
    form = scaled(tree, 1e-9).sequence_form
    for way in itertools.product((True, False), ("highs-ds", "highs-ipm")):
        behaviour = tuple(
            behaviour_from_reach(
                form.decisions[p], lp.realisation_plan(form, p, *way)[0]
            )
            for p in PLAYERS
        )
        assert relative_nash_conv(tree, behaviour) <= 1e-8, way
    assert len(largest) == 8 and max(largest) <= 1


def test_a_game_of_tiny_payoffs_from_its_states():
    """Written in Python, and compiled by `solve` itself; goals in the game's units."""
    game = scaled_game("kuhn_poker", 1e-9)
    tree = compiled("kuhn")
    exact = spiel_cr.solve(game, "lp")
    assert relative_nash_conv(tree, exact.average) <= NOTHING["float64"]
    result = spiel_cr.solve(game, "cfr+", spiel_cr.Goal(until=1e-12, eval_every=100))
    assert result.curve[-1].nash_conv <= 1e-12 < result.curve[0].nash_conv
    assert 4e-13 < 4 * relative_nash_conv(tree, result.average) * 1e-9 <= 1.001e-12


def test_best_responses_take_the_first_of_equals_only_among_equals():
    """Differences of 1e-14 are ties beside payoffs of 1, not beside some of 1e-13."""
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


def test_a_linear_program_that_fails_says_so(monkeypatch):
    tree = compiled("kuhn")

    def fail(*_, **options):
        raise SolverFailedError("HiGHS found no optimum: it was too hard")

    monkeypatch.setattr(lp, "realisation_plan", fail)
    with pytest.raises(SolverFailedError, match=r"too hard.*use.*'cfr\+'"):
        spiel_cr.solve(tree, "lp")


def test_a_bad_solution_of_a_linear_program_is_refused(monkeypatch):
    """HiGHS says that it is optimal, and exact best responses disagree."""
    tree = compiled("kuhn")
    plan = lp.realisation_plan

    def blunder(form, player, *way, **options):
        reach, value, iterations = plan(form, player, *way, **options)
        return np.ones_like(reach), value, iterations

    monkeypatch.setattr(lp, "realisation_plan", blunder)
    with pytest.raises(SolverFailedError, match="NashConv 0.9"):
        spiel_cr.solve(tree, "lp")


def test_another_form_of_the_program_is_tried(monkeypatch):
    tree, plan, ways = games.compiled("kuhn"), lp.realisation_plan, []

    def stumble(form, player, *way, **options):
        ways.append(way)
        if len(ways) == 1:
            raise SolverFailedError("HiGHS found no optimum")
        return plan(form, player, *way, **options)

    monkeypatch.setattr(lp, "realisation_plan", stumble)
    assert spiel_cr.solve(tree, "lp").nash_conv() <= 1e-12
    assert len(set(ways)) == 2


def test_payoffs_that_are_all_equal():
    """No range to be relative to: nobody can gain more than rounding."""
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
