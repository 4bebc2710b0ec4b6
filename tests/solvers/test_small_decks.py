"""Small decks of Rhode Island Hold'em, as game trees and as public trees."""

import pytest

import spiel_cr
from spiel_cr.policies import best_responses, conversions
from spiel_cr.solvers.solve import solve

DECKS = [
    "num_ranks=2,num_suits=2,max_bets=1",
    pytest.param("num_ranks=3,num_suits=2,max_bets=1", marks=pytest.mark.slow),
    pytest.param("num_ranks=4,num_suits=2,max_bets=1", marks=pytest.mark.slow),
]


def uniform_value(form):
    behaviour = [conversions.uniform_behaviour(own) for own in form.decisions]
    return best_responses.expected_value(form, best_responses.reach_of(form, behaviour))


@pytest.mark.parametrize("deck", DECKS)
def test_game_tree_and_public_tree_agree(deck):
    """Values of uniform play, NashConv during CFR+ and values of the game are equal."""
    game = spiel_cr.load_game(f"python_rhode_island_holdem({deck})")
    compiled, public_tree = (
        solve(
            game,
            "cfr+",
            spiel_cr.Goal(20, eval_every=5),
            options=spiel_cr.GameOptions(form),
        )
        for form in ("tree", "public-tree")
    )
    assert len(public_tree.form.decisions[0]) < len(compiled.form.decisions[0])
    assert uniform_value(public_tree.form) == pytest.approx(
        uniform_value(compiled.form), abs=1e-12
    )
    curves = [
        [point.nash_conv for point in found.curve] for found in (compiled, public_tree)
    ]
    assert len(curves[0]) == 4
    assert curves[1] == pytest.approx(curves[0], abs=1e-9)
    values = [
        sum(solve(game, "lp", options=spiel_cr.GameOptions(form)).value_bounds()) / 2
        for form in ("tree", "public-tree")
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-7)
