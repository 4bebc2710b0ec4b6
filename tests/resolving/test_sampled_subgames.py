"""Padded tables of subgames: their probabilities, values and structure.

The value of a subgame under random strategies is computed twice: by a sum over its
histories in the order of the samplers, and by a sum over its roots with the values of
`reference.py`.
"""

import functools

import jax
import numpy as np
import pytest

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import best_response_value
from spiel_cr.resolving import decomposition, sampled_subgames, subgame_sampling
from spiel_cr.resolving.layer_subgames import Layer
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.sampled_subgames import SubgameShape
from spiel_cr.solvers.algorithms import find
from tests.support import games, reference
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node, random_game
from tests.support.strategies import everywhere, random_behaviours

PLAYERS = (0, 1)
# The tables are in single precision; sums of hundreds of numbers up to ten.
TOLERANCE = 1e-5
LAYERS = {
    ("kuhn", 0): 2,
    ("kuhn", 1): 1,
    ("leduc7", 0): 4,
    ("leduc7", 1): 2,
    ("by turns", 1): 3,
}


@functools.cache
def game_tree_of(name):
    if name != "by turns":
        return games.compiled(name)
    game = random_game(3, turns="by history", transient=0.3)
    return tree_builder.build_tree(game, observations=True)


@functools.cache
def cut(name, player):
    return decomposition.decompose(game_tree_of(name), player)


ROWS = [
    (name, player, number)
    for (name, player), layers in LAYERS.items()
    for number in range(2, layers + 1)
]
every_layer = pytest.mark.parametrize(("name", "player", "number"), ROWS)


@pytest.mark.parametrize(("name", "player"), LAYERS)
def test_number_of_layers(name, player):
    assert cut(name, player).num_layers == LAYERS[name, player]


@functools.cache
def sampled_layers_of(name, player):
    config = find("os-mccfr(batch=16,explore=balanced)").config
    return sampled_subgames.sampled_layers(cut(name, player), config)


@functools.cache
def subgames(name, player, number):
    return Layer(cut(name, player), number)


@functools.cache
def random_history_values(name, seed=3):
    """Return random strategies and the value of each history under them."""
    tree = game_tree_of(name)
    behaviours = random_behaviours(tree, seed)
    policy = reference.from_behaviours(tree, behaviours)
    brute = reference.Tree(tree.game)
    nodes = reference.node_numbers(brute, tree)
    return behaviours, [reference.value_at(brute, policy, node) for node in nodes]


def tables(name, player, number, label, player_reach, opponent_values):
    """Return a subgame's layer, histories, filled tables and total reach."""
    layer = sampled_layers_of(name, player)[number - 1]
    subgame = subgames(name, player, number)[label]
    nodes = layer._groups.of(label)
    tree, mass = layer._fill(
        layer._cut(label, subgame), nodes, subgame, player_reach, opponent_values
    )
    return layer, nodes, tree, mass


def strategy_of(d, subgame, nodes, tree, behaviours, choice):
    """Return the strategies as float64 [A, R], in the order of the tables' rows."""
    found, begin = np.array(tree.uniform, np.float64), 0
    histories = d.tree.histories
    for p in (d.player, 1 - d.player):
        decisions = d.tree.infosets[p].decisions
        for i in np.unique(histories.infoset[nodes[histories.player[nodes] == p]]):
            first, count = decisions.first_sequence[i], decisions.num_actions[i]
            assert tree.owner[begin] == p
            assert (found[:count, begin] == np.float32(1 / count)).all()
            found[:count, begin] = behaviours[p][first : first + count]
            begin += 1
    for c in choice[subgame.augmented]:
        found[:2, begin] = 1 - c, c
        begin += 1
    return found


def enumerate_value(tree, strategy):
    """Return player 0's expected utility, summed over the tables of a subgame."""

    def below(history):
        count, row = int(tree.level.num_actions[history]), int(tree.level.row[history])
        if not count:
            return float(tree.level.utility[history])
        first = int(tree.level.first_child[history])
        return sum(strategy[a, row] * below(first + a) for a in range(count))

    total = 0.0
    columns = (tree.root, tree.gadget, tree.share, tree.terminate)
    for root, gadget, share, terminate in zip(*columns, strict=True):
        if share:
            stop, follow = strategy[0, gadget], strategy[1, gadget]
            total += share * (stop * terminate + follow * below(int(root)))
    return total


