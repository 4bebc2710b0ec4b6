"""Values where a lookahead ends: public states, exact solves, and the solvers' use."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.tree import compiler
from spiel_cr.policies import conversions
from spiel_cr.resolving import continual, gadget
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves import Continuations
from spiel_cr.resolving.leaves.values import ValueFunction
from spiel_cr.resolving.lookahead import look_ahead, public_states_of, warn_if_never_cut
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers import footprint, lp
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.laying_out import Layout
from tests.support import games
from tests.support.exact_values import ExactValues, game_below
from tests.support.made_games import RPS_PLUS, MadeGame, rps_plus
from tests.support.strategies import random_behaviours

PLAYERS = (0, 1)
GAMES = ("kuhn", "leduc7", "ii_goofspiel4")


@functools.cache
def compiled(name):
    known = {"liars3": "liars_dice(numdice=1,dice_sides=3)"}
    if name in known:
        return compiler.compile_game(known[name], observations=True)
    return games.compiled(name)


@functools.cache
def layer_states(name, player, layer=2):
    """The decomposition, and the public states of one of its layers."""
    d = decompose(compiled(name), player)
    states = public_states_of(d)
    of_layer = d.layer[states.history] == layer
    return d, states.select(states.numbers[np.unique(states.root_state[of_layer])])


def random_ranges(states, seed, zeros=False):
    rng = np.random.default_rng(seed)
    ranges = [rng.uniform(size=len(infosets)) for infosets in states.infosets]
    if zeros:
        ranges = [r * (rng.uniform(size=len(r)) < 0.6) for r in ranges]
    return tuple(ranges)


def values_at(function, name, states, ranges):
    """Both players' values by the jitted interface."""
    with jax.enable_x64(True):
        below = jax.device_put(function.lay_out(compiled(name), states))
        found = jax.jit(lambda b, r: tuple(b.values(p, r) for p in PLAYERS))(
            below, tuple(map(jnp.asarray, ranges))
        )
        return tuple(map(np.asarray, found))


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", GAMES)
def test_public_states_are_what_both_players_can_tell_apart(name, player):
    """Two histories are in one state exactly if a chain of shared information joins
    them; computed by merging sets, one pair at a time."""
    d = decompose(compiled(name), player)
    states = public_states_of(d)
    names = [
        {("own", int(states.place[0, r])), ("other", int(states.place[1, r]))}
        for r in range(len(states.history))
    ]
    merged = []
    for parts in names:
        touching = [group for group in merged if group & parts]
        merged = [group for group in merged if not group & parts]
        merged.append(set().union(parts, *touching))
    found = {frozenset(group) for group in merged}
    assert len(found) == len(states)
    for r, parts in enumerate(names):
        (group,) = [g for g in found if parts <= g]
        mates = [q for q, other in enumerate(names) if other <= group]
        assert set(np.flatnonzero(states.root_state == states.root_state[r])) == set(
            mates
        )
    histories = compiled(name).histories
    own = states.infosets[player][states.place[player]]
    np.testing.assert_array_equal(own, histories.infoset[states.history])
    np.testing.assert_array_equal(states.chance, histories.chance[states.history])


def test_some_states_can_be_taken_out():
    d = decompose(compiled("leduc7"), 0)
    states = public_states_of(d)
    picked = states.numbers[[5, 2, 9]]
    part = states.select(picked)
    assert part.numbers.tolist() == sorted(picked.tolist())
    for index, number in enumerate(part.numbers):
        whole = int(np.flatnonzero(states.numbers == number)[0])
        mine, all_of_it = part.root_state == index, states.root_state == whole
        np.testing.assert_array_equal(part.history[mine], states.history[all_of_it])
        for p in PLAYERS:
            np.testing.assert_array_equal(
                part.infosets[p][part.place[p, mine]],
                states.infosets[p][states.place[p, all_of_it]],
            )
    with pytest.raises(KeyError, match="no public states"):
        states.select([int(states.numbers[-1]) + 1])


@pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("leduc7", marks=pytest.mark.slow)]
)
def test_exact_values_are_those_of_a_linear_program(name):
    """What a player's range is worth in all: the value of the weighted game below."""
    _, states = layer_states(name, 0)
    ranges = random_ranges(states, 3)
    values = values_at(ExactValues(4000, "pcfr+"), name, states, ranges)
    form = game_below(compiled(name), states)
    rows, columns, payoffs = form.payoffs
    factor = 1.0
    for p, ends in enumerate((rows, columns)):
        decisions, count = form.decisions[p], len(states.infosets[p])
        top = np.arange(len(decisions))
        for infoset in range(count, len(decisions)):  # parents come first
            top[infoset] = top[decisions.owner[decisions.parent[infoset]]]
        factor = factor * ranges[p][top[decisions.owner[ends]]]
    weighted = form.payoffs._replace(values=payoffs * factor)
    again = layout.build(form.decisions, weighted)
    solution = lp.equilibrium(again, weighted.values)
    reach = [
        conversions.reach_from_behaviour(decisions, behaviour)
        for decisions, behaviour in zip(form.decisions, solution.behaviour, strict=True)
    ]
    game_value = weighted.values @ (reach[0][rows] * reach[1][columns])
    assert ranges[0] @ values[0] == pytest.approx(game_value, abs=2e-4)
    assert ranges[1] @ values[1] == pytest.approx(-game_value, abs=2e-4)


