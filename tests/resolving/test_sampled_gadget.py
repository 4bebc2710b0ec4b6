"""Layers as histories for sampled solvers: chances, values and structure, enumerated.

What a subgame is worth under random strategies is summed over its histories as samplers
walk them, and by hand over roots, each worth what `reference.py` says.
"""

import functools

import jax
import numpy as np
import pytest

from spiel_cr.cfr import config as algorithm
from spiel_cr.compilation import compiler
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.policies import conversions
from spiel_cr.resolving import decomposition, sampled_gadget
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.subgame_games import Layer
from tests.support import games, reference
from tests.support.made_games import random_game
from tests.support.strategies import random_behaviours

PLAYERS = (0, 1)
# Sums of hundreds of doubles of size 10.
TOLERANCE = 1e-11
LAYERS = {
    ("kuhn", 0): 2,
    ("kuhn", 1): 1,
    ("leduc7", 0): 4,
    ("leduc7", 1): 2,
    ("by turns", 1): 3,
}
SEATS = list(LAYERS)


@functools.cache
def compiled(name):
    if name != "by turns":
        return games.compiled(name)
    game = random_game(3, turns="by history", transient=0.3)
    return compiler.compile_game(game, observations=True)


@functools.cache
def cut(name, player):
    return decomposition.decompose(compiled(name), player)


ROWS = [
    (name, player, number)
    for (name, player), layers in LAYERS.items()
    for number in range(2, layers + 1)
]
every_layer = pytest.mark.parametrize(("name", "player", "number"), ROWS)


@pytest.mark.parametrize(("name", "player"), LAYERS)
def test_layers_are_as_many_as_listed(name, player):
    assert cut(name, player).num_layers == LAYERS[name, player]


@functools.cache
def laid_out(name, player, number):
    return sampled_gadget.SampledLayer.of(cut(name, player), number)


@functools.cache
def subgames(name, player, number):
    return Layer(cut(name, player), number)


@functools.cache
def worth(name, seed=3):
    """Random strategies, and what each history is worth under them, by recursion."""
    tree = compiled(name)
    behaviours = random_behaviours(tree, seed)
    policy = reference.from_behaviours(tree, behaviours)
    brute = reference.Tree(tree.game)
    nodes = reference.node_numbers(brute, tree)
    return behaviours, [reference.value_at(brute, policy, node) for node in nodes]


def table_of(at, samples, subgame_behaviours, d, choice):
    """float64 [T], probabilities of all actions, in the order of `sampling.py`."""
    fragments = []
    forest_own, forest_other = numbers_of(d, at)
    for p in PLAYERS:
        decisions, rows = d.tree.infosets[p].decisions, [np.ones(1)]
        if p != d.player:
            rows += [np.array([1 - c, c]) for c in choice[at.augmented]]
        for i in forest_own if p == d.player else forest_other:
            first = decisions.first_sequence[i]
            rows.append(subgame_behaviours[p][first : first + decisions.num_actions[i]])
        rest = at.tree.form.decisions[p].num_sequences - sum(map(len, rows))
        fragments += [*rows, np.ones(rest)]
    return np.concatenate([*fragments, samples.chance])


def numbers_of(d, at):
    """i's and o's infosets (numbers of the whole game) in the forest's order."""
    number = int(d.augmented_layer[at.augmented[0]])
    return np.flatnonzero(d.own_layer >= number), np.flatnonzero(
        d.other_layer >= number
    )


def enumerate_value(samples, table, depth=0, index=0):
    """Player 0's expected utility of the histories as samplers walk them."""
    level = samples.levels[depth]
    count = int(level.num_actions[index])
    if not count:
        return float(level.utility[index])
    row, first = int(level.row[index]), int(level.first_child[index])
    return sum(
        table[row + a] * enumerate_value(samples, table, depth + 1, first + a)
        for a in range(count)
        if table[row + a]
    )


def mass_of(d, subgame, own_reach):
    """float64 [g], reach of o's augmented infosets by chance and i."""
    weight = dict(zip(subgame.roots.tolist(), own_reach.tolist(), strict=True))
    mass = dict.fromkeys(subgame.augmented.tolist(), 0.0)
    histories = d.tree.histories
    for r, g in zip(d.roots.tolist(), d.root_augmented.tolist(), strict=True):
        if g in mass:
            mass[g] += weight[int(histories.infoset[r])] * histories.chance[r]
    return np.array(list(mass.values()))


