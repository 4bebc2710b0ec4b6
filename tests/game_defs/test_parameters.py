"""Parameters of bundled games: defaults, and rejection of invalid values."""

import subprocess
import sys

import pyspiel
import pytest

from game_defs import (
    ii_goofspiel,
    latent_tic_tac_toe,
    leduc_poker,
    parameters,
    princess_and_monster,
    rhode_island_holdem,
    rock_paper_scissors,
    scotland_yard,
)

GAME_CLASSES = {
    "python_ii_goofspiel": ii_goofspiel.IIGoofspielGame,
    "python_latent_tic_tac_toe": latent_tic_tac_toe.LatentTicTacToeGame,
    "python_leduc_poker": leduc_poker.LeducPokerGame,
    "python_princess_and_monster": princess_and_monster.PrincessAndMonsterGame,
    "python_rhode_island_holdem": rhode_island_holdem.RhodeIslandHoldemGame,
    "python_rock_paper_scissors": rock_paper_scissors.RockPaperScissorsGame,
    "python_scotland_yard": scotland_yard.ScotlandYardGame,
}

# The minimum and maximum of each numeric parameter.
RANGES = (
    ("python_ii_goofspiel", "num_cards", 2, 13),
    ("python_leduc_poker", "stack0", 1, 1000),
    ("python_leduc_poker", "stack1", 1, 1000),
    ("python_leduc_poker", "max_raises", 0, 10),
    ("python_leduc_poker", "num_ranks", 2, 13),
    ("python_princess_and_monster", "horizon", 2, 50),
    ("python_princess_and_monster", "rows", 2, 10),
    ("python_princess_and_monster", "columns", 2, 10),
    ("python_rhode_island_holdem", "num_ranks", 2, 13),
    ("python_rhode_island_holdem", "num_suits", 1, 4),
    ("python_rhode_island_holdem", "ante", 1, 1000),
    ("python_rhode_island_holdem", "max_bets", 1, 10),
    ("python_rock_paper_scissors", "num_actions", 3, 99),
    ("python_scotland_yard", "rounds", 1, 50),
    ("python_scotland_yard", "detectives", 1, 2),
)
# Wrong values: game, parameter, value, and the advice in the message.
WRONG_VALUES = (
    *(
        (game, name, value, f"from {low} to {high}")
        for game, name, low, high in RANGES
        for value in (low - 1, high + 1)
    ),
    ("python_ii_goofspiel", "points_order", "random", "ascending, descending"),
    ("python_ii_goofspiel", "points_order", "Ascending", "did you mean 'ascending'"),
    ("python_ii_goofspiel", "returns_type", "winloss", "did you mean 'win_loss'"),
    ("python_latent_tic_tac_toe", "conflict", "lose", "discard, keep"),
    ("python_rhode_island_holdem", "bets", "10 20", "bets=10 20 20"),
    ("python_rock_paper_scissors", "num_actions", 4, "choose 3 or 5"),
    ("python_scotland_yard", "map", "glases", "did you mean 'glasses'"),
    ("python_scotland_yard", "map", "london", "choose one of glasses, square, tripod"),
    ("python_scotland_yard", "map", "../maps/square", "choose one of glasses"),
)

# Wrong types: game, parameter, value, and the right type.
WRONG_TYPE = (
    ("python_ii_goofspiel", "num_cards", 4.5, "an int"),
    ("python_leduc_poker", "max_raises", True, "an int"),
    ("python_princess_and_monster", "rows", "3x3", "an int"),
    ("python_rhode_island_holdem", "bets", 10, "a string"),
    ("python_scotland_yard", "map", 3, "a string"),
)

MALFORMED_STRINGS = (
    "python_ii_goofspiel(cards=4)",
    "python_ii_goofspiel(num_cards=)",
    "python_ii_goofspiel(num_cards)",
    "python_ii_goofspiel(num_cards=4",
    "python_ii_goofspiel(num_cards=4)(num_cards=5)",
    "python_ii_goofspiel(num_cards=4;points_order=descending)",
    "python_ii_goofspiel(num_cards=kuhn_poker())",
    "python_princess_and_monster(horizon=5,rows=3,columns=3,depth=3)",
    "python_princess_and_monster(Horizon=5)",
    "misere(game=python_rock_paper_scissors(num_actions=4))",
)


