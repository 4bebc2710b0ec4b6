"""Depth-limited lookahead: its leaves, their values, and the values of its forests.

Results are compared with slow recursions over the tree of `reference.py`, which shares
no code with the product.
"""

import functools

import numpy as np
import pytest

from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import conversions
from spiel_cr.policies.leaf_values import HistoryValues, LeafValue, UniformValue
from spiel_cr.resolving import decomposition, gadget
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.leaves import Continuations
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.roles import Role
from spiel_cr.resolving.truncation import (
    DepthLimit,
    truncate_layer,
    warn_if_never_truncated,
)
from tests.support import games, reference
from tests.support.forests import forest_reach, forest_value
from tests.support.made_games import (
    CHANCE,
    RPS_PLUS,
    TERMINAL,
    MadeGame,
    Node,
    rps_plus,
)
from tests.support.strategies import everywhere, forest_solver, random_behaviours

PLAYERS = (0, 1)
# Sums of hundreds of doubles of size 1.
TOLERANCE = 1e-12


def uneven(path):
    """Player 1's only infoset is deeper after chance outcome 1 than after outcome 0.

    Chance moves, then player 0 twice, then (after outcome 1) chance again, then player
    1, which observes nothing.
    """
    infos = (f"{len(path)}{path[1:3]}", "?")
    if not path:
        return Node(CHANCE, (0, 1), infos, chance=(0.25, 0.75))
    if len(path) in (1, 2):
        return Node(0, (0, 1), infos)
    rest = path[3:]
    if path[0] == 1 and not rest:
        return Node(CHANCE, (0,), infos, chance=(1.0,))
    if len(rest) == path[0]:
        return Node(1, (0, 1), infos)
    payoff = 1.0 + path[0] + 2 * path[1] - 3 * path[2] * rest[-1] + 0.5 * rest[-1]
    return Node(TERMINAL, utility=payoff)


def late(path):
    """Player 0's second infoset is deeper after chance outcome 1 than after outcome 0.

    Player 0 moves, then chance (twice after outcome 1), then player 0, which does not
    observe chance, then player 1.
    """
    infos = (f"{len(path)}{path[:1]}", "?")
    if len(path) in (1, 2) and path[1:] != (0,):
        actions = (0,) if path[1:] else (0, 1)
        return Node(CHANCE, actions, infos, chance=(1 / len(actions),) * len(actions))
    acts = len(path) - 2 - path[1] if path else 0
    if acts < 2:
        return Node(acts, (0, 1), (f"{acts}{path[:1]}", "?"))
    return Node(TERMINAL, utility=1.0 + path[0] - 3 * path[-1] * path[-2])


MADE = {"uneven": uneven, "late": late}


@functools.cache
def game_tree_of(name):
    if name not in MADE:
        return games.compiled(name)
    return tree_builder.build_tree(MadeGame(MADE[name], name), observations=True)


@functools.cache
def cut(name, player):
    return decomposition.decompose(game_tree_of(name), player)


@functools.cache
def reference_tree(name):
    return reference.Tree(game_tree_of(name).game)


# Every decision of these players opens a layer, so layers are easy to count.
LAYERS = {
    ("kuhn", 0): 2,
    ("kuhn", 1): 1,
    ("leduc7", 0): 4,
    ("leduc7", 1): 2,
    ("uneven", 0): 2,
}
SEATS = list(LAYERS)
ROWS = [
    (name, player, number, depth)
    for (name, player), layers in LAYERS.items()
    for number in range(1, layers + 1)
    for depth in (1, 2, 3, 4, 6)
]
every_row = pytest.mark.parametrize(("name", "player", "number", "depth"), ROWS)


@pytest.mark.parametrize(("name", "player"), SEATS)
def test_number_of_layers(name, player):
    assert cut(name, player).num_layers == LAYERS[name, player]


class Walk:
    """A lookahead by recursion: its leaves, terminal nodes and infosets (keys)."""

    def __init__(self, name, player, number, depth):
        self.nodes = reference_tree(name).nodes
        self.player, self.number, self.depth = player, number, depth
        self.leaves, self.ends, self.kept = set(), set(), set()
        self.roots = []
        self.down(0, 0, 0 if number == 1 else None)

    def down(self, index, turns, moves):
        node = self.nodes[index]
        mine = node.player == self.player
        turns += mine
        if moves is None and mine and turns == self.number:
            moves = 0
            self.roots.append(index)
        if moves is not None:
            if node.player == TERMINAL:
                self.ends.add(index)
                return
            if turns > self.number and moves >= self.depth:
                self.leaves.add(index)
                return
            if node.key is not None:
                self.kept.add(node.key)
        for child in node.children.values():
            self.down(child, turns, None if moves is None else moves + 1)

    def value(self, index, policy, worth):
        """Return player 0's expected value of the truncated game."""
        node = self.nodes[index]
        if index in self.leaves:
            return worth[index]
        if node.player == TERMINAL:
            return node.utility
        weights = node.probabilities if node.key is None else policy[node.key]
        return sum(
            weights[a] * self.value(c, policy, worth) for a, c in node.children.items()
        )


