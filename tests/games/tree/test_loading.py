"""Loading of games: invalid strings and games are rejected with clear errors."""

import pyspiel
import pytest

import spiel_cr
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.opening import origins
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, MadeState, Node

NOISE = "add_noise(game=kuhn_poker(),epsilon=0.1,seed=1)"


@pytest.mark.parametrize(
    "text, said",
    [
        ("misere(game=kuhn\udcff)", "is not a name"),
        ("start_at(game=kuhn_poker(),history=\udcff)", "is not UTF-8"),
    ],
)
def test_rejects_undecodable_strings_before_openspiel_parses_them(
    text, said, monkeypatch
):
    monkeypatch.setattr(pyspiel, "load_game", None)
    with pytest.raises((ValueError, pyspiel.SpielError), match=said):
        spiel_cr.load_game(text)


@pytest.mark.parametrize("text", [NOISE, f"misere(game={NOISE})"])
def test_rejects_games_with_random_noise(text):
    for game in (text, pyspiel.load_game(text)):
        with pytest.raises(InvalidGameError, match="add_noise draws.*leave it out"):
            spiel_cr.load_game(game)


def test_rejects_games_without_an_observer():
    class State(MadeState):
        def information_state_string(self, player=None):
            # OpenSpiel calls this if the states have no such method.
            return self.get_game().make_py_observer

    class Game(MadeGame):
        def new_initial_state(self):
            return State(self, self._rules)

    def rules(path):
        if len(path) == 2:
            return Node(TERMINAL)
        return Node(0 if path else CHANCE, (0,), chance=(1.0,))

    with pytest.raises(InvalidGameError, match="silent.*fails.*make_py_observer"):
        spiel_cr.load_game(Game(rules, "silent"))


def test_rejects_nonzero_utility_sums():
    game = MadeGame(lambda path: Node(TERMINAL), "generous", utility_sum=1.0)
    with pytest.raises(InvalidGameError, match="generous.*utility_sum=1.0.*correct"):
        spiel_cr.load_game(game)


@pytest.mark.parametrize("payoff, fits", [("-0.3333333333", True), ("-0.3333", False)])
def test_utility_sum_has_the_rounding_tolerance_of_returns(payoff, fits):
    """OpenSpiel sets utility_sum to that of the first terminal node of a file."""
    game = pyspiel.load_efg_game(
        'EFG 2 R "third" { "A" "B" }\np "" 1 1 "" { "l" "r" } 0\n'
        f't "" 1 "" {{ 1/3 {payoff} }}\nt "" 2 "" {{ -1 1 }}\n'
    )
    if fits:
        assert game.utility_sum() != 0
        assert len(spiel_cr.build_tree(game).histories) == 3
    else:
        with pytest.raises(ValueError):
            spiel_cr.load_game(game)


@pytest.mark.parametrize("text", ["go_fish(ranks=2,suits=2)", "kuhn_poker"])
def test_games_with_and_without_a_python_class_are_reloaded(text):
    """OpenSpiel exposes some C++ games as classes whose objects have no attributes."""
    game = spiel_cr.load_game(text)
    assert str(origins.load_again(game)) == str(game)
    assert not origins.is_python(game)


def test_games_from_efg_text_are_not_looked_up_as_files(capfd):
    text = 'EFG 2 R "One" { "P0" "P1" } p "" 1 1 "a" { "x" "y" } 0 '
    text += 'p "" 2 1 "b" { "x" "y" } 0 t "" 1 "" { 1 -1 } t "" 2 "" { -1 1 } '
    game = pyspiel.load_efg_game(text + 't "" 3 "" { 0 0 }')
    assert len(spiel_cr.build_tree(game).histories) == 5
    assert "exception" not in "".join(capfd.readouterr())


def test_unregistered_matrix_games_do_not_print_the_list_of_games(capfd):
    payoffs = [[1, -1], [-1, 2]], [[-1, 1], [1, -2]]
    game = pyspiel.create_matrix_game("mine", "Mine", ["a", "b"], ["c", "d"], *payoffs)
    tree = spiel_cr.build_tree(game)
    assert len(tree.histories) == 7
    assert origins.load_again(tree.game) is None
    assert "Available games" not in "".join(capfd.readouterr())