def mass_of(d, subgame, player_reach):
    """Return float64 [g], the reach of o's augmented infosets by chance and i."""
    weight = dict(zip(subgame.roots.tolist(), player_reach.tolist(), strict=True))
    mass = dict.fromkeys(subgame.augmented.tolist(), 0.0)
    histories = d.tree.histories
    for r, g in zip(d.roots.tolist(), d.root_augmented.tolist(), strict=True):
        if g in mass:
            mass[g] += weight[int(histories.infoset[r])] * histories.chance[r]
    return np.array(list(mass.values()))


def expected_gadget_value(d, subgame, player_reach, opponent_values, choice, values):
    """Return the value of the CFR-D gadget game, divided by the reach of its roots."""
    weight = dict(zip(subgame.roots.tolist(), player_reach.tolist(), strict=True))
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
    """Return i's reach of the roots, and o's values (0 if i never reaches them)."""
    player_reach = rng.uniform(0.01, 1, len(subgame.roots))
    if kind == "some never":
        player_reach[
            rng.permutation(len(player_reach))[: (len(player_reach) + 1) // 2]
        ] = 0
    if kind == "never" or not player_reach.any():
        player_reach[:] = 0
    used = player_reach if player_reach.any() else np.ones_like(player_reach)
    opponent_values = rng.normal(size=len(subgame.augmented))
    opponent_values[mass_of(d, subgame, used) == 0] = 0
    return player_reach, used, opponent_values


@pytest.mark.parametrize("kind", ["all", "some never", "never"])
@every_layer
def test_subgame_values_equal_the_gadget_values(name, player, number, kind):
    """Terminate and follow values have the same scale for every reach of the roots."""
    d, row = cut(name, player), (name, player, number)
    behaviours, values = random_history_values(name)
    rng = np.random.default_rng(11)
    choice = rng.uniform(0.1, 0.9, len(d.augmented_layer))
    found_any = False
    for label, subgame in subgames(*row).items():
        player_reach, used, opponent_values = settings(d, subgame, rng, kind)
        layer, nodes, tree, _ = tables(*row, label, player_reach, opponent_values)
        strategy = strategy_of(d, subgame, nodes, tree, behaviours, choice)
        found = enumerate_value(tree, strategy) * layer._shared.scale
        expected = expected_gadget_value(
            d, subgame, used, opponent_values, choice, values
        )
        assert found == pytest.approx(expected, abs=TOLERANCE)
        found_any |= found != 0
    assert found_any


def test_some_augmented_infosets_are_unreached():
    """The test above includes subgames in which i reaches only some of the roots."""
    rng = np.random.default_rng(11)
    seen = 0
    for row in ROWS:
        for subgame in subgames(*row).values():
            player_reach, _, _ = settings(cut(*row[:2]), subgame, rng, "some never")
            mass = mass_of(cut(*row[:2]), subgame, player_reach)
            seen += bool((mass == 0).any() and (mass > 0).any())
    assert seen


@every_layer
def test_tables_contain_exactly_the_histories_of_the_subgame(name, player, number):
    """Each history appears once, probabilities sum to one, and all shapes are equal."""
    d, row = cut(name, player), (name, player, number)
    histories, rng = d.tree.histories, np.random.default_rng(12)
    shapes, met = set(), 0
    for label, subgame in subgames(*row).items():
        player_reach, used, opponent_values = settings(d, subgame, rng, "all")
        layer, nodes, tree, mass = tables(*row, label, player_reach, opponent_values)
        met += len(nodes)
        np.testing.assert_allclose(mass, mass_of(d, subgame, used).sum(), rtol=1e-12)
        assert tree.share.sum() == pytest.approx(1, abs=1e-6)
        assert (tree.share[len(np.unique(tree.root)) - 1 :] == 0).any()
        for k, h in enumerate(nodes):
            below = nodes[
                tree.level.first_child[k] + np.arange(tree.level.num_actions[k])
            ]
            np.testing.assert_array_equal(below, np.flatnonzero(histories.parent == h))
        at_chance = tree.level.row[tree.level.player == 2]
        assert len(set(at_chance)) == len(at_chance)
        np.testing.assert_allclose(tree.uniform[:, at_chance].sum(0), 1, atol=1e-6)
        assert (tree.owner[at_chance] == 2).all()
        players = tree.owner < 2
        for table in (tree.uniform, tree.explore):
            np.testing.assert_allclose(table[:, players].sum(0), 1, atol=1e-6)
        # The last entry of each table is padding.
        assert tree.level.num_actions[-1] == 0 and not tree.uniform[:, -1].any()
        beyond = tree.next_augmented[: len(nodes)]
        deeper = beyond < layer.shape.below - 1
        assert (d.layer[nodes[deeper]] == number + 1).all()
        found = subgame.next_augmented[beyond[deeper]]
        where = np.searchsorted(d.roots, nodes[deeper])
        np.testing.assert_array_equal(found, d.root_augmented[where])
        shapes.add(tuple(jax.tree.leaves(jax.tree.map(np.shape, tree))))
    assert len(shapes) == 1
    assert met == (d.layer >= number).sum()


def one_player_game(path):
    """Player 0 guesses a chance outcome, then may take a payoff of a half."""
    if len(path) == 3:
        return Node(TERMINAL, utility=float(path[0] == path[1]) + 0.5 * path[2])
    if len(path) == 1:
        return Node(CHANCE, (0, 1), chance=(0.25, 0.75))
    return Node(0, (0, 1), (" ".join(map(str, path)), "nothing"))


@pytest.mark.slow
@pytest.mark.parametrize("values", ["iterates", "best_response"])
def test_solves_games_in_which_the_opponent_never_acts(values):
    tree = tree_builder.build_tree(
        MadeGame(one_player_game, "alone"), observations=True
    )
    config = ResolvingConfig("os-mccfr(batch=64,explore=balanced)", 30, values=values)
    behaviour = everywhere(Resolver(tree, 0, config))
    reach = conversions.reach_from_behaviour(tree.infosets[0].decisions, behaviour)
    # The optimal value is 0.75 + 0.5; uniform play has value 0.75.
    assert 1.2 < -best_response_value(tree.sequence_form, 1, reach) <= 1.25 + 1e-6


def test_layers_of_similar_size_share_a_shape():
    sizes = (100_000, 30_000, 4000, 10)
    shapes = [SubgameShape(n, 9 - k, k, 1, 2, 3) for k, n in enumerate(sizes)]
    assert list(sampled_subgames._together(shapes)) == [[0, 1], [2, 3]]
    layers = sampled_layers_of("leduc7", 0)
    assert len(layers) == 4 and len({layer.shape for layer in layers}) == 1
    assert shapes[0].join(shapes[3]) == SubgameShape(100_000, 9, 3, 1, 2, 3)


@pytest.mark.parametrize("target", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_all_subgames_of_a_player_share_one_compiled_function(target, monkeypatch):
    """The function is compiled in the constructor of the player, not in a match."""
    monkeypatch.setattr(sampled_subgames, "_KEPT_BYTES", 1)
    before = subgame_sampling.compilations()
    config = ResolvingConfig("os-mccfr(batch=24)", 2, values="iterates", target=target)
    resolver = Resolver(game_tree_of("leduc7"), 0, config)
    assert subgame_sampling.compilations() == before + 1
    match = resolver.match()
    for infoset in range(len(resolver.decomposition.tree.infosets[0])):
        resolver.strategy(match, infoset)
    assert len(match.solved) > 10
    assert subgame_sampling.compilations() == before + 1
    assert {len(layer._kept_trees) for layer in resolver.subgames._sampled} == {1}


@pytest.mark.parametrize(("name", "player"), [("kuhn", 0), ("leduc7", 1)])
def test_targets_are_the_roots_in_the_infoset_of_the_decision(name, player):
    """Exactly the histories of the decision's infoset are marked among the roots."""
    config = ResolvingConfig("os-mccfr(batch=8)", 1, target=True)
    resolver = Resolver(game_tree_of(name), player, config)
    d, histories = resolver.decomposition, game_tree_of(name).histories
    marked = 0
    for infoset in np.flatnonzero(d.opens & (d.player_layer > 1)).tolist():
        match = resolver.match()
        resolver.strategy(match, infoset)
        subgame_id, solve = match.last
        assert subgame_id.target == infoset
        layer = resolver.subgames._sampled[subgame_id.layer - 1]
        tree = solve.solver.problem.tree
        nodes = layer._groups.of(subgame_id.subgame)
        found = nodes[tree.root[np.flatnonzero(tree.target)]]
        at_infoset = (histories.player == player) & (histories.infoset == infoset)
        np.testing.assert_array_equal(np.sort(found), np.flatnonzero(at_infoset))
        marked += len(found)
    assert marked >= 6
    start = resolver.subgames.subgames_to(0)[0]
    assert start.layer == 1 and start.target == -1


@pytest.mark.parametrize("solver", ["auto", "cfr+", "os-mccfr(delta=0)"])
def test_target_setting_requires_targeted_sampling(solver):
    with pytest.raises(ValueError, match="target=True: .* such as solver='os-mccfr'"):
        ResolvingConfig(solver, 5, target=True)
    with pytest.raises(ValueError, match="target='infoset' must be one of True, False"):
        ResolvingConfig("os-mccfr", 5, target="infoset")


@pytest.mark.parametrize(
    ("solver", "setting"),
    [
        ("es-mccfr", "scheme='external'"),
        ("as-mccfr", "scheme='average'"),
        ("os-mccfr(incremental=true)", "incremental=true"),
        ("os-mccfr(averaging=sampled)", "averaging=sampled"),
    ],
)
def test_rejects_samplers_without_subgame_support(solver, setting):
    with pytest.raises(ValueError, match=f"{setting}; .* use one such as cfr"):
        ResolvingConfig(solver, 5)


@pytest.mark.parametrize(
    ("solver", "player", "values"),
    [
        ("os-mccfr(batch=256)", 0, "iterates"),
        ("os-mccfr(batch=256)", 0, None),
        *[
            pytest.param(solver, player, values, marks=pytest.mark.slow)
            for values in ("iterates", None)
            for player in PLAYERS
            for solver in (
                "evr-mccfr(batch=256)",
                "os-mccfr(batch=256,baseline=average,alternating=false)",
            )
        ],
    ],
)
def test_sampling_player_has_low_exploitability(solver, player, values):
    """The uniform strategy loses about 0.45; re-solving without a gadget loses 0.18."""
    from tests.resolving.test_resolver import exploitability_of_player, resolver_of

    settings = {"solver": solver, "iterations": 300, "values": values}
    assert -1e-6 <= exploitability_of_player("kuhn", player, **settings) < 0.08
    assert resolver_of("kuhn", player, **settings).statistics.compilations == 0


def test_targeted_player_has_low_exploitability():
    from tests.resolving.test_resolver import exploitability_of_player

    settings = {"solver": "os-mccfr(batch=256)", "iterations": 300, "target": True}
    assert -1e-6 <= exploitability_of_player("kuhn", 0, **settings) < 0.08


def test_same_seed_gives_same_strategy():
    found = []
    for seed in (1, 1, 2):
        config = ResolvingConfig("os-mccfr(batch=256)", 5)
        resolver = Resolver(games.compiled("kuhn"), 0, config, seed=seed)
        match = resolver.match()
        last = len(resolver.decomposition.tree.infosets[0]) - 1
        found.append([resolver.strategy(match, i).tolist() for i in range(last + 1)])
    assert found[0] == found[1] != found[2]
    uniform = conversions.uniform_behaviour(
        resolver.decomposition.tree.infosets[0].decisions
    )
    assert not np.allclose(np.concatenate(found[0]), uniform[1:])