@functools.cache
def node_numbers(name):
    """Return the index of each history in the tree of `reference.py`."""
    return reference.node_numbers(reference_tree(name), game_tree_of(name))


def by_history(name, seed=5):
    """Return a random value for each history, float64 [N]."""
    return np.random.default_rng(seed).normal(size=len(game_tree_of(name).histories))


class Table(HistoryValues):
    """A user-defined leaf value that records its queries."""

    def __init__(self, values):
        self.values, self.asked = values, []

    def __call__(self, tree, histories, player=0):
        self.asked.append(histories)
        return self.values[histories]


@every_row
def test_leaves_equal_those_of_a_recursive_walk(name, player, number, depth):
    """Leaves have the given depth and follow the start of the player's next layer."""
    d, tree, numbers = cut(name, player), game_tree_of(name), node_numbers(name)
    table = Table(by_history(name))
    found = truncate_layer(d, number, depth, table)
    walk = Walk(name, player, number, depth)
    (asked,) = table.asked
    assert {numbers[h] for h in asked} == walk.leaves
    assert sorted(numbers[h] for h in found.histories) == sorted(
        walk.leaves | walk.ends
    )
    over = tree.histories.player[found.histories] == TERMINAL
    utility = tree.histories.utility
    expected = np.where(over, utility[found.histories], table.values[found.histories])
    np.testing.assert_array_equal(found.values, expected)
    for p in PLAYERS:
        keys = tree.infosets[p].keys
        kept = {(p, keys[i]) for i in np.flatnonzero(found.kept[p])}
        assert kept == {key for key in walk.kept if key[0] == p}
    # The infosets of the layer itself are never removed.
    assert found.kept[player][d.player_layer == number].all()


def test_some_infosets_are_partly_below_the_leaves():
    """The rows of these tests include leaves that split an infoset."""
    walk = Walk("uneven", 0, 1, 4)
    through = {walk.nodes[index].key for index in walk.leaves}
    assert through & walk.kept
    assert any(Walk(*row).leaves for row in ROWS if row[2] > 1)


@every_row
def test_forest_value_equals_that_of_the_truncated_game(name, player, number, depth):
    """Use random strategies, opponent values and leaf values."""
    d, tree, numbers = cut(name, player), game_tree_of(name), node_numbers(name)
    values = by_history(name)
    worth = {numbers[h]: values[h] for h in range(len(values))}
    behaviours = random_behaviours(tree, 7)
    policy = reference.from_behaviours(tree, behaviours)
    reach = conversions.reach_from_behaviour(
        tree.infosets[player].decisions, behaviours[player]
    )
    rng = np.random.default_rng(8)
    opponent_values = rng.normal(size=len(d.augmented_layer))
    choice = rng.uniform(0.1, 0.9, size=len(d.augmented_layer))
    lookahead = truncate_layer(d, number, depth, Table(values))
    forest = gadget.build_forest(d, number, reach, opponent_values, lookahead)
    follow = choice[forest.augmented]
    found = forest_value(forest, forest_reach(forest, d, behaviours, follow))

    walk = Walk(name, player, number, depth)
    if number == 1:
        expected = walk.value(0, policy, worth)
    else:
        augmented_of = {
            numbers[r]: int(g) for r, g in zip(d.roots, d.root_augmented, strict=True)
        }
        sign = 1 if player == 1 else -1
        given = sign * (1 - choice) * opponent_values
        expected = float(given[d.augmented_layer == number].sum())
        for root in walk.roots:
            weight = walk.nodes[root].chance * reference_tree(name).own_reach(
                root, player, policy
            )
            value = walk.value(root, policy, worth)
            expected += choice[augmented_of[root]] * weight * value
    assert found == pytest.approx(expected, abs=TOLERANCE)
    assert found != 0


@pytest.mark.parametrize(("name", "player"), SEATS)
def test_depth_beyond_the_end_does_not_change_payoffs(name, player):
    d = cut(name, player)
    ones = np.ones(d.tree.infosets[player].decisions.num_sequences)
    augmented = np.ones(len(d.augmented_layer))
    for number in range(1, d.num_layers + 1):
        far = truncate_layer(d, number, 100, UniformValue())
        limited = gadget.build_forest(d, number, ones, augmented, far).form.payoffs
        free = gadget.build_forest(d, number, ones, augmented).form.payoffs
        for a, b in zip(limited, free, strict=True):
            np.testing.assert_allclose(a, b, atol=TOLERANCE)


def test_rejects_invalid_leaf_values():
    d = cut("kuhn", 0)
    for bad in (lambda t, h: np.full(len(h), np.nan), lambda t, h: np.zeros(1)):
        with pytest.raises(ValueError, match="leaf: returned an array of shape"):
            truncate_layer(d, 1, 1, LeafValue(bad, "histories"))


