"""Traversals of deep solvers: unbiased estimates, by enumeration of all draws."""

import dataclasses
import functools

import numpy as np
import pytest

from spiel_cr.common.draws import points
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies.conversions import history_values
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import ActingInfosets, TreeKnowledge
from spiel_cr.solvers.deep.traversal import (
    PlayerSampling,
    Traversal,
    in_chunks,
    traverse,
)
from tests.solvers.deep import whole_visits
from tests.support import games, reference
from tests.support.made_games import MadeGame, twice_in_a_row
from tests.support.simulated import Enumerated, Grid

# Parts of the draws of chance, and the player that acts at each depth. Strategies are
# multiples of 1/4, or of 1/8 with half of uniform exploration.
GRIDS = {"kuhn": ((3, 2), (0, 1, 0)), "twice": ((), (0, 0, 1, 1))}
EXTERNAL = DeepConfig("external", epsilon=0.5, draws="independent")
OUTCOME = dataclasses.replace(EXTERNAL, sampling="outcome")
CRITIC = dataclasses.replace(OUTCOME, values="critic")
both_schemes = pytest.mark.parametrize(
    "config", [EXTERNAL, OUTCOME], ids=["external", "outcome"]
)
# Means of at most 2e4 terms of size 1 to 30.
TOLERANCE = 1e-12


class FixedStrategies:
    """Strategies of a game tree that never change.

    Attributes:
      behaviour: Action probabilities of each player, float64 [S].
    """

    def __init__(self, knowledge: TreeKnowledge, seed: int) -> None:
        """Draw multiples of 1/4; none is zero at two or three legal actions."""
        random = np.random.default_rng(seed)
        self._tables = []
        for legal in knowledge.legal:
            table = np.zeros(legal.shape)
            for row, mask in enumerate(legal):
                actions = np.flatnonzero(mask)
                shares = np.ones(len(actions))
                shares[random.integers(len(actions))] += 4 - len(actions)
                table[row, actions] = shares / 4 if len(actions) > 1 else 1.0
            self._tables.append(table)
        self.behaviour = [knowledge.behaviour(p, self._tables[p]) for p in range(2)]

    def __call__(self, player: int, seen: ActingInfosets) -> np.ndarray:
        return self._tables[player][seen.rows]


@functools.cache
def knowledge_of(name: str) -> TreeKnowledge:
    if name == "kuhn":
        return TreeKnowledge(games.compiled("kuhn"))
    return TreeKnowledge(build_tree(MadeGame(twice_in_a_row, "twice")))


def enumerate_all(
    name: str, strategy: FixedStrategies, config: DeepConfig, player: int, critic=None
) -> tuple[Traversal, int]:
    """Traverse all possible draws once each; return the traversal and their number."""
    knowledge = knowledge_of(name)
    chance, acts = GRIDS[name]
    own = 1 if config.sampling == "external" else 8
    grid = Grid((*chance, *(own if who == player else 4 for who in acts)))
    source = TreeSource(knowledge.tree, stratified=False)
    every = Enumerated(source, grid)
    task = PlayerSampling(every, knowledge, strategy, config, player, critic)
    found = traverse(task, grid.size, grid)
    assert not grid.left
    return found, grid.size


def estimates(name: str, visits, size: int, player: int) -> np.ndarray:
    """Compute the mean of weight times target over trajectories, float64 [I, A]."""
    total = np.zeros(knowledge_of(name).legal[player].shape)
    gains = visits.weight[:, None] * np.where(visits.legal, visits.target, 0)
    np.add.at(total, visits.rows, gains)
    return total / size


def exact(name: str, strategy: FixedStrategies, player: int) -> np.ndarray:
    """Compute counterfactual regrets by a slow recursion, float64 [I, A]."""
    knowledge = knowledge_of(name)
    game = knowledge.tree
    tree = reference.Tree(game.game)
    policy = reference.from_behaviours(game, strategy.behaviour)
    regrets = reference.counterfactual_regrets(tree, policy, player)
    table = np.zeros(knowledge.legal[player].shape)
    for row, key in enumerate(game.infosets[player].keys):
        table[row, tree.actions((player, key))] = regrets[player, key]
    return table


@pytest.mark.parametrize("player", range(2))
@both_schemes
@pytest.mark.parametrize("baseline", [False, True], ids=["plain", "baseline"])
@pytest.mark.parametrize("name", GRIDS)
def test_advantages_are_unbiased(name, baseline, config, player):
    """This holds for any baseline, and if a player acts twice in a row."""
    strategy = FixedStrategies(knowledge_of(name), 3)
    random = np.random.default_rng(8)
    table = random.normal(size=(len(knowledge_of(name).deciders), 16))
    table = table[:, : knowledge_of(name).num_actions]
    found, size = enumerate_all(
        *(name, strategy, config, player),
        critic=table.__getitem__ if baseline else None,
    )
    mean = estimates(name, found.advantages, size, player)
    wanted = exact(name, strategy, player)
    assert abs(wanted).max() > 0.1
    np.testing.assert_allclose(mean, wanted, atol=TOLERANCE)


