"""Gadget games in public-tree form, compared with those of the game tree."""

import functools

import numpy as np
import pyspiel
import pytest

from game_defs.bundled import public_tree_of_universal_poker
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.queries import query
from spiel_cr.resolving import continual, decomposition
from spiel_cr.resolving.gadget import build_forest
from spiel_cr.resolving.public_deals import BoardDeals
from spiel_cr.resolving.public_decomposition import betting_kinds, decompose_public
from spiel_cr.resolving.public_gadget import build_public_forest, cut_public
from spiel_cr.solvers.representation import GameOptions
from tests.support import detection, games

PLAYERS = (0, 1)
slow = pytest.mark.slow


@functools.cache
def located(name):
    return detection.locate(games.compiled(name))


@functools.cache
def holdem_game():
    """Return a poker game of six cards whose payoff matrices compare hands."""
    game = pyspiel.load_game(
        "universal_poker(numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
        "raiseSize=2 4,maxRaises=1 1,betting=limit,numSuits=2,numRanks=3,"
        "numHoleCards=1,numBoardCards=0 1)"
    )
    return loading.from_declaration(game, public_tree_of_universal_poker(game))


@functools.cache
def public_decomposition(name, player):
    game = holdem_game() if name == "hands" else located(name).game
    return decompose_public(game, player)


@functools.cache
def tree_decomposition(name, player):
    return decomposition.decompose(games.compiled(name), player)


def random_reach(decisions, seed, *, zeros=()):
    """Return a random strategy in sequence form that never plays `zeros`."""
    rng = np.random.default_rng(seed)
    behaviour = rng.exponential(size=decisions.num_sequences)
    behaviour[list(zeros)] = 0
    total = np.bincount(decisions.owner[1:], behaviour[1:])
    behaviour[1:] /= total[decisions.owner[1:]]
    behaviour[0] = 1
    return conversions.reach_from_behaviour(decisions, behaviour)


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "leduc", "liars_dice_1x4", "nim"])
@pytest.mark.parametrize("player", PLAYERS)
def test_layers_equal_those_of_the_game_tree(name, player):
    d, other = public_decomposition(name, player), tree_decomposition(name, player)
    np.testing.assert_array_equal(
        d.player_layer[located(name).infosets[player]], other.player_layer
    )
    counts = np.bincount(d.augmented_layer, minlength=d.num_layers + 1)
    np.testing.assert_array_equal(counts, np.bincount(other.augmented_layer))
    # Each pair of a root and a board is a subgame.
    subgames = {
        (root, label)
        for root, node in enumerate(d.roots)
        for label in d.boards[d.game.betting.round[node]][player]
        if d.layer[node] > 1
    }
    below = other.player_subgame[other.player_layer > 1]
    assert len(subgames) == len(np.unique(below[below >= 0]))


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "leduc"])
@pytest.mark.parametrize("player", PLAYERS)
def test_forests_equal_those_of_the_game_tree(name, player):
    """Compare sizes, and sums of payoffs that include gadget weights and values."""
    d, other = public_decomposition(name, player), tree_decomposition(name, player)
    where = located(name).sequences[player]
    reach = random_reach(d.decisions, 3)
    for layer in range(1, d.num_layers + 1):
        values = np.where(d.augmented_layer == layer, 0.3, 0.0)
        forest = build_public_forest(d, layer, reach, values)
        values = np.where(other.augmented_layer == layer, 0.3, 0.0)
        expected = build_forest(other, layer, reach[where], values)
        for p in PLAYERS:
            mine, theirs = forest.form.decisions[p], expected.decisions[p]
            assert len(mine) == len(theirs)
            assert mine.num_sequences == theirs.num_sequences
        found, wanted = forest.form.payoffs.values, expected.payoffs.values
        for power in (1, 2):
            np.testing.assert_allclose(
                *((found**power).sum(), (wanted**power).sum()), rtol=0, atol=1e-12
            )
        assert np.abs(found).sum() > 0.01


@pytest.mark.parametrize(
    ("name", "iterations"),
    [
        ("kuhn", 20),
        pytest.param("leduc7", 20, marks=slow),
        pytest.param("leduc", 20, marks=slow),
        pytest.param("liars_dice_1x4", 20, marks=slow),
    ],
)
def test_strategies_equal_those_of_the_game_tree(name, iterations):
    """Sums run in a different order; few iterations, so that ties do not matter."""
    found = continual.resolve(located(name).game, "cfr+", iterations)
    expected = continual.resolve(games.compiled(name), "cfr+", iterations)
    for player, where in enumerate(located(name).sequences):
        np.testing.assert_allclose(
            found.average[player][where], expected.average[player], rtol=0, atol=1e-9
        )
    assert found.solves == expected.solves
    assert abs(found.nash_conv() - expected.nash_conv()) < 1e-9


