"""Rollouts on states, with cached policies and sampled chance outcomes."""

import pyspiel
import pytest

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import load_game
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.policies import rollouts
from spiel_cr.policies.rollouts import Answers
from tests.support import reference
from tests.support.states import after


def test_answers_equal_the_queried_policy():
    tree = reference.Tree(pyspiel.load_game("leduc_poker"))
    truth = FixedPolicy(load_game("leduc_poker"), "call_raise")
    asked = reference.from_openspiel(tree, truth)
    for player in (0, 1):
        for given in (truth, truth.to_tabular()):
            answers = Answers(given, player)
            for (owner, _), histories in tree.infosets.items():
                if owner != player:
                    continue
                node = tree.nodes[histories[-1]]
                answer = answers(after("leduc_poker", *node.path))
                found = dict(zip(answer.actions, answer.probabilities, strict=True))
                expected = {a: p for a, p in asked[node.key].items() if p}
                assert found == pytest.approx(expected) and answer.cumulative[-1] == 1


def test_chance_nodes_are_not_checked_in_rollouts(monkeypatch):
    """In card games, a check of each chance node takes as long as the draw."""
    policy = FixedPolicy(load_game("kuhn_poker"), "call_raise")
    answers = {player: Answers(policy, player) for player in (0, 1)}
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    monkeypatch.setattr(rollouts, "chance_outcomes", None)
    assert rollouts.play_on(state, answers, lambda: 0.5) == TERMINAL


@pytest.mark.parametrize("number", [0.0, 0.25, 0.5, 0.75, 1 - 2**-53])
def test_outcomes_of_probability_zero_are_never_drawn(number):
    outcomes = [(0, 0.0), (1, 0.5), (2, 0.0), (3, 0.5), (4, 0.0)]
    assert rollouts.draw_outcome(outcomes, number) == (1 if number < 0.5 else 3)
    short = [(0, 0.0), (1, 0.5), (2, 0.5 - 1e-10), (3, 0.0)]
    assert rollouts.draw_outcome(short, number) in (1, 2)