def test_depth_limited_player_uses_the_leaf_value():
    """In Kuhn poker, player 0's second turn (after pass, bet) is a leaf.

    If the leaf's value is 9, the opponent never bets. If it is -9, the opponent always
    bets, so passing is wrong with every card.
    """
    strategies = []
    for worth in (9.0, -9.0):
        config = ResolvingConfig(
            "pdcfr+", 200, depth=1, leaf=lambda t, h, w=worth: np.full(len(h), w)
        )
        resolver = Resolver(game_tree_of("kuhn"), 0, config)
        strategies.append(everywhere(resolver))
        assert resolver.statistics.compilations == 0
    tree = game_tree_of("kuhn")
    first = tree.infosets[0].decisions.first_sequence
    top = first[np.flatnonzero(cut("kuhn", 0).player_layer == 1)]
    # With the queen passing is better than betting if no bet follows it.
    assert (strategies[1][top] < 0.05).all() and strategies[0][top].max() > 0.9
    limitless = Resolver(game_tree_of("kuhn"), 0, ResolvingConfig("pdcfr+", 200))
    far = Resolver(game_tree_of("kuhn"), 0, ResolvingConfig("pdcfr+", 200, depth=9))
    np.testing.assert_allclose(everywhere(far), everywhere(limitless), atol=1e-6)


def roots_cut(name, player, layer, depth, unit="moves"):
    """Return the multi-valued leaves of a layer's lookahead, int64 [R]."""
    leaf = Continuations(random_behaviours(game_tree_of(name), 4), 2)
    choices = truncate_layer(cut(name, player), layer, depth, leaf, unit=unit).choices
    return np.zeros(0, np.int64) if choices is None else choices.histories


@pytest.mark.parametrize(
    ("name", "player"),
    [("leduc7", 0), ("leduc7", 1), ("ii_goofspiel4", 0), ("late", 0)],
)
def test_multi_valued_leaves_do_not_split_public_states(name, player):
    """Public states are compared with brute force in test_decomposition.py."""
    d = cut(name, player)
    state = d.augmented_subgame[d.root_augmented]
    cuts = 0
    for layer in range(1, d.num_layers + 1):
        for depth in range(1, len(d.tree.histories.by_depth)):
            roots = roots_cut(name, player, layer, depth)
            at_cut = np.isin(d.roots, roots)
            assert at_cut.sum() == len(roots)
            assert set(state[at_cut]).isdisjoint(state[~at_cut])
            cuts += at_cut.any()
    assert cuts > 2


@pytest.mark.parametrize("player", PLAYERS)
def test_rounds_end_at_chance_nodes_after_decisions(player):
    """In Leduc poker, the leaves are the first turns with a public card."""
    d = cut("leduc7", player)
    for layer in range(1, d.num_layers + 1):
        roots = roots_cut("leduc7", player, layer, 1, "rounds")
        assert layer > 1 or len(roots)
        for history in roots:
            state = d.tree.state_at(int(history))
            assert state.current_player() == player
            assert "public -" not in str(state)
            # The card was dealt after the player's previous decision.
            last = d.tree.infosets[player].decisions
            above = last.owner[last.parent[d.tree.histories.infoset[history]]]
            before = d.tree.state_at(d.tree.infosets[player].history[above])
            assert "public -" in str(before)


def test_depths_that_truncate_nothing_cause_a_warning(caplog):
    roles = [cut("kuhn", player) for player in PLAYERS]
    warn_if_never_truncated(roles, 1, "moves")
    assert not caplog.messages
    warn_if_never_truncated(roles, 50, "moves")
    (said,) = caplog.messages
    assert said.startswith("depth=50 (moves): every lookahead reaches the end of kuhn")


@pytest.mark.parametrize("player", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_match_player_equals_the_forests(player):
    """Leduc poker with a fixed value for each history, one subgame at a time."""
    leaf, d = Table(by_history("leduc7")), cut("leduc7", player)
    role = Role(d, DepthLimit(1, leaf))
    state = role.start()
    for number in range(1, d.num_layers + 1):
        state = role.resolve(number, state, forest_solver("cfr+", 12))
    config = ResolvingConfig("cfr+", 12, depth=1, leaf=leaf)
    resolver = Resolver(game_tree_of("leduc7"), player, config)
    np.testing.assert_allclose(everywhere(resolver), state.behaviour, atol=1e-9)
    assert resolver.statistics.compilations == 0


def test_equilibrium_values_per_history_are_unsound_leaf_values():
    """They are 0 after every action of player 0, so player 0 may play anything."""
    tree = tree_builder.build_tree(MadeGame(rps_plus, "rps_plus"), observations=True)
    behaviours = (
        np.concatenate([[1.0], RPS_PLUS, np.ones(3)]),
        np.concatenate([[1.0], RPS_PLUS]),
    )
    values = conversions.history_values(tree, behaviours)
    over = tree.histories.player == TERMINAL
    assert values == pytest.approx(np.where(over, tree.histories.utility, 0.0))
    result = resolve(tree, ResolvingConfig("cfr+", 2000, depth=1, leaf=Table(values)))
    assert np.abs(result.average[0][1:4] - RPS_PLUS).max() > 0.1
    assert result.nash_conv() > 0.1
