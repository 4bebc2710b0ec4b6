"""Resolvers solve one subgame at a time and play the strategy that `resolve` returns.

Other files compare `resolve` with exact solutions and check its NashConv
(`test_gadget.py`, `test_continual.py`). A resolver must return the same strategies
subgame by subgame, for queries in any order.
"""

import dataclasses
import functools

import numpy as np
import pytest

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import best_response_value
from spiel_cr.resolving import decomposition
from spiel_cr.resolving.layer_subgames import Layer
from spiel_cr.resolving.resolver import MatchMemory, Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.roles import Role
from spiel_cr.solvers.algorithms import find
from tests.support import games, made_games
from tests.support.strategies import everywhere, forest_solver

PLAYERS = (0, 1)
# The layers of the last game are turns: player 1 may act twice unobserved by player 0.
SEATS = [
    *[(name, p) for name in ("kuhn", "leduc7", "goofspiel4") for p in PLAYERS],
    ("by turns", 1),
]
LAYERED = [("leduc7", 1), pytest.param("goofspiel4", 1, marks=pytest.mark.slow)]
# These compile for a long time; Kuhn poker and one player of leduc7 are quick.
LONG_SEATS = [("leduc7", 0), ("by turns", 1), *(("goofspiel4", p) for p in PLAYERS)]
# Nearly all tests share one algorithm, because each algorithm compiles each shape.
FAST = "pdcfr+"


@functools.cache
def game_tree_of(name):
    if name != "by turns":
        return games.compiled(name)
    game = made_games.random_game(3, turns="by history", transient=0.3)
    return tree_builder.build_tree(game, observations=True)


@functools.cache
def resolver_of(name, player, **settings):
    config = ResolvingConfig(**{"solver": FAST, "iterations": 20, **settings})
    return Resolver(game_tree_of(name), player, config)


@functools.cache
def behaviour_of(name, player, **settings):
    return everywhere(resolver_of(name, player, **settings))


def exploitability_of_player(name, player, **settings):
    """Return by how much the best-response value exceeds the value of the game."""
    tree = game_tree_of(name)
    decisions = tree.infosets[player].decisions
    behaviour = behaviour_of(name, player, **settings)
    reach = conversions.reach_from_behaviour(decisions, behaviour)
    case = games.BY_NAME[name]
    value = (1 - 2 * player) * case.value
    return best_response_value(tree.sequence_form, 1 - player, reach) + value


def check_distributions(decisions, behaviour):
    assert np.isfinite(behaviour).all() and (behaviour >= 0).all()
    sums = np.bincount(decisions.owner[1:], behaviour[1:])
    np.testing.assert_allclose(sums, 1, atol=1e-12)


def strategy_of_forests(name, player, solver, iterations):
    """Return the strategy of `resolve`, which solves whole layers at once."""
    d = decomposition.decompose(game_tree_of(name), player)
    solve = forest_solver(solver, iterations)
    state = Role(d).start()
    for number in range(1, d.num_layers + 1):
        state = Role(d).resolve(number, state, solve)
    return state.behaviour


@pytest.mark.parametrize(
    ("name", "player", "solver"),
    [
        *[(*seat, FAST) for seat in SEATS if seat not in LONG_SEATS],
        *[pytest.param(*seat, FAST, marks=pytest.mark.slow) for seat in LONG_SEATS],
        ("kuhn", 0, "dcfr(alpha=2)"),
    ],
)
def test_resolver_equals_the_forests_of_resolve(name, player, solver):
    """Strategies agree at every infoset, although subgames are solved separately.

    Sums run in a different order; so few iterations are done that ties do not matter.
    """
    found = behaviour_of(name, player, solver=solver)
    expected = strategy_of_forests(name, player, solver, 20)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    decisions = game_tree_of(name).infosets[player].decisions
    check_distributions(decisions, found)
    assert np.abs(found - conversions.uniform_behaviour(decisions)).max() > 0.1


