"""Matrix games from arrays and from files of comma-separated values."""

import re

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from tests.support import commands

RPS = ",rock,paper,scissors\nrock,0,-1,2\npaper,1,0,-1\nscissors,-2,1,0\n"


def names_of(state):
    return [state.action_to_string(action) for action in state.legal_actions()]


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 2), (3, 3)])
def test_payoffs_equal_the_array(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    game = spiel_cr.matrix_game(matrix)
    for row, column in np.ndindex(shape):
        state = game.new_initial_state()
        state.apply_action(state.legal_actions()[row])
        first = state.information_state_string(1)
        state.apply_action(state.legal_actions()[column])
        assert state.returns() == [matrix[row, column], -matrix[row, column]]
        # The column player does not observe the row.
        other = game.new_initial_state()
        other.apply_action(other.legal_actions()[0])
        assert other.information_state_string(1) == first
    result = spiel_cr.solve(matrix, "lp")
    assert exploitability.nash_conv(result.game, result.average_policy()) < 1e-9
    rows, columns = (average[1:] for average in result.average)
    value = rows @ matrix @ columns
    assert result.game_value() == pytest.approx(value, abs=1e-9)
    assert (matrix.T @ rows).min() == pytest.approx(value, abs=1e-9)
    assert (matrix @ columns).max() == pytest.approx(value, abs=1e-9)


def test_action_names_and_payoffs_identify_the_game():
    game = spiel_cr.matrix_game([[1, 0], [0, 2]], ["up", "down"], ["left", "right"])
    state = game.new_initial_state()
    assert names_of(state) == ["up", "down"]
    state.apply_action(state.legal_actions()[0])
    assert names_of(state) == ["left", "right"]
    same = spiel_cr.matrix_game([[1, 0], [0, 2]], ["up", "down"], ["left", "right"])
    other = spiel_cr.matrix_game([[1, 0], [0, 3]], ["up", "down"], ["left", "right"])
    assert str(same) == str(game) != str(other)


@pytest.mark.parametrize(
    "text",
    [
        RPS,
        "0,-1,2\n1,0,-1\n-2,1,0\n",
        "rock,paper,scissors\n0,-1,2\n1,0,-1\n-2,1,0\n",
        "r,0,-1,2\np,1,0,-1\n\ns,-2,1.0,0/5\n",
        "\ufeff" + RPS.replace("\n", "\r\n").replace("rock,0", '"rock", 0'),
    ],
)
def test_accepts_csv_variants(text, tmp_path):
    path = tmp_path / "game.CSV"
    path.write_text(text, "utf-8", newline="")
    result = spiel_cr.solve(str(path), "lp")
    np.testing.assert_allclose(result.average[0][1:], [0.25, 0.5, 0.25], atol=1e-9)
    state = result.game.new_initial_state()
    assert names_of(state)[0] in ("rock", "1", "r")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("1,2\n3\n", "line 2 is '3'.*as in line 1"),
        ("1,2\n3,x\n", "line 2 is '3,x'"),
        ("1,2\n3,inf\n", "line 2"),
        ("a,b\n", "shape"),
    ],
)
def test_rejects_invalid_files(text, message, tmp_path):
    path = tmp_path / "game.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        spiel_cr.load_game(str(path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2],), "shape (2,)"),
        (([["a"]],), "type <U1"),
        (([[np.nan]],), "not finite"),
        (([[1, 2]], ["a", "b"]), "row_names: 2 names for 1"),
        (([[1, 2]], None, ["a"]), "column_names: 1 names for 2"),
    ],
)
def test_rejects_invalid_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        spiel_cr.matrix_game(*arguments)
    with pytest.raises(FileNotFoundError, match="no such file"):
        spiel_cr.load_game("missing.csv")


def test_solve_command_reads_csv_files(tmp_path, capsys):
    path = tmp_path / "rps.csv"
    path.write_text(RPS)
    report, text, _ = commands.outputs(
        capsys, "solve", "--game", path, "--algorithm=lp"
    )
    names = ["rock", "paper", "scissors"]
    for strategy in report["strategies"]:
        assert list(strategy) == names
        np.testing.assert_allclose(list(strategy.values()), [0.25, 0.5, 0.25])
    assert "player 1    rock 0.25, paper 0.5, scissors 0.25" in text
