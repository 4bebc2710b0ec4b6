"""OpenSpiel's `leduc_poker` in public-tree form equals the game tree."""

import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.games.public_tree import check_tree, public_tree_game
from spiel_cr.games.tree.tree_builder import build_tree

GAMES = ["leduc_poker", "leduc_poker(starting_player=1,suit_isomorphism=true)"]


def solved(game, algorithm, iterations, form="public-tree"):
    options = spiel_cr.GameOptions(form)
    return spiel_cr.solve(game, algorithm, iterations, options=options)


@pytest.mark.parametrize("game", GAMES)
def test_payoffs_and_iterates_equal_those_of_the_game_tree(game):
    form, tree = public_tree_game(game), build_tree(game)
    check_tree(form, tree)
    # Three ranks in round one; in round two, suits are merged or not.
    suits_alike = "suit_isomorphism=true" in game
    assert form.num_private_states(0) == [3, 9 if suits_alike else 15]
    for iterations in (1, 2, 20):
        public = solved(form, "cfr+", iterations)
        built = solved(tree, "cfr+", iterations, form="tree")
        assert public.nash_conv() == pytest.approx(built.nash_conv(), abs=1e-11)
        assert public.game_value() == pytest.approx(built.game_value(), abs=1e-11)


def test_openspiel_computes_the_same_nash_conv():
    game = spiel_cr.load_game("leduc_poker")
    uniform = openspiel_policy.UniformRandomPolicy(game)
    expected = exploitability.nash_conv(game, uniform)
    form = public_tree_game(game)
    assert spiel_cr.nash_conv(form, "uniform") == pytest.approx(expected, abs=1e-9)
    result = solved(game, "cfr+", 30)
    expected = exploitability.nash_conv(game, result.average_policy())
    assert result.nash_conv() == pytest.approx(expected, abs=1e-9)


def test_linear_program_gives_the_known_value():
    result = solved("leduc_poker", "lp", None)
    assert result.game_value() == pytest.approx(-0.0856064, abs=1e-7)
    assert result.nash_conv() < 1e-7


@pytest.mark.parametrize(
    "algorithm", ["public-es", pytest.param("public-vr+", marks=pytest.mark.slow)]
)
def test_public_sampling_needs_only_the_name_of_the_game(algorithm):
    first = spiel_cr.solve("leduc_poker", algorithm, 20)
    last = spiel_cr.solve("leduc_poker", algorithm, 1000)
    assert last.game_form.kind == "public-tree"
    assert last.nash_conv() < 0.8 * first.nash_conv()


def test_rejects_unsupported_parameters():
    with pytest.raises(ValueError, match="in public-tree form: action_mapping=True"):
        public_tree_game("leduc_poker(action_mapping=true)")


def test_private_states_are_named_by_cards():
    form = public_tree_game("leduc_poker")
    assert [form.reader.name(0, 0, i) for i in range(3)] == ["Js", "Qs", "Ks"]
