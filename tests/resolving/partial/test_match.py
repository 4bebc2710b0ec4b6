"""What a player of partial trees does between two decisions, without solving."""

import time

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.games.opening.loading import load_game
from spiel_cr.games.stepping.observations import observations
from spiel_cr.resolving.clock import Clock, Cost
from spiel_cr.resolving.partial import match, opponent_knowledge
from spiel_cr.resolving.partial.match import PartialAgent
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.solved_tree import SolvedTree

GOOFSPIEL = "python_ii_goofspiel(num_cards=4)"


class Idle(PartialAgent):
    """Solves nothing."""

    def __init__(self, game, player, max_histories, leaf="rollouts(n=1)", **settings):
        settings = PartialConfig(max_histories, leaf=leaf, **settings)
        random = np.random.default_rng(0)
        super().__init__(player, settings, Clock(50.0, None), random, lambda: 0)
        tree = self._first_tree(load_game(game))
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


def test_where_the_blueprint_was_played_it_is_believed_to_have_been(tmp_path):
    """Not what the start's tree says, which was not played."""
    path = tmp_path / "sampled.npz"
    sampled = spiel_cr.solve(
        GOOFSPIEL, "os-mccfr", 2, layout=spiel_cr.Layout("stepped"), seed=1
    )
    sampled.save(path)
    leaf = f"continuations(path={path},k=1,rollouts=1)"
    agent = Idle(GOOFSPIEL, 0, 200, leaf=leaf, until_end=True)
    for behaviour in agent.solved.behaviour:
        behaviour[:] = np.arange(len(behaviour)) % 2
    state = agent.solved.partial.game.new_initial_state()
    root, mix = agent.solved.partial.simulator.root(), match.UNIFORM_SHARE
    given = agent.blueprint.policy.action_probabilities(state)
    played = np.array([p for _, p in sorted(given.items())])
    believed = agent._believed(root, player=0)
    assert believed == pytest.approx(mix / len(played) + (1 - mix) * played)
    for action in (0, 0):
        state.apply_action(action)
    stages = observations(state, 0, waiting=False)
    assert agent.solved.find(stages[0].seen[-1]) >= 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Idle, "_knowledge_at", None)  # of the start's tree
        assert agent._follow(stages, 1) is not None


def test_a_tree_to_the_end_ends_there_and_in_time():
    """From as many roots as have capacity; with no time left from none."""
    agent = Idle(GOOFSPIEL, 0, 4000)
    state = agent.solved.partial.game.new_initial_state()
    for action in (0, 0):
        state.apply_action(action)
    stages = observations(state, 0, waiting=False)
    knowledge = agent._follow(stages, 1)
    grown, grow = [], PartialTree.grow

    def counting(tree, *arguments, **named):
        grown.append(len(tree))
        return grow(tree, *arguments, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PartialTree, "grow", counting)
        for capacity in (4000, 60, 10):
            tree = agent._tree_to_the_end(knowledge, capacity)
            assert (tree is None) == (capacity < 4000)
            assert tree is None or (not tree.can_grow and len(tree) <= capacity)
        # One try says that there is no capacity.
        assert len(grown) <= 3
        grown.clear()
        late = time.perf_counter() - 1
        tree = agent._tree_to_the_end(knowledge, 4000, late)
        # What its first look at the clock allows, and nothing more.
        assert len(grown) == 1 and (tree is None or len(tree) < 4000)


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