@pytest.mark.parametrize("player", range(2))
@pytest.mark.parametrize("name", GRIDS)
def test_estimates_with_an_exact_critic_are_unbiased(name, player):
    """ESCHER's estimates need no correction, and exact baselines have no variance."""
    knowledge = knowledge_of(name)
    strategy = FixedStrategies(knowledge, 4)
    worth = history_values(knowledge.tree, strategy.behaviour)
    histories = knowledge.tree.histories
    table = np.zeros((len(knowledge.deciders), knowledge.num_actions))
    number = np.cumsum(histories.player >= 0) - 1
    below = 1 + np.flatnonzero(histories.player[histories.parent[1:]] >= 0)
    table[number[histories.parent[below]], histories.action[below]] = worth[below]
    parts = []
    for config in (CRITIC, OUTCOME):
        found, size = enumerate_all(name, strategy, config, player, table.__getitem__)
        parts.append(found.advantages)
        mean = estimates(name, found.advantages, size, player)
        np.testing.assert_allclose(mean, exact(name, strategy, player), atol=TOLERANCE)
    legal = parts[0].legal
    if name == "twice":  # no chance after moves, so there is no variance
        np.testing.assert_allclose(
            parts[1].target[legal], parts[0].target[legal], atol=TOLERANCE
        )


@both_schemes
def test_sampled_strategies_are_weighted_by_the_players_reach(config):
    """The weight is the player's reach times the chance reach of the histories."""
    name, player = "kuhn", 0
    knowledge = knowledge_of(name)
    strategy = FixedStrategies(knowledge, 5)
    found, size = enumerate_all(name, strategy, config, player)
    other = 1 - player
    visits = found.strategies
    total = np.bincount(visits.rows, visits.weight, len(knowledge.legal[other])) / size
    histories = knowledge.tree.histories
    game = knowledge.tree
    tree = reference.Tree(game.game)
    policy = reference.from_behaviours(game, strategy.behaviour)
    for row, key in enumerate(game.infosets[other].keys):
        members = tree.infosets[other, key]
        chance = sum(tree.nodes[index].chance for index in members)
        reach = tree.own_reach(members[0], other, policy)
        assert total[row] == pytest.approx(reach * chance, abs=TOLERANCE)
    played = strategy(other, visits)
    assert np.array_equal(visits.target, played)
    assert len(histories) == len(tree.nodes)


@pytest.mark.parametrize("player", range(2))
@pytest.mark.parametrize("name", GRIDS)
def test_advantages_without_sampling_are_exact(name, player):
    strategy = FixedStrategies(knowledge_of(name), 6)
    visits = whole_visits.advantages(knowledge_of(name), strategy.behaviour, player)
    found = estimates(name, visits, 1, player)
    np.testing.assert_allclose(found, exact(name, strategy, player), atol=TOLERANCE)


def test_moves_contain_the_next_history_and_the_utility():
    """Each move leads to a child of its history, and terminal moves have a utility."""
    name = "kuhn"
    knowledge = knowledge_of(name)
    strategy = FixedStrategies(knowledge, 3)
    zeros = np.zeros((len(knowledge.deciders), knowledge.num_actions))
    found, size = enumerate_all(*(name, strategy, OUTCOME, 0), critic=zeros.__getitem__)
    moves, histories = found.moves, knowledge.tree.histories
    decisions = np.flatnonzero(histories.player >= 0)
    children = {
        (int(histories.parent[h]), int(histories.action[h])): h
        for h in range(1, len(histories))
    }
    over = 0
    for row, action, utility, player, after in zip(
        *(moves.rows, moves.action, moves.utility, moves.player, moves.next_rows),
        strict=True,
    ):
        child = children[int(decisions[row]), int(action)]
        assert player == histories.player[child] or (
            player < 0 and histories.player[child] < 0
        )
        assert utility == histories.utility[child]
        over += player < 0
        if player >= 0:
            assert decisions[after] == child
    assert over == size == found.positions - len(moves.action)