@pytest.mark.parametrize(("name", "player"), LAYERED)
def test_strategies_do_not_depend_on_the_order_of_queries(name, player):
    """A first query deep in the game re-solves all layers above it."""
    resolver = resolver_of(name, player)
    infosets = len(resolver.decomposition.tree.infosets[player])
    backwards = everywhere(resolver, order=range(infosets - 1, -1, -1))
    np.testing.assert_allclose(backwards, behaviour_of(name, player), atol=1e-12)
    # The first query at a deep infoset solves all layers above it.
    before = resolver.statistics.solves
    match = resolver.match()
    resolver.strategy(match, infosets - 1)
    layers = int(resolver.decomposition.player_layer[infosets - 1])
    assert layers > 1
    assert resolver.statistics.solves - before == layers - 1
    assert {number for number, *_ in match.solved} == set(range(1, layers + 1))


def test_solves_of_a_move_share_the_remaining_time(monkeypatch):
    """Each solve computes its deadline from the number of remaining solves."""
    resolver, shares = resolver_of("leduc7", 1), []
    monkeypatch.setattr(resolver._clock, "deadline", shares.append)
    last = len(resolver.decomposition.tree.infosets[1]) - 1
    needed = int(resolver.decomposition.player_layer[last])
    # A blank memory has not even the first layer.
    resolver.strategy(MatchMemory(resolver.subgames.blank()), last)
    assert shares == list(range(needed, 0, -1)) and needed > 1


def test_consecutive_turns_in_one_subgame_are_solved_once():
    """A second move in a row belongs to the layer of the first."""
    resolver = resolver_of("by turns", 1)
    d = resolver.decomposition
    decisions = resolver.decomposition.tree.infosets[1].decisions
    again = np.flatnonzero(~d.opens & (d.player_layer > 1))
    assert len(again)
    for infoset in again:
        match = resolver.match()
        above = int(decisions.owner[decisions.parent[infoset]])
        before = resolver.statistics.solves
        resolver.strategy(match, above)
        assert resolver.statistics.solves == before + 1
        resolver.strategy(match, int(infoset))
        resolver.strategy(match, above)
        assert resolver.statistics.solves == before + 1
        # Another match does not share this solution.
        resolver.strategy(resolver.match(), int(infoset))
        assert resolver.statistics.solves == before + 2


def test_statistics_count_moves_solves_and_iterations():
    resolver = Resolver(game_tree_of("leduc7"), 1, ResolvingConfig(FAST, 7))
    assert dataclasses.asdict(resolver.statistics) == {
        **{"moves": 0, "solves": 0, "iterations": 0, "deadline_misses": 0},
        **{"max_ms": 0.0, "compilations": 0},
    }
    everywhere(resolver)
    subgames = len(
        set(
            resolver.decomposition.player_subgame[
                resolver.decomposition.player_layer == 2
            ]
        )
    )
    assert resolver.statistics.moves == len(resolver.decomposition.tree.infosets[1])
    assert resolver.statistics.solves == subgames
    assert resolver.statistics.iterations == 7 * subgames
    assert resolver.statistics.max_ms > 0 and resolver.statistics.deadline_misses == 0


every_gadget = pytest.mark.parametrize("kind", ["cfrd", "maxmargin"])


@every_gadget
@pytest.mark.parametrize(("name", "player"), LAYERED)
def test_no_function_is_compiled_during_a_match(name, player, kind):
    """The constructor compiles one function per layer, for all of its subgames."""
    resolver = resolver_of(name, player, gadget=kind)
    before = resolver.statistics.solves
    check_distributions(
        resolver.decomposition.tree.infosets[player].decisions,
        everywhere(resolver),
    )
    assert resolver.statistics.solves - before > 10
    assert resolver.statistics.compilations == 0


def test_compilations_during_a_match_are_counted():
    """An algorithm that the constructor did not compile raises the counter."""
    resolver = Resolver(game_tree_of("kuhn"), 0, ResolvingConfig(FAST, 20))
    resolver.subgames._algorithm = find("dcfr(alpha=1.25)").config
    everywhere(resolver)
    assert resolver.statistics.compilations == 1


