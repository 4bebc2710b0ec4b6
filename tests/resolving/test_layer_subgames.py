"""Layers divided into subgames of a common shape, and the payoffs of each gadget.

Payoffs are compared with sums over OpenSpiel's states (`reference.py`): the values of
the roots under random strategies, weighted as each gadget defines.
"""

import functools
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.games.tree import tree_builder
from spiel_cr.policies import best_responses, conversions
from spiel_cr.resolving import decomposition, gadget
from spiel_cr.resolving.layer_subgames import Layer, best_response_values
from tests.support import games, reference
from tests.support.forests import forest_reach, forest_value
from tests.support.strategies import random_behaviours, solver_of

PLAYERS = (0, 1)
# Sums of hundreds of doubles of size 10.
TOLERANCE = 1e-11

GAMES = {
    "kuhn": "kuhn_poker",
    "leduc7": "python_leduc_poker",
    "ii_goofspiel3": "python_ii_goofspiel(num_cards=3)",
    "dark_hex": games.BY_NAME["dark_hex"].string,
    "liars_dice3": "liars_dice(numdice=1,dice_sides=3)",
}


@functools.cache
def game_tree_of(name):
    return tree_builder.build_tree(GAMES[name], observations=True)


@functools.cache
def cut(name, player):
    return decomposition.decompose(game_tree_of(name), player)


@functools.cache
def reference_tree(name):
    """Return the tree of `reference.py` and its node of each history."""
    tree = game_tree_of(name)
    brute = reference.Tree(tree.game)
    return brute, reference.node_numbers(brute, tree)


LAYERS = {
    ("kuhn", 0): 2,
    ("kuhn", 1): 1,
    ("leduc7", 0): 4,
    ("leduc7", 1): 2,
    ("ii_goofspiel3", 0): 3,
    ("ii_goofspiel3", 1): 3,
    ("dark_hex", 0): 3,
    ("dark_hex", 1): 4,
    ("liars_dice3", 0): 4,
    ("liars_dice3", 1): 3,
}
ROWS = [
    (name, player, number)
    for (name, player), layers in LAYERS.items()
    for number in range(1, layers + 1)
]
BELOW = [row for row in ROWS if row[2] > 1]
every_layer = pytest.mark.parametrize(("name", "player", "number"), ROWS)
every_lower_layer = pytest.mark.parametrize(("name", "player", "number"), BELOW)
every_gadget = pytest.mark.parametrize("kind", ["cfrd", "maxmargin"])


@pytest.mark.parametrize(("name", "player"), LAYERS)
def test_number_of_layers(name, player):
    assert cut(name, player).num_layers == LAYERS[name, player]


class Setting:
    """A layer with random strategies, opponent values and reach probabilities."""

    def __init__(self, name, player, number, seed=3):
        self.d = d = cut(name, player)
        self.player, self.number = player, number
        tree, histories = d.tree, d.tree.histories
        rng = np.random.default_rng(seed)
        self.behaviours = random_behaviours(tree, seed)
        self.reach = conversions.reach_from_behaviour(
            tree.infosets[player].decisions, self.behaviours[player]
        )
        self.opponent_values = rng.normal(size=len(d.augmented_layer))
        self.choice = rng.uniform(0.1, 0.9, size=len(d.augmented_layer))
        brute, nodes = reference_tree(name)
        policy = reference.from_behaviours(tree, self.behaviours)
        augmented_of = dict(
            zip(d.roots.tolist(), d.root_augmented.tolist(), strict=True)
        )
        # Root history, augmented infoset, weight (chance, i's reach), value.
        self.roots = []
        for r, g in augmented_of.items():
            if d.augmented_layer[g] == number:
                value = reference.value_at(brute, policy, nodes[r])
                own = brute.own_reach(nodes[r], player, policy)
                weight = brute.nodes[nodes[r]].chance
                self.roots.append((r, g, weight, own, value))
        self.root_above = np.full(len(histories), -1)
        for h in range(len(histories)):
            up = histories.parent[h]
            self.root_above[h] = h if h in augmented_of else self.root_above[up]
        self.augmented_of = augmented_of
        self.forest = gadget.build_forest(d, number, self.reach, self.opponent_values)

    def subgame_of(self, history):
        """Return the subgame of a history in this layer or below it."""
        if self.number == 1:
            return 0
        while True:
            root = int(self.root_above[history])
            augmented = self.augmented_of[root]
            if self.d.augmented_layer[augmented] == self.number:
                return int(self.d.augmented_subgame[augmented])
            history = self.d.tree.histories.parent[root]

    def game(self, cut_up, k, reach=None):
        subgame = cut_up[k]
        reach = self.reach if reach is None else reach
        parents = self.d.tree.infosets[self.player].decisions.parent[subgame.roots]
        values = self.opponent_values[subgame.augmented]
        form = cut_up.form(k, reach[parents], values)
        return SimpleNamespace(form=form, subgame=subgame, first=cut_up.first)

    def other_of(self, k):
        """Return o's infosets in a subgame, by their indices in the whole game."""
        first = self.d.tree.infosets[1 - self.player].history
        return [i for i in self.forest.other if self.subgame_of(first[i]) == k]

    def value(self, game, k, kind):
        """Return player 0's expected payoff in a gadget game."""
        subgame, tree = game.subgame, self.d.tree
        sides = [None, None]
        for p in PLAYERS:
            decisions = tree.infosets[p].decisions
            rows = [np.ones(1)]
            if p != self.player and self.number > 1:
                choices = self.choice[subgame.augmented]
                if kind == "cfrd":
                    rows += [np.array([1 - c, c]) for c in choices]
                else:
                    rows.append(choices / choices.sum())
            for i in subgame.infosets if p == self.player else self.other_of(k):
                first = decisions.first_sequence[i]
                count = decisions.num_actions[i]
                rows.append(self.behaviours[p][first : first + count])
            if p != self.player:
                rows.append(np.ones(len(subgame.next_augmented)))
            sides[p] = conversions.reach_from_behaviour(
                game.form.decisions[p], np.concatenate(rows)
            )
        rows, columns, values = game.form.payoffs
        return float(np.sum(values * sides[0][rows] * sides[1][columns]))

    def direct(self, subgame, kind, *, uniform=False):
        """Return the same value as `value`, by a sum over roots."""
        augmented = subgame.augmented.tolist()
        total = self.choice[augmented].sum()
        sign = 1 if self.player == 1 else -1
        result = 0.0
        for g in augmented:
            here = [row for row in self.roots if row[1] == g]
            weights = [
                chance * (1 if uniform else own) for _, _, chance, own, _ in here
            ]
            worth = sum(w * row[4] for w, row in zip(weights, here, strict=True))
            given = sign * self.opponent_values[g]
            if kind == "cfrd":
                c = self.choice[g]
                result += c * worth + (1 - c) * given
            else:
                result += self.choice[g] / total * (worth - given)
        return result