def test_values_scale_with_the_others_range_alone():
    function = ExactValues(20)
    _, states = layer_states("kuhn", 0)
    first, second = random_ranges(states, 4, zeros=True)
    plain = values_at(function, "kuhn", states, (first, second))
    scaled = values_at(function, "kuhn", states, (2e-20 * first, 4 * second))
    np.testing.assert_allclose(scaled[0], 4 * plain[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(1e20 * scaled[1], 2 * plain[1], rtol=1e-12, atol=1e-14)
    assert np.abs(plain[0]).max() > 0.01
    silent = values_at(function, "kuhn", states, (first, 0 * second))
    assert not silent[0].any()


@pytest.mark.slow
def test_a_state_does_not_depend_on_the_others():
    """One forest solve labels every state as if it were alone."""
    _, states = layer_states("leduc7", 0)
    ranges = random_ranges(states, 5)
    together = values_at(ExactValues(30), "leduc7", states, ranges)
    one = int(np.bincount(states.root_state).argmax())
    alone = states.select([int(states.numbers[one])])
    mine = tuple(r[states.state[p] == one] for p, r in enumerate(ranges))
    single = values_at(ExactValues(30), "leduc7", alone, mine)
    for p in PLAYERS:
        np.testing.assert_allclose(single[p], together[p][states.state[p] == one])


def test_states_below_each_other_are_refused():
    d = decompose(compiled("leduc7"), 0)
    with pytest.raises(ValueError, match="lies below another"):
        ExactValues(5).lay_out(compiled("leduc7"), public_states_of(d))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FollowingBelow:
    """Values if both players follow given strategies below: linear in the ranges."""

    place: np.ndarray
    worth: np.ndarray
    like: tuple[np.ndarray, np.ndarray]

    def values(self, player, ranges):
        gain = self.worth * ranges[1 - player][self.place[1 - player]]
        zeros = jnp.zeros_like(self.like[player])
        return zeros.at[self.place[player]].add(gain if player == 0 else -gain)

    def largest(self):
        return float(np.abs(self.worth).sum())

    def rescaled(self, exponent):
        return dataclasses.replace(self, worth=np.ldexp(self.worth, -exponent))


class Following(ValueFunction):
    def __init__(self, tree, behaviours):
        self.values = conversions.history_values(tree, behaviours)

    def lay_out(self, tree, states):
        like = tuple(np.zeros(len(infosets)) for infosets in states.infosets)
        worth = self.values[states.history] * states.chance
        return FollowingBelow(states.place, worth, like)


# Player 1 has two layers.
_ROWS = [(0, 1, 4), (1, 2, 1)]
_SLOW_ROWS = [(0, 1, 1), (1, 1, 1), (1, 1, 4), (0, 2, 1), (0, 3, 2)]


@pytest.mark.parametrize(
    ("player", "layer", "depth"),
    [*_ROWS, *(pytest.param(*row, marks=pytest.mark.slow) for row in _SLOW_ROWS)],
)
def test_a_solver_asks_at_the_iterates(player, layer, depth):
    """With fixed strategies below, the iterates are those of scalar leaf values."""
    tree = compiled("leduc7")
    d = decompose(tree, player)
    behaviours = random_behaviours(tree, 6)
    reach = conversions.reach_from_behaviour(
        d.decisions, random_behaviours(tree, 7)[player]
    )
    given = np.random.default_rng(8).normal(size=len(d.augmented_layer))
    found = []
    for value in (Continuations(behaviours, 1), Following(tree, behaviours)):
        ahead = look_ahead(d, layer, depth, value)
        forest = gadget.build_forest(d, layer, reach, given, ahead)
        solver = cfr.make_solver(
            forest.form, config=find("cfr+").config, values=True, compile="fast"
        )
        solver.run(25)
        found.append(
            [solver.average_behaviour(p) for p in PLAYERS]
            + [solver.infoset_values(1 - player)]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_rounds_end_where_chance_moves_after_a_player():
    """Leduc poker, cut after its first round: at the first turn with a public card."""
    for player in PLAYERS:
        d = decompose(compiled("leduc7"), player)
        for layer in range(1, d.num_layers + 1):
            ahead = look_ahead(d, layer, 1, ExactValues(1), unit="rounds")
            if ahead.cut is None:
                assert layer > 1
                continue
            for history in ahead.cut[0].history:
                state = d.tree.state_at(int(history))
                assert state.current_player() == player
                assert "public -" not in str(state)
                # The card was turned up since the player's last decision.
                last = d.tree.infosets[player].decisions
                above = last.owner[last.parent[d.tree.histories.infoset[history]]]
                before = d.tree.state_at(d.tree.infosets[player].history[above])
                assert "public -" in str(before)
            over = d.tree.histories.player[ahead.histories] == TERMINAL
            assert over.all()


@pytest.mark.slow
def test_a_depth_limit_with_exact_values_loses_little():
    """Where values per history lose much."""
    tree = compiled("liars3")

    def nash_conv(leaf):
        return resolve(
            tree, ResolvingConfig("cfr+", 200, depth=1, leaf=leaf)
        ).nash_conv()

    exact, fixed = nash_conv(ExactValues(50)), nash_conv("uniform")
    assert exact < 0.05
    assert fixed > 5 * exact


def test_an_equilibriums_values_per_history_are_not_sound():
    """All of them are 0, whatever player 0 chose; so it may choose anything."""
    tree = compiler.compile_game(MadeGame(rps_plus, "rps_plus"), observations=True)
    behaviours = (
        np.concatenate([[1.0], RPS_PLUS, np.ones(3)]),
        np.concatenate([[1.0], RPS_PLUS]),
    )
    values = conversions.history_values(tree, behaviours)
    assert values == pytest.approx(
        np.where(tree.histories.player == TERMINAL, tree.histories.utility, 0.0)
    )

    def first_move(leaf):
        result = resolve(tree, ResolvingConfig("cfr+", 2000, depth=1, leaf=leaf))
        return result.average[0][1:4], result.nash_conv()

    scalar, exploited = first_move(lambda t, h: values[h])
    assert np.abs(scalar - RPS_PLUS).max() > 0.1
    assert exploited > 0.1
    exact, little = first_move(ExactValues(200))
    assert exact == pytest.approx(RPS_PLUS, abs=0.02)
    assert little < 0.04


@pytest.mark.parametrize("player", PLAYERS)
def test_moves_from_the_start_cut_once(player):
    """Above the cut every layer ends there; below it none is cut."""
    tree = compiled("ii_goofspiel4")
    d = decompose(tree, player)
    depths = np.repeat(
        np.arange(len(tree.histories.by_depth)),
        [level.stop - level.start for level in tree.histories.by_depth],
    )
    acts = tree.histories.player == player
    first_after = depths[acts & (depths >= 4)].min()
    for layer in range(1, d.num_layers + 1):
        ahead = look_ahead(d, layer, 4, ExactValues(1), unit="moves_from_start")
        above = depths[d.roots[d.layer[d.roots] == layer]].max() < 4
        assert (ahead.cut is not None) == above
        if ahead.cut is not None:
            assert set(depths[ahead.cut[0].history]) == {first_after}


def test_a_depth_that_cuts_nothing_is_warned_of(caplog):
    roles = [decompose(compiled("kuhn"), player) for player in range(2)]
    warn_if_never_cut(roles, 1, "moves")
    assert not caplog.messages
    warn_if_never_cut(roles, 50, "moves")
    (said,) = caplog.messages
    assert said.startswith("depth=50 (moves): every lookahead reaches the end of kuhn")


def test_the_memory_limit_counts_what_stands_at_the_cut(monkeypatch):
    tree = compiled("kuhn")
    # A process that holds nothing else, and room for all but the leaf.
    monkeypatch.setattr(memory, "held_bytes", lambda: 0)
    limit = footprint.peak_bytes(tree) + 50e6
    with pytest.raises(
        GameTooLargeError, match="kuhn.*take a smaller depth, or a leaf"
    ):
        continual.resolve(
            tree,
            ResolvingConfig(iterations=1, depth=1, leaf=ExactValues(1)),
            layout=Layout(memory_limit=limit),
        )
