"""Checks of chance outcomes and returns of single states, and their errors."""

import math

import pyspiel
import pytest

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.opening import game_checks
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node


def chance_root(*odds):
    """Return the root of a game whose chance outcomes have these probabilities."""

    def rules(path):
        if path:
            return Node(TERMINAL)
        return Node(CHANCE, tuple(range(len(odds))), chance=odds)

    return MadeGame(rules, "dealt").new_initial_state()


def terminal_state(*returns, unit=1.0):
    """Return a terminal state of a game whose payoffs are at most 100 units."""

    class State(pyspiel.State):
        def current_player(self):
            return TERMINAL

        def is_terminal(self):
            return True

        def returns(self):
            return [value * unit for value in returns]

    game = MadeGame(lambda path: Node(TERMINAL), "ended", largest=100 * unit)
    return State(game)


def test_zero_probability_outcomes_are_removed():
    assert game_checks.chance_outcomes(chance_root(0.25, 0.0, 0.75)) == [
        (0, 0.25),
        (2, 0.75),
    ]


@pytest.mark.parametrize(
    "odds, said",
    [
        ((0.5, 0.4), "sum to 0.9"),
        ((0.5, 0.6), "sum to 1.1"),
        ((1.5, -0.5), "outcome 0 has probability 1.5"),
        ((-0.5, 1.5), "outcome 0 has probability -0.5"),
        ((0.5, math.nan), "outcome 1 has probability nan"),
        ((0.5, math.inf), "outcome 1 has probability inf"),
        ((0.0, 0.0), "sum to 0.0"),
        ((), "sum to 0.0"),
    ],
)
def test_rejects_invalid_chance_probabilities(odds, said):
    with pytest.raises(InvalidGameError, match=f"dealt.*at the root.*{said}.*correct"):
        game_checks.chance_outcomes(chance_root(*odds))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    "given, said",
    [
        ((1.0, -0.5), "sum to"),
        ((1.0, -1.0 + 1e-7), "sum to"),
        ((math.nan, 0.0), "returns are nan and 0.0.*finite"),
        ((math.inf, -math.inf), "returns are inf and -inf.*finite"),
        ((1.0,), "there are 1 returns"),
        ((1.0, -1.0, 0.0), "there are 3 returns"),
    ],
)
def test_rejects_invalid_returns(given, said, unit):
    with pytest.raises(InvalidGameError, match=f"ended.*at the root.*{said}"):
        game_checks.returns(terminal_state(*given, unit=unit))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_accepts_returns_with_rounding_errors(unit):
    """In floating point, ten times 0.1 is not 1, and 100.1 - 100 is not 0.1."""
    tenths = sum([0.1] * 10)
    for given in ((tenths, -1.0), (100.1 - 100, -0.1), (100.3 - 100.2 - 0.1, 0.0)):
        state = terminal_state(*given, unit=unit)
        assert game_checks.returns(state) == tuple(value * unit for value in given)
        assert game_checks.player_return(state, 1) == given[1] * unit


def test_error_message_contains_the_history():
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (2, 0, 1):
        state.apply_action(action)
    error = game_checks.invalid(state, "it rains", "wait")
    text = "kuhn_poker(): after Deal:2, Deal:0, Bet (actions [2, 0, 1]) it rains; wait"
    assert str(error) == text
