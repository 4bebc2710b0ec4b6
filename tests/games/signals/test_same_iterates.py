"""The same game in both forms: what strategies win, and the iterates of CFR+."""

import numpy as np
import pytest

from spiel_cr.games.signals import form
from spiel_cr.games.tree.compiler import compile_game
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from tests.support import detection, games
from tests.support.strategies import random_behaviours, solver_of


def value_of(detected, behaviours):
    """Player 0's expected utility, leaf by leaf and card by card.

    Args:
      detected: the signal form.
      behaviours: each player's, by the signal form's sequences.
    """
    game, betting = detected.game, detected.game.betting
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    first = []
    for player in range(2):
        hands = np.array(game.num_signals(player))[betting.round]
        own = hands * children * (betting.player == player)
        first.append(1 + np.cumsum(own) - own)

    def probability(player, node, signal):
        if not node:
            return 1.0
        above = betting.parent[node]
        signal = climb(player, signal, betting.round[node], betting.round[above])
        chosen = 1.0
        if betting.player[above] == player:
            rank = np.flatnonzero(betting.parent == above).tolist().index(node)
            place = first[player][above] + signal * children[above] + rank
            chosen = behaviours[player][place]
        return chosen * probability(player, above, signal)

    def climb(player, signal, later, earlier):
        for r in range(later, earlier, -1):
            signal = game.parents[player][r][signal]
        return signal

    total = 0.0
    for leaf, kernel, stake in zip(*game.terms, strict=True):
        for one, other, entry in zip(*game.kernels[kernel].coordinates(), strict=True):
            reach = probability(0, leaf, one) * probability(1, leaf, other)
            total += stake * entry * reach
    return total


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "nim"])
def test_same_value(name):
    """Random strategies, carried over by `sequences`, win what they win."""
    tree = games.compiled(name)
    detected = detection.locate(tree)
    behaviours = random_behaviours(tree, 3)
    moved = []
    for behaviour, sequences in zip(behaviours, detected.sequences, strict=True):
        assert (np.sort(sequences) == np.arange(len(behaviour))).all()
        other = np.empty_like(behaviour)
        other[sequences] = behaviour
        moved.append(other)
    reach = tuple(
        reach_from_behaviour(own.decisions, behaviour)
        for own, behaviour in zip(tree.infosets, behaviours, strict=True)
    )
    expected = best_responses.expected_value(tree.form, reach)
    assert value_of(detected, moved) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("string", "products"),
    [
        *(("kuhn_poker", products) for products in (False, True)),
        ("liars_dice(numdice=1,dice_sides=3)", True),
        pytest.param("leduc_poker", True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, False, marks=pytest.mark.slow),
        pytest.param("liars_dice", True, marks=pytest.mark.slow),
    ],
)
def test_same_iterates(string, products):
    """Twenty iterations of CFR+ are the same up to rounding, far below 1e-9."""
    tree = compile_game(string)
    detected = detection.locate(tree)
    signal_form = form.form_of(detected.game, products=products)
    compiled, ours = (solver_of(f, "cfr+") for f in (tree.form, signal_form))
    compiled.run(20)
    ours.run(20)
    for player, sequences in enumerate(detected.sequences):
        for one, other in (
            (compiled.average(player), ours.average(player)[sequences]),
            (
                compiled.current_behaviour(player),
                ours.current_behaviour(player)[sequences],
            ),
        ):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        assert ours.average(player)[1:].std() > 0