def test_no_function_is_compiled_if_subgames_differ_in_size():
    """The choice of compiled function must not depend on the size of the subgame."""
    d = resolver_of("leduc7", 1).decomposition
    sizes = [len(p.base) for p in Layer(d, 2).values()]
    assert min(sizes) < max(sizes)
    between = (min(sizes) + max(sizes)) / 2
    # With so many iterations, some subgames alone would use functions for long runs.
    planned = int(2.0 / (between * 3e-9))
    # No other test uses this algorithm, so none has compiled functions for it.
    config = ResolvingConfig("dcfr(alpha=1.75)", planned, move_ms=1, init_ms=1)
    resolver = Resolver(d.tree, 1, config)
    everywhere(resolver)
    assert resolver.statistics.compilations == 0


@every_gadget
@pytest.mark.parametrize(("name", "player"), LAYERED)
def test_strategies_are_valid_at_unreached_infosets(name, player, kind):
    """The player's strategy in the first layer is pure, but the match deviates from it.

    Roots, augmented infosets and entire subgames then have reach 0.
    """
    resolver = resolver_of(name, player, gadget=kind)
    decisions = resolver.decomposition.tree.infosets[player].decisions
    match = resolver.match()
    top = resolver.decomposition.player_layer == 1
    match.memory.behaviour[np.isin(decisions.owner, np.flatnonzero(top))] = 0
    match.memory.behaviour[decisions.first_sequence[top]] = 1
    reach = conversions.reach_from_behaviour(decisions, match.memory.behaviour)
    assert (reach == 0).any()
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        behaviour = everywhere(resolver, match)
    check_distributions(decisions, behaviour)
    check_distributions(decisions, match.memory.behaviour)
    assert np.isfinite(match.memory.opponent_values).all()
    # The next match starts from a separate memory.
    assert not np.array_equal(resolver.match().memory.behaviour, match.memory.behaviour)


# All bounds below are two to ten times the measured values.


@pytest.mark.parametrize(
    ("name", "player", "bound"), [("kuhn", 0, 1e-6), ("leduc7", 1, 0.01)]
)
def test_both_gadgets_have_low_exploitability(name, player, bound):
    """Measured on leduc7: 0.0016 and 0.0016; kuhn: 2e-10 and 3e-10.

    Without a gadget, exploitability was 1.4 and 0.18.
    """
    for kind in ("cfrd", "maxmargin"):
        found = exploitability_of_player(name, player, gadget=kind, iterations=300)
        # The value of leduc7 is known to 5e-6.
        assert -1e-5 <= found < bound


def test_maxmargin_constraints_are_correct_across_several_layers():
    """The augmented infosets' values stay on the scale of the whole game.

    The measured exploitability is 0.0003 in four layers. It is 0.98 if the values are
    divided by reach, 0.92 if they are subtracted twice, and 1.6 if they are omitted.
    """
    assert (
        -1e-5
        <= exploitability_of_player("leduc7", 0, gadget="maxmargin", iterations=300)
        < 0.01
    )


@pytest.mark.parametrize(
    "values", [pytest.param("iterates", marks=pytest.mark.slow), "best_response"]
)
def test_both_kinds_of_opponent_values_have_low_exploitability(values):
    """Measured 4e-10 and 5e-10; values of the average strategy would give 0.176."""
    assert (
        -1e-9
        <= exploitability_of_player("goofspiel4", 1, values=values, iterations=300)
        < 1e-8
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": None}, "needs a budget; set iterations, move_ms, or both"),
        ({"iterations": 0}, "iterations=0"),
        ({"iterations": -3}, "iterations=-3"),
        ({"iterations": 1.5}, "iterations=1.5"),
        ({"move_ms": 0}, "move_ms=0 must be finite and above 0; leave it out"),
        ({"move_ms": -5.0}, "move_ms=-5.0 must be finite and above 0"),
        ({"move_ms": float("nan")}, "move_ms=nan"),
        ({"init_ms": -1}, "init_ms=-1 must be finite and above 0"),
        ({"gadget": "safe"}, "gadget='safe' must be one of cfrd, maxmargin"),
        ({"values": "last"}, "values='last' must be one of iterates, best_response"),
        ({"solver": "cfr++"}, "no algorithm 'cfr\\+\\+'"),
        ({"solver": "cfr+(speed=2)"}, "unknown parameter 'speed'"),
    ],
    ids=str,
)
def test_rejects_invalid_settings(change, message):
    with pytest.raises(ValueError, match=message):
        ResolvingConfig(**{"iterations": 5, **change})
