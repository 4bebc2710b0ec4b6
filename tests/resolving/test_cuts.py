"""Subgames that end in values of ranges, solved alone: as together in a forest."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spiel_cr.common.jax_utils import typed
from spiel_cr.resolving.compiled_roles import CompiledRole
from spiel_cr.resolving.cuts import lay_out_alike
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.layers import DepthLimit
from spiel_cr.resolving.leaves.values import ValueFunction
from spiel_cr.resolving.lookahead import public_states_of
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import games
from tests.support.exact_values import ExactValues
from tests.support.strategies import everywhere, forest_solver

PLAYERS = (0, 1)
SOLVER, ITERATIONS = "cfr+", 12


class HistoryValues(ValueFunction):
    """What follows from one utility per history, whatever comes after it.

    Linear in the other player's range, so it is a fixed leaf value in another form.
    Where it is bent, a player's own share of a public state's range counts, too.
    """

    def __init__(self, utility, bend=0.0):
        self.utility, self.bend = utility, bend
        self.asked = []

    def lay_out(self, tree, states):
        self.asked.append(states)
        return LaidOut(
            *(typed(a) for a in (states.place, states.chance)),
            typed(self.utility[states.history]),
            (typed(states.state[0]), typed(states.state[1])),
            typed(np.float64(self.bend)),
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LaidOut:
    """See `RangeValues`.

    Attributes:
      place, chance, state: as of `PublicStates`.
      utility: float [R], player 0's.
      bend: how much a player's own range counts.
    """

    place: jax.Array
    chance: jax.Array
    utility: jax.Array
    state: tuple[jax.Array, jax.Array]
    bend: jax.Array

    def values(self, player, ranges):
        own, others = ranges[player], ranges[1 - player]
        worth = self.chance * self.utility * others[self.place[1 - player]]
        values = jnp.zeros_like(own).at[self.place[player]].add(worth)
        values = -values if player else values
        state = self.state[player]
        total = jnp.zeros_like(own).at[state].add(own)[state]
        share = jnp.where(total > 0, own / jnp.where(total > 0, total, 1), 0)
        return values * (1 + self.bend * share)

    def largest(self):
        return float(np.abs(self.utility).max(initial=0))

    def rescaled(self, exponent):
        return dataclasses.replace(self, utility=np.ldexp(self.utility, -exponent))


class PaddedHistoryValues(HistoryValues):
    """The same, laid out in equal shapes."""

    def lay_out_alike(self, tree, states, selections):
        sizes = [
            max(len(selection.infosets[p]) for selection in selections)
            for p in range(2)
        ]
        most = max(len(selection.history) for selection in selections)
        return [
            LaidOut(
                typed(_padded(selection.place, most)),
                typed(_padded(selection.chance, most)),
                typed(_padded(self.utility[selection.history], most)),
                (
                    typed(_padded(selection.state[0], sizes[0])),
                    typed(_padded(selection.state[1], sizes[1])),
                ),
                typed(np.float64(self.bend)),
            )
            for selection in selections
        ]


def _padded(array, length):
    """The array with zeros behind it: ranges there are 0 as well."""
    missing = length - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])


# Values that are not padded are laid out once for the whole layer: more to compile.
KINDS = (pytest.param(HistoryValues, marks=pytest.mark.slow), PaddedHistoryValues)


@functools.cache
def cut(name, player):
    return decompose(games.compiled(name), player)


def utilities(name):
    """float64 [N], something for each history."""
    count = len(games.compiled(name).histories)
    return np.random.default_rng(3).normal(size=count)


def resolver_of(name, player, leaf, **settings):
    settings = {"depth": 1, "leaf": leaf, **settings}
    return Resolver(
        games.compiled(name), player, ResolvingConfig(SOLVER, ITERATIONS, **settings)
    )


def forests(name, player, leaf, depth=1, unit="moves"):
    """The strategy of `resolve`: all subgames of a layer together."""
    d = cut(name, player)
    solve = forest_solver(SOLVER, ITERATIONS)
    state = CompiledRole(d).start()
    limit = DepthLimit(depth, unit, leaf)
    for number in range(1, d.num_layers + 1):
        state = CompiledRole(d, limit).resolve(number, state, solve)
    return state.behaviour


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "player"),
    [("leduc7", 1), pytest.param("leduc7", 0, marks=pytest.mark.slow)],
)
def test_the_same_strategy_as_the_forests(name, player, kind):
    """Values that bend with the player's own range: its reach of the roots counts."""
    leaf = kind(utilities(name), bend=0.7)
    resolver = resolver_of(name, player, leaf)
    found = everywhere(resolver)
    expected = forests(name, player, leaf)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    straight = forests(name, player, kind(utilities(name)))
    assert np.abs(straight - expected).max() > 0.01
    assert resolver.statistics.programs_compiled == 0
    assert resolver.statistics.solves > 10


