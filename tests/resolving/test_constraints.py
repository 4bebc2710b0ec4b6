"""Constraints on opponent values, and rejection of solutions that violate them."""

import itertools

import numpy as np
import pytest

from spiel_cr import solve
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves import Continuations
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.roles import LayerState, Role
from spiel_cr.resolving.truncation import DepthLimit
from tests.support import games, reference, strategies
from tests.support.strategies import everywhere, random_behaviours

PLAYERS = (0, 1)
# Sums of dozens of doubles of size 1.
TOLERANCE = 1e-12


@pytest.mark.parametrize("player", PLAYERS)
def test_opponent_responses_equal_the_best_of_all_pure_strategies(player):
    """Enumerate all 64 pure strategies of the opponent in Kuhn poker."""
    tree = games.compiled("kuhn")
    d, walked = decompose(tree, player), reference.Tree(tree.game)
    numbers = reference.node_numbers(walked, tree)
    behaviours = random_behaviours(tree, 4)
    policy = reference.from_behaviours(tree, behaviours)
    keys = [(1 - player, key) for key in tree.infosets[1 - player].keys]

    def value(index, plan):
        node = walked.nodes[index]
        if node.player == reference.TERMINAL:
            return node.utility * (1 if player == 1 else -1)
        odds = node.probabilities if node.key is None else policy[node.key]
        if node.player == 1 - player:
            odds = {plan[node.key]: 1.0}
        return sum(p * value(node.children[a], plan) for a, p in odds.items())

    def best(histories):
        roots = [numbers[history] for history in histories]
        weights = [
            walked.nodes[r].chance * walked.own_reach(r, player, policy) for r in roots
        ]
        return max(
            sum(w * value(r, plan) for r, w in zip(roots, weights, strict=True))
            for moves in itertools.product((0, 1), repeat=len(keys))
            for plan in [dict(zip(keys, moves, strict=True))]
        )

    found = OpponentResponses(d).values(behaviours[player])
    expected = [
        best(d.roots[d.root_augmented == g]) for g in range(len(d.augmented_layer))
    ]
    np.testing.assert_allclose(found, [*expected, best([0])], atol=TOLERANCE)


ROWS = [
    *itertools.product(["kuhn"], [3, 10, 100], ["cfrd", "maxmargin"]),
    pytest.param("leduc", 10, "cfrd", marks=pytest.mark.slow),
    pytest.param("leduc", 1000, "maxmargin", marks=pytest.mark.slow),
    pytest.param("liars_dice_1x4", 100, "cfrd", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "before", "gadget"), ROWS)
def test_resolving_never_increases_exploitability_of_the_blueprint(
    name, before, gadget
):
    tree = games.compiled(name)
    blueprint = solve(tree, "cfr+", before)
    leaf = Continuations(blueprint.average, 4)
    config = ResolvingConfig("pcfr+", 300, gadget=gadget, depth=2, leaf=leaf)
    assert resolve(tree, config).nash_conv() < blueprint.nash_conv()


@pytest.mark.slow
def test_resolving_goofspiel_reaches_low_nash_conv():
    """The blueprint's NashConv is 0.0022; re-solving was measured to reach 4e-7."""
    tree = games.compiled("goofspiel4")
    leaf = Continuations(solve(tree, "cfr+", 100).average, 4)
    config = ResolvingConfig("pcfr+", 300, depth=2, leaf=leaf)
    assert resolve(tree, config).nash_conv() < 1e-4


class RandomLeafValues(Continuations):
    """Leaf values that are unrelated to the game."""

    def __call__(self, game, histories, player=0, /):
        values = np.random.default_rng(1).normal(size=(len(game.histories), self.k))
        return 5 * values[histories]


def test_solutions_that_violate_constraints_are_rejected():
    """Wrong leaf values never make the strategy worse than the incumbent strategy."""
    tree = games.compiled("kuhn")
    blueprint = solve(tree, "cfr+", 30)
    result = resolve(
        tree,
        ResolvingConfig(
            "cfr+", 100, depth=1, leaf=RandomLeafValues(blueprint.average, 2)
        ),
    )
    assert result.nash_conv() <= blueprint.nash_conv() + TOLERANCE
    values = RandomLeafValues(blueprint.average, 2)
    unguarded = resolve(
        tree,
        ResolvingConfig("cfr+", 100, depth=1, leaf=lambda t, h: values(t, h)[:, 0]),
    )
    assert unguarded.nash_conv() > 3 * blueprint.nash_conv()


@pytest.mark.parametrize(
    ("name", "gadget"),
    [
        ("kuhn", "maxmargin"),
        pytest.param("leduc7", "cfrd", marks=pytest.mark.slow),
    ],
)
def test_match_player_equals_resolve(name, gadget):
    tree = games.compiled(name)
    blueprint = solve(tree, "cfr+", 20).average
    leaf = Continuations(blueprint, 3)
    config = ResolvingConfig("cfr+", 20, gadget=gadget, depth=1, leaf=leaf)
    whole = resolve(tree, config)
    for player in PLAYERS:
        resolver = Resolver(tree, player, config)
        played = everywhere(resolver)
        np.testing.assert_allclose(played, whole.average[player], atol=1e-9)
        # The match player deviates from the blueprint somewhere.
        assert np.abs(played - blueprint[player]).max() > 1e-3


def test_unreached_infosets_keep_the_incumbent_strategy():
    """In Kuhn poker, a player 0 that always bets never reaches its second turn."""
    tree = games.compiled("kuhn")
    d = decompose(tree, 0)
    incumbent, other = random_behaviours(tree, 5)
    opening = d.decisions.first_sequence[d.decisions.parent == 0]
    leaf = Continuations((incumbent, other), 2)

    def resolved(passing):
        incumbent[opening], incumbent[opening + 1] = passing, 1 - passing
        state = LayerState(incumbent, np.zeros(len(d.augmented_layer)))

        def solver_of(layers, forest):
            solver = strategies.solver_of(forest.form, "cfr+", values=True)
            solver.run(50)
            return solver

        return Role(d, DepthLimit(1, leaf)).resolve(2, state, solver_of)

    np.testing.assert_array_equal(resolved(0.0).behaviour, incumbent)
    assert np.abs(resolved(0.5).behaviour - incumbent).max() > 0.01


def test_rejects_values_setting_with_continuations():
    leaf = Continuations(random_behaviours(games.compiled("kuhn"), 1), 2)
    with pytest.raises(ValueError, match="constraints are best-response values"):
        ResolvingConfig(iterations=1, depth=1, leaf=leaf, values="best_response")