def test_traversals_never_play_illegal_actions():
    """In Leduc poker, folding and raising are sometimes illegal."""
    knowledge = TreeKnowledge(games.compiled("leduc"))
    strategy = FixedStrategies(knowledge, 1)
    source = TreeSource(knowledge.tree)
    for config in (EXTERNAL, dataclasses.replace(OUTCOME, epsilon=1.0)):
        task = PlayerSampling(source, knowledge, strategy, config, 0)
        found = traverse(task, 200, np.random.default_rng(0))
        for player, visits in enumerate((found.advantages, found.strategies)):
            assert np.array_equal(visits.legal, knowledge.legal[player][visits.rows])
            assert (visits.legal.sum(axis=1) > 1).all()
            assert (~visits.legal).any()
        assert not found.strategies.target[~found.strategies.legal].any()


class CountingSource(TreeSource):
    """A source that records how many trajectories each batch has.

    Attributes:
      started: Numbers of trajectories of the batches.
    """

    def __init__(self, tree) -> None:
        super().__init__(tree)
        self.started: list[int] = []

    def start(self, count, random):
        self.started.append(count)
        return super().start(count, random)


@both_schemes
def test_chunks_are_bounded_and_contain_all_trajectories(config):
    """No chunk has many more positions than the limit."""
    knowledge = TreeKnowledge(games.compiled("leduc"))
    strategy = FixedStrategies(knowledge, 1)
    config = dataclasses.replace(config, draws="stratified")

    def chunks(most, seed=5):
        source = CountingSource(knowledge.tree)
        task = PlayerSampling(source, knowledge, strategy, config, 1)
        random = np.random.default_rng(seed)
        return source, list(in_chunks(task, 1000, random, most=most))

    source, found = chunks(2000)
    assert sum(source.started[1:]) == 1000 and len(found) == len(source.started) - 1
    assert len(found) > 3
    assert max(own.positions for own in found) <= 3000
    for one, same in zip(found, chunks(2000)[1], strict=True):
        assert np.array_equal(one.advantages.target, same.advantages.target)
    other = chunks(2000, 6)[1]
    assert not np.array_equal(found[0].advantages.target, other[0].advantages.target)
    # If all trajectories fit, there is one batch with the same draws as without chunks.
    source, (whole,) = chunks(10**6)
    random = np.random.default_rng(5)
    alone = traverse(
        PlayerSampling(source, knowledge, strategy, config, 1), 1000, random
    )
    assert np.array_equal(whole.advantages.target, alone.advantages.target)
    assert whole.positions == alone.positions


@pytest.mark.parametrize("player", range(2))
def test_chunks_are_unbiased(player):
    """Counterfactual regrets of Kuhn poker are estimated in dozens of chunks."""
    knowledge, count = knowledge_of("kuhn"), 20_000
    strategy = FixedStrategies(knowledge, 3)
    source = CountingSource(knowledge.tree)
    task = PlayerSampling(source, knowledge, strategy, EXTERNAL, player)
    means = []
    for own in in_chunks(task, count, np.random.default_rng(1), most=2000):
        size = source.started[-1]
        means.append(size * estimates("kuhn", own.advantages, size, player))
    assert len(means) > 20
    mean = np.sum(means, axis=0) / count
    # Regrets of a trajectory are at most 4: five standard deviations of their mean.
    atol = 5 * 4 / np.sqrt(count)
    np.testing.assert_allclose(mean, exact("kuhn", strategy, player), atol=atol)


def test_stratified_draws_are_uniform_and_one_per_part():
    """Each equal part of a group has one draw, and each draw alone is uniform."""
    groups = np.array([5, 5, 2, 5, 2, 9, 5])
    random = np.random.default_rng(0)
    drawn = np.array([points(groups, random, stratified=True) for _ in range(2000)])
    for group, size in ((5, 4), (2, 2), (9, 1)):
        parts = np.sort(np.floor(drawn[:, groups == group] * size), axis=1)
        assert np.array_equal(parts, np.tile(np.arange(size), (len(drawn), 1)))
    # 7 × 4 counts of 2000 draws in quarters: standard deviation 19.4, five of them.
    counts = np.stack([(drawn // 0.25 == part).sum(axis=0) for part in range(4)])
    assert abs(counts - 500).max() < 97


def test_chance_outcomes_are_sampled_with_their_probabilities():
    """Frequencies of the deals of Leduc poker are within five standard deviations."""
    tree = games.compiled("leduc")
    source = TreeSource(tree, stratified=False)
    random = np.random.default_rng(2)
    positions = source.start(30_000, random)
    counts = np.bincount(positions.states)
    deals = np.flatnonzero(counts)
    assert np.isclose(tree.histories.chance[deals].sum(), 1)
    odds = tree.histories.chance[deals] * 30_000
    # 30 deals: five standard deviations of about 31.
    assert (abs(counts[deals] - odds) < 5 * np.sqrt(odds)).all()
