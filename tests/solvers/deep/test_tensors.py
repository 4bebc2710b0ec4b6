"""Deep solvers of simulated games: tensors, and equality with game trees."""

import numpy as np
import pytest

from spiel_cr.common import networks
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.infosets import TreeKnowledge
from spiel_cr.solvers.deep.outputs import softmax
from spiel_cr.solvers.deep.tensors import SimulatedTensors, simulated_tensors
from spiel_cr.solvers.deep.traversal import PlayerSampling, traverse
from tests.support import made_games

DICE = "liars_dice(numdice=1,dice_sides=3)"


def test_states_and_batched_rules_give_the_same_tensors():
    """Phantom tic-tac-toe has no chance, so equal actions lead to equal states."""
    ways = [
        simulated_tensors(open_game("phantom_ttt"), use_rules=use)
        for use in (True, False)
    ]
    assert isinstance(ways[0].source, RulesSource)
    assert isinstance(ways[1].source, StateSource)
    random = np.random.default_rng(0)
    here = [way.source.start(20, random) for way in ways]
    depths = 0
    while (live := np.flatnonzero(here[0].player >= 0)).size:
        for player in range(2):
            places = live[here[0].player[live] == player]
            seen = [
                way.knowledge.seen(at, places, player)
                for way, at in zip(ways, here, strict=True)
            ]
            np.testing.assert_array_equal(seen[0].rows, seen[1].rows)
            np.testing.assert_array_equal(seen[0].legal, seen[1].legal)
        both = [
            way.knowledge.joint(at, live) for way, at in zip(ways, here, strict=True)
        ]
        np.testing.assert_array_equal(both[0], both[1])
        width = ways[0].knowledge.num_features
        own = ways[0].knowledge.player_rows(both[0], 1)
        np.testing.assert_array_equal(own, both[0][:, width:])
        action = random.integers(here[0].num_actions[live])
        here = [
            way.source.step(at.states[live], action, random)
            for way, at in zip(ways, here, strict=True)
        ]
        depths += 1
    assert depths > 5


def test_states_provide_observations_that_batched_rules_lack():
    """The batched rules of liar's dice have no observation tensors."""
    way = simulated_tensors(open_game(DICE), "observation")
    assert isinstance(way.source, StateSource)
    start = way.source.start(3, np.random.default_rng(1))
    seen = way.knowledge.seen(start, np.arange(3), 0)
    expected = [at.state.observation_tensor(0) for at in start.states]
    np.testing.assert_array_equal(seen.rows, np.array(expected, np.float32))
    assert seen.rows.shape == (3, way.knowledge.num_features)


def test_rejects_games_without_tensors():
    with pytest.raises(ValueError, match="features=observation: .* offers no obs"):
        simulated_tensors(open_game(made_games.random_game(1)), "observation")


@pytest.fixture(scope="module")
def dice() -> tuple[TreeKnowledge, SimulatedTensors]:
    """Return liar's dice as a game tree and as batched rules."""
    return TreeKnowledge(build_tree(DICE)), simulated_tensors(open_game(DICE))


@pytest.mark.parametrize("external", [True, False], ids=["external", "outcome"])
def test_traversals_equal_those_of_the_game_tree(dice, external):
    """With the same networks and draws, visits, targets and weights are equal."""
    compiled, way = dice
    size, actions = compiled.num_features, compiled.num_actions
    made = [networks.make((size, 8, actions), 10 + player) for player in range(2)]
    joint = networks.make((2 * size, 8, actions), 5)

    def sampled(source, knowledge, player):
        def strategy(player, seen):
            found = knowledge.outputs(made[player], seen.rows, player)
            return softmax(30 * found, seen.legal)

        def critic(rows):
            return knowledge.outputs(joint, rows, None)

        way = "external" if external else "outcome"
        config = DeepConfig("", sampling=way, draws="independent", values="corrected")
        task = PlayerSampling(source, knowledge, strategy, config, player, critic)
        return traverse(task, 40, np.random.default_rng(3))

    source = TreeSource(compiled.tree, stratified=False)
    for player in range(2):
        expected = sampled(source, compiled, player)
        found = sampled(*way, player)
        assert found.positions == expected.positions > 100
        pairs = (
            (found.advantages, expected.advantages, player),
            (found.strategies, expected.strategies, 1 - player),
        )
        for mine, theirs, who in pairs:
            seen = np.asarray(compiled.table(who))[theirs.rows]
            np.testing.assert_array_equal(mine.rows, seen)
            np.testing.assert_array_equal(mine.legal, theirs.legal)
            # Networks compute in float32, in batches of other sizes.
            np.testing.assert_allclose(mine.target, theirs.target, atol=1e-5)
            np.testing.assert_allclose(mine.weight, theirs.weight, rtol=1e-5)
        both = np.asarray(compiled.table(None))
        np.testing.assert_array_equal(found.moves.rows, both[expected.moves.rows])
        np.testing.assert_array_equal(found.moves.action, expected.moves.action)
        np.testing.assert_array_equal(found.moves.utility, expected.moves.utility)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["deep-cfr", "dream(averaging=network)"])
def test_iterates_equal_those_of_the_game_tree(dice, algorithm):
    """Fits to means per infoset, as in game trees, have the same gradients.

    This requires batches that contain all visits. (Regrets of `vr-deep-*` differ:
    visits of all iterations count by their weights in game trees only.) Rounding errors
    in float32 differ and grow with every step of Adam: 60 steps change strategies by
    less than 1e-3.
    """
    compiled, way = dice
    head, _, tail = algorithm.partition("(")
    settings = (
        "traversals=60,batch=100000,steps=20,hidden=16,layers=1,draws=independent,"
        "average_steps=30,critic_steps=20,critic_batch=64,balance=1"
    )
    text = f"{head}({settings}{',' + tail if tail else ')'}"
    ours = DeepSolver(compiled.tree, text, seed=4)
    theirs = DeepSolver(way, text, seed=4)
    for solver in (ours, theirs):
        solver.run(3)
    assert ours.nodes == theirs.nodes
    mine, other = ours.average(), theirs.average()
    for player in range(2):
        for one, two in zip(mine.leaves[player], other.leaves[player], strict=True):
            np.testing.assert_allclose(one, two, atol=2e-3)
