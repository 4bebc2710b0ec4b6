"""Play on states: policies asked once."""

import pyspiel
import pytest

from spiel_cr.responses import opponents
from spiel_cr.responses.rollouts import Answers
from tests.support import reference
from tests.support.states import after


def test_answers_keep_what_was_asked():
    tree = reference.Tree(pyspiel.load_game("leduc_poker"))
    truth = opponents.chump("leduc_poker", "call_raise")
    asked = reference.from_openspiel(tree, truth)
    for player in (0, 1):
        for given in (truth, truth.to_tabular()):
            answers = Answers(given, player)
            for (who, _), histories in tree.infosets.items():
                if who != player:
                    continue
                node = tree.nodes[histories[-1]]
                answer = answers(after("leduc_poker", *node.path))
                found = dict(zip(answer.actions, answer.probabilities, strict=True))
                expected = {a: p for a, p in asked[node.key].items() if p}
                assert found == pytest.approx(expected) and answer.ends[-1] == 1
