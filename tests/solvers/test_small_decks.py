"""Small decks of Rhode Island Hold'em: compiled, and by signals without suits."""

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
def test_both_forms_are_one_game(deck):
    """Uniform values, NashConv on the way of CFR+, and values by linear programs."""
    game = spiel_cr.load_game(f"python_rhode_island_holdem({deck})")
    compiled, signals = (
        solve(
            game,
            "cfr+",
            spiel_cr.Goal(20, eval_every=5),
            options=spiel_cr.GameOptions(form),
        )
        for form in ("tree", "public-tree")
    )
    assert len(signals.form.decisions[0]) < len(compiled.form.decisions[0])
    assert uniform_value(signals.form) == pytest.approx(
        uniform_value(compiled.form), abs=1e-12
    )
    ways = [[point.nash_conv for point in found.curve] for found in (compiled, signals)]
    assert len(ways[0]) == 4
    assert ways[1] == pytest.approx(ways[0], abs=1e-9)
    values = [
        sum(solve(game, "lp", options=spiel_cr.GameOptions(form)).value_bounds()) / 2
        for form in ("tree", "public-tree")
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-7)