def by_hand(d, subgame, own_reach, opponent_values, choice, values):
    """The CFR-D gadget's value over all of its roots' mass."""
    weight = dict(zip(subgame.roots.tolist(), own_reach.tolist(), strict=True))
    given = dict(zip(subgame.augmented.tolist(), opponent_values.tolist(), strict=True))
    histories, sign = d.tree.histories, 1 if d.player == 1 else -1
    total = sum((1 - choice[g]) * sign * v for g, v in given.items())
    mass = 0.0
    for r, g in zip(d.roots.tolist(), d.root_augmented.tolist(), strict=True):
        if g in given:
            w = weight[int(histories.infoset[r])] * histories.chance[r]
            mass += w
            total += choice[g] * w * values[r]
    return total / mass


def settings(d, subgame, rng, kind):
    """i's reach of the roots; o's values, 0 where i never comes."""
    own_reach = rng.uniform(0.01, 1, len(subgame.roots))
    if kind == "some never":
        own_reach[rng.permutation(len(own_reach))[: (len(own_reach) + 1) // 2]] = 0
    if kind == "never" or not own_reach.any():
        own_reach[:] = 0
    used = own_reach if own_reach.any() else np.ones_like(own_reach)
    opponent_values = rng.normal(size=len(subgame.augmented))
    opponent_values[mass_of(d, subgame, used) == 0] = 0
    return own_reach, used, opponent_values


@pytest.mark.parametrize("kind", ["all", "some never", "never"])
@every_layer
def test_every_subgame_is_worth_what_its_gadget_is(name, player, number, kind):
    """Terminating and following on one scale, whatever i's reach of the roots."""
    d, at = cut(name, player), laid_out(name, player, number)
    behaviours, values = worth(name)
    rng = np.random.default_rng(11)
    choice = rng.uniform(0.1, 0.9, len(d.augmented_layer))
    found_any = False
    for subgame in subgames(name, player, number).values():
        own_reach, used, opponent_values = settings(d, subgame, rng, kind)
        samples = at._fill(at.samples, subgame, own_reach, opponent_values)
        table = table_of(at, samples, behaviours, d, choice)
        found = enumerate_value(samples, table)
        expected = by_hand(d, subgame, used, opponent_values, choice, values)
        assert found == pytest.approx(expected, abs=TOLERANCE)
        found_any |= found != 0
    assert found_any


def test_some_augmented_infosets_are_never_come_to():
    """What the test above rests on: i never reaches some, but not all of them."""
    rng = np.random.default_rng(11)
    seen = 0
    for row in ROWS:
        for subgame in subgames(*row).values():
            own_reach, _, _ = settings(cut(*row[:2]), subgame, rng, "some never")
            mass = mass_of(cut(*row[:2]), subgame, own_reach)
            seen += bool((mass == 0).any() and (mass > 0).any())
    assert seen


@every_layer
def test_chances_are_those_of_the_subgame_alone(name, player, number):
    """By mass, none of another subgame; every row of outcomes sums to one."""
    d, at = cut(name, player), laid_out(name, player, number)
    num_augmented = len(at.augmented)
    before = at.samples.chance.copy()
    rng = np.random.default_rng(12)
    for subgame in subgames(name, player, number).values():
        own_reach, used, opponent_values = settings(d, subgame, rng, "all")
        samples = at._fill(at.samples, subgame, own_reach, opponent_values)
        mass = mass_of(d, subgame, used)
        expected = np.zeros(num_augmented)
        expected[np.searchsorted(at.augmented, subgame.augmented)] = mass / mass.sum()
        np.testing.assert_allclose(samples.chance[:num_augmented], expected, atol=1e-15)
        for level in samples.levels:
            for h in np.flatnonzero(np.asarray(level.player) == 2):
                row, count = int(level.row[h]), int(level.num_actions[h])
                begin = row - len(samples.row_of) + len(samples.chance)
                total = samples.chance[begin : begin + count].sum()
                assert total == pytest.approx(1, abs=1e-12)
        # Of the same shapes, so no new program; and nothing leaks into the next one.
        shapes = [
            jax.tree.map(lambda a: (a.shape, a.dtype), s) for s in (samples, at.samples)
        ]
        assert shapes[0] == shapes[1]
        np.testing.assert_array_equal(at.samples.chance, before)


@every_layer
def test_the_histories_of_a_layer(name, player, number):
    """Augmented infosets, two choices each, roots; below all of the game, no more."""
    d = cut(name, player)
    made, branch = sampled_gadget.gadget_histories(d, number)
    at, whole = made.histories, d.tree.histories
    num_augmented = int((d.augmented_layer == number).sum())
    np.testing.assert_array_equal(np.flatnonzero(branch), 1 + np.arange(num_augmented))
    assert (at.player[branch] == 1 - player).all()
    for g in range(num_augmented):
        below = np.flatnonzero(at.parent == 1 + g)
        assert [int(at.player[h]) for h in below] == [TERMINAL, CHANCE]
    within = d.layer >= number
    assert len(at) == 1 + 3 * num_augmented + int(within.sum())
    ends = within & (whole.player == TERMINAL)
    real = np.arange(len(at)) >= 1 + 3 * num_augmented
    np.testing.assert_allclose(
        np.sort(at.utility[real & (at.player == TERMINAL)]),
        np.sort(whole.utility[ends]),
    )
    for p in PLAYERS:
        mine = real & (at.player == p)
        assert int(mine.sum()) == int((within & (whole.player == p)).sum())
        # Infosets hold as many histories as in the whole game.
        sizes = np.unique(at.infoset[mine], return_counts=True)[1]
        kept = within & (whole.player == p)
        expected = np.unique(whole.infoset[kept], return_counts=True)[1]
        np.testing.assert_array_equal(np.sort(sizes), np.sort(expected))


def test_trajectories_are_aimed_at_the_infoset_and_its_surroundings():
    """Only what lies above or below one infoset is a target; nothing without an aim."""
    name, player, number = "kuhn", 0, 2
    at = laid_out(name, player, number)
    subgame = max(subgames(name, player, number).values(), key=lambda p: len(p.roots))
    assert len(subgame.roots) > 1
    # The algorithm of the players below, whose program serves here.
    config = algorithm.parse_any("os-mccfr(batch=256)")
    reach, values = np.ones(len(subgame.roots)), np.zeros(len(subgame.augmented))

    def targets(infosets):
        solver = at.solver(subgame, reach, values, config, infosets=infosets, seed=0)
        starts = at.tree.histories.level_start
        return np.concatenate(
            [
                np.asarray(level.target)[: end - begin]
                for level, begin, end in zip(
                    solver.problem.samples.levels, starts[:-1], starts[1:], strict=True
                )
            ]
        )

    assert targets(None).all()
    aim = subgame.in_forest[0][subgame.own == subgame.roots[0]]
    histories = at.tree.histories
    wanted = (histories.player == player) & (histories.infoset == aim[0])
    expected = np.zeros(len(histories), bool)
    for h in range(len(histories)):
        up, way = h, []
        while up >= 0:
            way.append(up)
            up = int(histories.parent[up])
        expected[h] |= bool(wanted[way].any())
        if wanted[h]:
            expected[way] = True
    # Terminating ends a way to the target, too.
    for g in range(len(at.augmented)):
        terminate = int(np.flatnonzero(histories.parent == 1 + g)[0])
        expected[terminate] = expected[1 + g]
    found = targets(aim)
    np.testing.assert_array_equal(found, expected)
    assert 0 < found.sum() < len(found)


@pytest.mark.parametrize(
    ("solver", "player"),
    [
        ("os-mccfr(batch=256)", 0),
        pytest.param("evr-mccfr(batch=256)", 1, marks=pytest.mark.slow),
        pytest.param("os-mccfr(batch=256)", 1, marks=pytest.mark.slow),
        pytest.param("evr-mccfr(batch=256)", 0, marks=pytest.mark.slow),
    ],
)
def test_a_sampling_player_nears_the_safe_strategy(solver, player):
    """Kuhn poker; the uniform strategy loses 0.45 or so, unsafe resolving 0.18."""
    from tests.resolving.test_resolver import loss, resolver_of

    settings = {"solver": solver, "iterations": 300}
    assert -1e-6 <= loss("kuhn", player, **settings) < 0.08
    assert resolver_of("kuhn", player, **settings).statistics.programs_compiled == 0


def test_the_same_seed_gives_the_same_strategy():
    found = []
    for seed in (1, 1, 2):
        config = ResolvingConfig("os-mccfr(batch=256)", 5)
        resolver = Resolver(games.compiled("kuhn"), 0, config, seed=seed)
        match = resolver.match()
        last = len(resolver.tree.infosets[0]) - 1
        found.append([resolver.strategy(match, i).tolist() for i in range(last + 1)])
    assert found[0] == found[1] != found[2]
    uniform = conversions.uniform_behaviour(resolver.tree.infosets[0].decisions)
    assert not np.allclose(np.concatenate(found[0]), uniform[1:])