@pytest.mark.slow
@pytest.mark.parametrize("gadget", ["cfrd", "maxmargin"])
def test_no_program_is_compiled_under_a_clock(gadget):
    """Late moves are a matter of the machine's load, and are not counted here."""
    resolver = Resolver(
        games.compiled("leduc7"),
        0,
        ResolvingConfig(
            "pcfr+", move_ms=20, init_ms=40, gadget=gadget, depth=1, leaf=ExactValues(3)
        ),
    )
    behaviour = everywhere(resolver)
    owner = resolver.decomposition.tree.infosets[0].decisions.owner
    np.testing.assert_allclose(np.bincount(owner[1:], behaviour[1:]), 1, atol=1e-12)
    statistics = resolver.statistics
    assert statistics.programs_compiled == 0
    assert statistics.iterations >= statistics.solves > 10


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_the_same_strategy_where_layers_end_at_deeper_ones(depth):
    """4-card goofspiel, whose subgames differ in how many states end them."""
    leaf = PaddedHistoryValues(utilities("goofspiel4"), bend=0.7)
    found = everywhere(resolver_of("goofspiel4", 1, leaf, depth=depth))
    expected = forests("goofspiel4", 1, leaf, depth)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("gadget", ["cfrd", "maxmargin"])
def test_a_fixed_value_per_history_in_either_form(gadget):
    """The opponent's weights in the gadget, and the player's, are those of payoffs."""
    name, player = "leduc7", 0
    values = utilities(name)
    fixed = resolver_of(
        name, player, lambda tree, histories: values[histories], gadget=gadget
    )
    ranged = resolver_of(name, player, HistoryValues(values), gadget=gadget)
    np.testing.assert_allclose(everywhere(ranged), everywhere(fixed), rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["moves", "rounds"])
@pytest.mark.parametrize("name", ["leduc7", "goofspiel4"])
@pytest.mark.parametrize("player", [0, 1])
def test_exact_values_below_one_subgame_are_those_of_all(name, player, unit):
    """Measured: 2e-15."""
    leaf = ExactValues(5)
    resolver = resolver_of(name, player, leaf, depth_unit=unit)
    found, expected = everywhere(resolver), forests(name, player, leaf, 1, unit)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert resolver.statistics.programs_compiled == 0


def test_padded_values_are_those_of_each_alone():
    """Sets of different sizes, one empty, in equal shapes; some ranges are 0."""
    tree, d = games.compiled("goofspiel4"), cut("goofspiel4", 1)
    states = public_states_of(d)
    last = states.numbers[states.root_state[d.layer[states.history] == d.num_layers]]
    numbers = np.unique(last)
    selections = [states.select(some) for some in (numbers[:3], numbers[3:4], [])]
    function = ExactValues(4)
    alike = lay_out_alike(function, tree, states, selections)
    shapes = [
        [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(one.below)]
        for one in alike
    ]
    assert shapes[0] == shapes[1] == shapes[2]
    ask = jax.jit(lambda below, ranges: [below.values(p, ranges) for p in PLAYERS])
    rng = np.random.default_rng(2)
    for one, selection in zip(alike, selections, strict=True):
        ranges = tuple(rng.random(len(some)) for some in selection.infosets)
        ranges[0][::3] = 0
        with jax.enable_x64(True):
            found = ask(one.below, one.spread(ranges))
            assert all(np.isfinite(values).all() for values in found)
            if not len(selection):
                continue
            alone = ask(function.lay_out(tree, selection), ranges)
        for values, place, expected in zip(found, one.places, alone, strict=True):
            np.testing.assert_allclose(values[place], expected, atol=1e-12)
            assert np.abs(expected).max() > 0.01
