"""Complete beliefs, which are followed through moves of chance and the opponent."""

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.responses import belief_search
from spiel_cr.policies.rollouts import Answers


def test_edge_limit_bounds_memory_and_keeps_total_probability(monkeypatch):
    """If a decision has thousands of bet sizes, moves are sampled during expansion."""
    game, sizes, few = pyspiel.load_game("leduc_poker"), [], belief_search.few

    def counted(edges, *settings):
        sizes.append(len(edges))
        return few(edges, *settings)

    monkeypatch.setattr(belief_search, "few", counted)
    answers = Answers(openspiel_policy.UniformRandomPolicy(game), 0)
    start = [(game.new_initial_state(), 1.0)]
    found = []
    for most in (1000, 8):
        monkeypatch.setattr(belief_search, "_MOST_EDGES", most)
        followed = belief_search.follow(
            start, None, 1, answers, limit=4, number=lambda: 0.3
        )
        weights = [w for some in followed.decisions.values() for _, w in some]
        assert sum(weights) == pytest.approx(1, abs=1e-12) and not followed.complete
        found.append(max(sizes))
        sizes.clear()
    # Four of six first cards are kept, and each is followed by five second cards.
    assert found == [20, 10]