@functools.cache
def setting(name, player, number):
    return Setting(name, player, number)


@functools.cache
def layer_of(name, player, number, kind="cfrd"):
    return Layer(cut(name, player), number, kind)


@every_layer
def test_subgames_partition_the_forest(name, player, number):
    forest = setting(name, player, number).forest
    subgames = layer_of(name, player, number).values()

    def together(field):
        return sorted(np.concatenate([getattr(p, field) for p in subgames]).tolist())

    assert together("infosets") == sorted(forest.infosets.tolist())
    assert together("augmented") == sorted(forest.augmented.tolist())
    assert together("next_augmented") == sorted(forest.next_augmented.tolist())
    assert len(together("base")) == len(forest.form.payoffs.values)
    for p in PLAYERS:
        infosets = sum(len(subgame.decisions[p]) for subgame in subgames)
        assert infosets == len(forest.form.decisions[p])
    d = cut(name, player)
    for subgame in subgames:
        np.testing.assert_array_equal(
            subgame.in_layer, d.player_layer[subgame.infosets] == number
        )
        if number > 1:
            assert (
                d.opens[subgame.roots] & (d.player_layer[subgame.roots] == number)
            ).all()


@every_layer
def test_subgame_values_sum_to_the_forest_value(name, player, number):
    """Use random strategies, reach probabilities and opponent values."""
    at = setting(name, player, number)
    cut_up = layer_of(name, player, number)
    found = sum(at.value(at.game(cut_up, k), k, "cfrd") for k in cut_up)
    forest = at.forest
    follow = at.choice[forest.augmented]
    reach = forest_reach(forest, at.d, at.behaviours, follow)
    expected = forest_value(forest, reach)
    assert found == pytest.approx(expected, abs=TOLERANCE)
    assert expected != 0


@every_gadget
@every_lower_layer
def test_gadget_payoffs_equal_sums_over_roots(name, player, number, kind):
    """Sum o's choices, weighted roots and constants of every subgame."""
    at = setting(name, player, number)
    cut_up = layer_of(name, player, number, kind)
    sizes = []
    for k, subgame in cut_up.items():
        found = at.value(at.game(cut_up, k), k, kind)
        assert found == pytest.approx(at.direct(subgame, kind), abs=TOLERANCE)
        sizes.append(abs(found))
    # Random strategies rarely reach deep layers.
    assert max(sizes) > 1e-5


@every_gadget
def test_unreached_subgames_weight_their_roots_equally(kind):
    at = setting("ii_goofspiel3", 0, 2)
    cut_up = layer_of("ii_goofspiel3", 0, 2, kind)
    for k, subgame in cut_up.items():
        game = at.game(cut_up, k, np.zeros_like(at.reach))
        expected = at.direct(subgame, kind, uniform=True)
        assert at.value(game, k, kind) == pytest.approx(expected, abs=TOLERANCE)


@every_gadget
@every_lower_layer
def test_all_subgames_of_a_layer_have_the_same_shape(name, player, number, kind):
    at = setting(name, player, number)
    cut_up = layer_of(name, player, number, kind)

    def shape(k):
        arrays = at.game(cut_up, k).form.arrays
        return jax.tree.map(lambda a: (a.shape, a.dtype), arrays)

    shapes = [shape(k) for k in cut_up]
    structures = {jax.tree.structure(s) for s in shapes}
    assert len(structures) == 1
    assert all(s == shapes[0] for s in shapes)