@slow
def test_rhode_island_strategies_equal_those_of_the_game_tree():
    """The game has three rounds and a declared public tree."""
    string = "python_rhode_island_holdem(num_ranks=3,num_suits=2,max_bets=1)"
    tree = build_tree(string, observations=True)
    found = continual.resolve(loading.public_tree_game(string), "cfr+", 10)
    expected = continual.resolve(tree, "cfr+", 10)
    played = query(tree, found.average_policy())
    for mine, theirs in zip(played, expected.average, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
    assert abs(found.nash_conv() - expected.nash_conv()) < 1e-9


def test_float32_reaches_low_nash_conv():
    found = continual.resolve(located("kuhn").game, iterations=500, dtype=np.float32)
    # Double precision gives 5e-4; the rounding unit of float32 is 6e-8.
    assert found.nash_conv() < 2e-3


@pytest.mark.slow
def test_resolve_uses_the_requested_form():
    small = "python_leduc_poker(max_raises=1)"
    found = continual.resolve(small, "cfr+", 20, options=GameOptions("public-tree"))
    expected = continual.resolve(small, "cfr+", 20)
    assert found.game_form.kind == "public-tree" and found.tree is None
    assert expected.tree is not None
    assert abs(found.nash_conv() - expected.nash_conv()) < 1e-12


@pytest.mark.parametrize(
    ("game", "form", "message"),
    [
        ("kuhn_poker", "private_state", "form='private_state'"),
        ("tiny_hanabi", "public-tree", "tiny_hanabi"),
    ],
)
def test_rejects_unsupported_forms(game, form, message):
    with pytest.raises(ValueError, match=message):
        continual.resolve(game, iterations=3, options=GameOptions(form))


def test_rejects_tree_form_for_public_tree_games():
    with pytest.raises(ValueError, match="form='tree'"):
        continual.resolve(
            located("kuhn").game, iterations=3, options=GameOptions("tree")
        )


@pytest.mark.parametrize(
    "name", ["leduc7", pytest.param("leduc", marks=pytest.mark.slow), "hands"]
)
@pytest.mark.parametrize("player", PLAYERS)
def test_forest_is_the_union_of_its_boards(name, player):
    """The payoffs and infosets of all boards of all roots are those of the forest."""
    d = public_decomposition(name, player)
    reach = random_reach(d.decisions, 5)
    deals = BoardDeals(d)
    for layer in range(2, d.num_layers + 1):
        values = np.random.default_rng(layer).normal(size=len(d.augmented_layer))
        whole = build_public_forest(d, layer, reach, values)
        found, own, following = [], [], []
        for root in d.roots_of(layer):
            round_ = d.game.betting.round[d.roots[root]]
            for board in np.unique(d.boards[round_][player]):
                subgame = cut_public(
                    d, layer, np.array([root]), deals.of_board(round_, board)
                )
                here = reach[d.decisions.parent[subgame.openings]]
                form = subgame.form(here, values[subgame.augmented])
                found.append(form.payoffs.values)
                own.append(subgame.infosets)
                following.append(subgame.next_augmented)
        np.testing.assert_allclose(
            *(np.sort(np.concatenate(found)), np.sort(whole.form.payoffs.values)),
            rtol=0,
            atol=1e-15,
        )
        assert len(found) > len(d.roots_of(layer)) or layer == 2
        np.testing.assert_array_equal(np.sort(np.concatenate(own)), whole.infosets)
        np.testing.assert_array_equal(
            np.sort(np.concatenate(following)), whole.next_augmented
        )


def test_unreached_roots_are_weighted_equally():
    """A player 0 that never checks reaches none of the roots of its second layer."""
    d = public_decomposition("kuhn", 0)
    decisions = d.decisions
    checks = decisions.first_sequence[d.player_layer == 1]
    never = random_reach(decisions, 1, zeros=checks.tolist())
    values = np.zeros(len(d.augmented_layer))
    found = build_public_forest(d, 2, never, values).form.payoffs.values
    always = build_public_forest(d, 2, np.ones_like(never), values)
    np.testing.assert_array_equal(found, always.form.payoffs.values)
    assert np.abs(found).sum() > 0.1


def test_betting_kinds_identify_equivalent_betting_nodes():
    """Kuhn poker has showdowns after two bets and after two checks."""
    game = located("kuhn").game
    kinds, betting = betting_kinds(game), game.betting
    assert kinds[0] != kinds[1]
    ends = [int(kinds[leaf]) for leaf in np.unique(game.terms.leaf)]
    assert len(ends) == 5 and len(set(ends)) == 2
    # The decision after a bet is the same for both players except for the player index.
    bet = np.flatnonzero((betting.parent == 0) & (betting.action == 1))
    raised = np.flatnonzero(betting.player == 0)[1:]
    assert len(set(kinds[np.concatenate([bet, raised])].tolist())) == 2


def test_nash_conv_decreases_with_iterations():
    result = [
        continual.resolve(located("kuhn").game, iterations=n).nash_conv()
        for n in (50, 1000)
    ]
    assert result[0] > 5 * result[1] > 0
    form = located("kuhn").game.sequence_form
    assert form.decisions[0].num_sequences == len(form.layouts[0].sequences)


@slow
def test_nash_conv_equals_that_in_the_game_tree():
    """Best responses in the public-tree form and in the game tree have equal values."""
    result = continual.resolve(located("leduc7").game, iterations=5)
    average = [
        result.average[player][where]
        for player, where in enumerate(located("leduc7").sequences)
    ]
    form = games.compiled("leduc7").sequence_form
    found = nash_conv(form, reach_of(form, average))
    assert abs(found - result.nash_conv()) < 1e-12
