"""The critic learns the values of actions under the current strategies."""

import numpy as np

from spiel_cr.common.network_fits import FitSchedule
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies.conversions import history_values
from spiel_cr.solvers.deep.approximators import LookupTable
from spiel_cr.solvers.deep.critic import Critic
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import ActingInfosets, TreeKnowledge
from spiel_cr.solvers.deep.traversal import PlayerSampling, traverse
from tests.support.made_games import MadeGame, twice_in_a_row


def test_critic_table_learns_the_exact_values():
    """Without chance, as many fits as a match has moves suffice, for any strategy.

    Values are always player 0's, although the players act twice in a row.
    """
    tree = build_tree(MadeGame(twice_in_a_row, "twice"))
    knowledge = TreeKnowledge(tree)
    values = LookupTable(len(knowledge.deciders), knowledge.num_actions)
    critic = Critic(knowledge, values, 10_000)
    random = np.random.default_rng(0)
    uniform = [legal / legal.sum(axis=1)[:, None] for legal in knowledge.legal]
    task = PlayerSampling(
        *(TreeSource(tree), knowledge, lambda p, seen: uniform[p][seen.rows]),
        *(DeepConfig("", sampling="outcome", epsilon=1.0), 0, critic),
    )
    found = traverse(task, 400, random)
    critic.replay.add(found.moves)
    histories = tree.histories
    decisions = np.flatnonzero(histories.player >= 0)
    below = 1 + np.flatnonzero(histories.player[histories.parent[1:]] >= 0)
    rows = np.searchsorted(decisions, histories.parent[below])
    for seed in (1, 2):
        odds = np.random.default_rng(seed)
        tables = [own * odds.random(own.shape) for own in uniform]
        tables = [own / own.sum(axis=1)[:, None] for own in tables]

        def strategy(player: int, seen: ActingInfosets, tables=tables) -> np.ndarray:
            return tables[player][seen.rows]

        for _ in range(4):
            critic.fit(strategy, FitSchedule(20, 200, 1.0), random)
        behaviour = [knowledge.behaviour(p, tables[p]) for p in range(2)]
        worth = history_values(tree, behaviour)
        guess = critic(np.arange(len(decisions)))[rows, histories.action[below]]
        np.testing.assert_allclose(guess, worth[below], atol=1e-6)