@every_gadget
@every_layer
def test_common_capacity_equals_the_maximum_over_subgames(name, player, number, kind):
    """The capacity is computed without the subgames; here it is compared with them."""
    cut_up = Layer(cut(name, player), number, kind)
    expected = layout.common_shapes(
        [
            layout.shapes_of(
                subgame.decisions, Payoffs(subgame.rows, subgame.columns, subgame.base)
            )
            for subgame in cut_up.values()
        ]
    )
    for mine, theirs in zip(cut_up.capacity, expected, strict=True):
        assert [level.tolist() for level in mine.levels] == [
            level.tolist() for level in theirs.levels
        ]
        assert mine.rows.tolist() == theirs.rows.tolist()
    widths = {k: len(subgame.next_augmented) for k, subgame in cut_up.items()}
    assert widths[cut_up.largest] == max(widths.values())


def test_subgames_are_built_lazily(monkeypatch):
    """Large layers stay affordable: one of latent tic-tac-toe has 166,000 subgames."""
    cuts = []
    whole_cut = Layer._cut
    monkeypatch.setattr(
        Layer, "_cut", lambda self, k: cuts.append(k) or whole_cut(self, k)
    )
    cut_up = Layer(cut("ii_goofspiel3", 0), 2)
    assert len(cut_up) > 2
    assert cuts == []
    assert cut_up[cut_up.largest] is cut_up[cut_up.largest]
    assert cuts == [cut_up.largest]
    with pytest.raises(KeyError):
        cut_up[-1]


@every_gadget
@every_layer
def test_opponent_updates_first_only_in_the_maxmargin_gadget(
    name, player, number, kind
):
    """The first layer has no gadget, so the re-solving player i updates first there."""
    at = setting(name, player, number)
    cut_up = layer_of(name, player, number, kind)
    other_first = kind == "maxmargin" and number > 1
    expected = 1 - player if other_first else player
    assert at.game(cut_up, cut_up.largest).first == expected


def test_unpadded_subgames_have_different_sizes():
    """Without padding, the shapes would differ, so the tests above can fail."""
    subgames = layer_of("ii_goofspiel3", 0, 2).values()
    assert len({len(subgame.base) for subgame in subgames}) > 1


def run(form, player, iterations):
    solver = solver_of(form, "cfr+", values=True, first=player)
    solver.run(iterations)
    return solver


@pytest.mark.parametrize(
    ("name", "player", "number"), [("kuhn", 0, 2), ("ii_goofspiel3", 1, 2)]
)
def test_subgame_solution_equals_the_forest_solution(name, player, number):
    """Compare strategies and o's values in the next layer.

    The values at the augmented infosets are random, so rounding cannot break ties.
    """
    at = setting(name, player, number)
    together = run(at.forest.form, player, 60)
    decisions = at.forest.form.decisions[player]
    expected = together.average_behaviour(player)
    values = together.infoset_values(1 - player)
    values = values[len(values) - len(at.forest.next_augmented) :]
    cut_up = layer_of(name, player, number)
    for k, subgame in cut_up.items():
        alone = run(at.game(cut_up, k).form, player, 60)
        mine = np.flatnonzero(np.isin(at.forest.infosets, subgame.infosets))
        rows = np.isin(decisions.owner, mine)
        np.testing.assert_allclose(
            alone.average_behaviour(player)[1:], expected[rows], atol=1e-6
        )
        found = alone.infoset_values(1 - player)
        found = found[len(found) - len(subgame.next_augmented) :]
        there = np.isin(at.forest.next_augmented, subgame.next_augmented)
        np.testing.assert_allclose(found, values[there], atol=1e-6)
    uniform = conversions.uniform_behaviour(decisions)
    assert np.abs(expected - uniform).max() > 0.1


@pytest.mark.parametrize(
    ("name", "player", "number"), [("kuhn", 0, 1), ("ii_goofspiel3", 1, 2)]
)
def test_best_response_values_equal_those_of_the_gadget_game(name, player, number):
    """Compare with `best_responses.py` on the gadget game, also for zero reach of i."""
    rng = np.random.default_rng(4)
    cut_up, largest = layer_of(name, player, number), 0.0
    for k, subgame in cut_up.items():
        decisions = subgame.decisions[player]
        weights = rng.exponential(size=decisions.num_sequences)
        totals = np.bincount(decisions.owner[1:], weights[1:])
        behaviour = np.append(1.0, weights[1:] / totals[decisions.owner[1:]])
        reach = rng.uniform(size=len(subgame.roots)) * (number > 1 and k % 2)
        given = rng.normal(size=len(subgame.augmented))
        form = cut_up.form(k, reach, given)
        theirs = conversions.reach_from_behaviour(decisions, behaviour)
        values = best_responses.infoset_values(form, 1 - player, theirs)[:-1]
        expected = values[len(values) - len(subgame.next_augmented) :]
        found = best_response_values(subgame, player, reach, behaviour)
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)
        largest = max(largest, np.abs(found).max(initial=0))
    assert largest > 0.01
