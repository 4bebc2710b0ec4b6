"""What a player of partial trees does between two decisions, without solving."""

import time

import numpy as np
import pyspiel
import pytest

from spiel_cr.partial import opponent_knowledge
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.match import PartialAgent
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.policies.observations import observations
from spiel_cr.resolving.clock import Clock, Cost


class Idle(PartialAgent):
    """Solves nothing."""

    def __init__(self, game, player, max_histories):
        settings = PartialConfig(max_histories, leaf="rollouts(n=1)")
        random = np.random.default_rng(0)
        super().__init__(player, settings, Clock(50.0, None), random, lambda: 0)
        tree = self._first_tree(game)
        tree.grow()
        self._start_from(SolvedTree.of(tree, player))

    def _solve_decision(self, stages, number):
        pass


def third_decision(game):
    state = pyspiel.load_game(game).new_initial_state()
    for action in (0, 1, 2, 3):
        state.apply_action(action)
    return observations(state, 0, waiting=False)


@pytest.fixture
def followed(monkeypatch):
    """How many histories could be followed, each time that some were."""
    found, follow = [], opponent_knowledge.follow

    def counting(particles, *arguments, **named):
        found.append(particles.most)
        return follow(particles, *arguments, **named)

    monkeypatch.setattr(opponent_knowledge, "follow", counting)
    return found


def test_few_histories_are_followed_where_there_is_little_time(followed):
    agent = Idle("phantom_ttt", 0, 11)
    stages = third_decision("phantom_ttt")
    assert agent._follow(stages, 2) is not None
    assert followed == [1000] * 3
    followed.clear()
    # No time at all: one decision is followed, and nothing is tried again.
    assert agent._follow(stages, 2, time.perf_counter() - 1) is None
    assert followed == [8]
    followed.clear()
    # From experience: at a second per history and decision, some dozen of them.
    agent._following = Cost()
    for histories in (10, 1000):
        agent._following.add(histories, float(histories))
    agent._follow(stages, 2, time.perf_counter() + 1000)
    assert set(followed) == {38}


@pytest.mark.parametrize("max_histories", [60, 400])
def test_a_new_tree_has_the_decision_before_it_grows(max_histories):
    """With little capacity it begins there, else where the opponent moved."""
    agent = Idle("phantom_ttt", 0, 400)
    stages = third_decision("phantom_ttt")
    tree = agent._restarted_tree(agent._follow(stages, 2), max_histories)
    assert len(tree) <= max_histories
    solved = SolvedTree.of(tree, 0)
    infoset = solved.find(stages[-1].seen[-1])
    assert infoset >= 0
    assert solved.strategy(infoset)[0] == [1, 3, 4, 5, 6, 7, 8]