def error_message(game_string: str, params: dict | None = None) -> str:
    """Return the message of the exception that loading raises."""
    with pytest.raises((ValueError, pyspiel.SpielError)) as caught:
        if params is None:
            pyspiel.load_game(game_string)
        else:
            pyspiel.load_game(game_string, params)
    assert str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("game, name, value, remedy", WRONG_VALUES)
def test_rejects_values_out_of_range(game, name, value, remedy):
    messages = [
        error_message(f"{game}({name}={value})"),
        error_message(game, {name: value}),
    ]
    with pytest.raises(ValueError) as caught:
        GAME_CLASSES[game]({name: value})
    for message in (*messages, str(caught.value)):
        assert game in message
        assert name in message
        assert str(value) in message
        assert remedy in message


@pytest.mark.parametrize("game, name, value, right_type", WRONG_TYPE)
def test_rejects_values_of_wrong_types(game, name, value, right_type):
    # OpenSpiel rejects these before the constructor of the game runs.
    assert name in error_message(f"{game}({name}={value})")
    assert name in error_message(game, {name: value})
    with pytest.raises(ValueError) as caught:
        GAME_CLASSES[game]({name: value})
    message = str(caught.value)
    assert game in message and f"{name}={value!r}" in message
    assert f"use {right_type}" in message


@pytest.mark.parametrize("game_string", MALFORMED_STRINGS)
def test_rejects_malformed_strings(game_string):
    error_message(game_string)


@pytest.mark.parametrize("game", GAME_CLASSES)
def test_rejects_unknown_parameters(game):
    assert "nonsense" in error_message(f"{game}(nonsense=1)")
    with pytest.raises(ValueError, match=f"{game}: unknown parameter 'nonsense'"):
        GAME_CLASSES[game]({"nonsense": 1})


@pytest.mark.parametrize("game", GAME_CLASSES)
def test_directly_constructed_games_have_the_defaults(game):
    assert str(GAME_CLASSES[game]()) == str(pyspiel.load_game(game))
    defaults = GAME_CLASSES[game]({}).get_parameters()
    for name in defaults:
        given = {key: value for key, value in defaults.items() if key != name}
        assert GAME_CLASSES[game](given).get_parameters() == defaults


def test_process_survives_an_uncaught_error():
    """An uncaught exception ends Python with a traceback instead of a crash."""
    program = (
        "import pyspiel, game_defs\n"
        "pyspiel.load_game('python_ii_goofspiel(num_cards=1)')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 1  # a killed process has a negative code
    last_line = run.stderr.strip().splitlines()[-1]
    assert last_line.startswith("ValueError: python_ii_goofspiel: num_cards=1")


def test_merge_adds_defaults_without_changing_its_argument():
    game_type = pyspiel.load_game("python_princess_and_monster").get_type()
    given = {"rows": 2}
    merged = parameters.merge(game_type, given, {"rows": range(2, 4)})
    assert merged == {"horizon": 5, "rows": 2, "columns": 3}
    assert given == {"rows": 2}
    assert parameters.merge(game_type, None, {}) == {
        "horizon": 5,
        "rows": 3,
        "columns": 3,
    }


def test_merge_suggests_similar_parameter_names():
    game_type = pyspiel.load_game("python_princess_and_monster").get_type()
    with pytest.raises(ValueError, match="did you mean 'columns'"):
        parameters.merge(game_type, {"colums": 2}, {})


def test_check_accepts_valid_values():
    parameters.check("a_game", "size", 2, range(2, 5))
    parameters.check("a_game", "size", 4, range(2, 5))
    parameters.check("a_game", "order", "up", ("up", "down"))
