"""Values computed board by board, compared with the sequence form."""

import dataclasses
import functools

import numpy as np
import pytest

import spiel_cr
from spiel_cr import poker
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.public_tree import form as public_form
from spiel_cr.games.public_tree import public_tree_footprint, public_tree_game
from spiel_cr.poker.answers import NodeValues
from spiel_cr.policies.best_responses import behaviour_value, value_bounds
from spiel_cr.solvers import footprint
from spiel_cr.solvers.cfr import board_arrays, board_solver, board_values
from tests.support.commands import report

pytest.importorskip("numba")

# Equivalent suits, and showdowns on all streets.
FLOP = {"board": "5s9sJs", "pot": 60, "stack": 60, "bets": "allin"}
FLOP |= {"ranges": ("KK,QQ:0.5", "AA,TT,AsJs")}
TURN = {"board": "AsKd7c2h", "pot": 60, "stack": (200, 350)}
TURN |= {"bets": "50%; raises allin", "ranges": ("AT+,77", "KT+,QJ:0.25")}
LOCKS = {"check": {"KT+": [0.3, 0.7]}, "check check": {"77": [0.25, 0.75]}}


@pytest.fixture(autouse=True)
def few_hands(monkeypatch):
    """Solve games with few hands board by board, too."""
    monkeypatch.setattr(board_arrays, "has_many_hands", lambda _: True)


@functools.cache
def flop_game():
    return public_tree_game(poker.spot(**FLOP))


def solve(kind, dtype="float64", locks=None):
    options = spiel_cr.GameOptions(form="public-tree", locks=locks)
    game = flop_game() if kind is FLOP else poker.spot(**kind)
    return spiel_cr.solve(game, "dcfr", 20, options=options, dtype=dtype)


@pytest.mark.parametrize(
    ("kind", "dtype", "locks", "nodes"),
    [
        pytest.param(
            *(FLOP, "float64", None, ["", "check check", "check check check check"]),
            marks=pytest.mark.slow,
        ),
        (TURN, "float64", LOCKS, ["check", "check check", "check check bet-30"]),
        pytest.param(
            *(TURN, "float32", None, ["", "bet-30", "check check check"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_board_values_equal_the_sequence_form(kind, dtype, locks, nodes, monkeypatch):
    result = solve(kind, dtype, locks)
    assert result.form.evaluator is not None
    stake = kind["pot"] / 2 + np.min(kind["stack"])
    tolerance = stake * (1e-9 if dtype == "float64" else 1e-5)
    plain = dataclasses.replace(result.form, evaluator=None)
    lifted = dataclasses.replace(result.game_form.sequence_form, evaluator=None)
    for found, expected in (
        (result.value_bounds(), value_bounds(lifted, result.average)),
        (result.value_bounds_with_locks(), value_bounds(plain, result.average)),
        (result.values()[0], behaviour_value(plain, result.average, 0)),
        (result.values()[1], behaviour_value(plain, result.average, 1)),
    ):
        assert found == pytest.approx(expected, abs=tolerance)
    if locks:
        assert result.nash_conv_with_locks() < result.nash_conv() - 1e-3
    policy = result.average_policy()
    boards = NodeValues(policy, result.form)
    monkeypatch.setattr(board_values, "is_available", lambda: False)
    reference = NodeValues(policy, plain)
    for node in nodes:
        found, expected = boards.at(node), reference.at(node)
        assert found.names == expected.names and expected.likelihood.sum() > 0
        for name in ("ev", "action_ev"):
            pair = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(*pair, rtol=0, atol=tolerance)
        for name in ("equity", "likelihood", "weight", "played"):
            pair = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(*pair, rtol=0, atol=tolerance / stake)


def test_large_result_has_no_last_iterate(monkeypatch):
    usual = solve(FLOP)
    monkeypatch.setattr(board_solver, "MOST_KEPT", 0)
    monkeypatch.setattr(board_values, "_MOST_VALUES", 0)
    result = solve(FLOP)
    assert usual.current is not None and result.current is None
    for player in range(2):
        assert (result.average[player] == usual.average[player]).all()
    assert result.iterations == usual.iterations
    with pytest.raises(ValueError, match="no last iterate"):
        result.current_policy()
    # The values of one decision, and those of all decisions of a round.
    node = "check check check check"
    one, all_of_round = (
        NodeValues(each.average_policy(), each.form).at(node).action_ev
        for each in (result, usual)
    )
    assert (one == all_of_round).all()


def test_memory_limit_uses_the_size_of_board_arrays(monkeypatch):
    monkeypatch.setattr(footprint, "peak_bytes", lambda *_: 1e15)
    game = flop_game()
    need = public_tree_footprint.board_bytes(game, np.float64)
    for limit in (1.01 * need, 0.99 * need):
        options = spiel_cr.GameOptions(form="public-tree", memory_limit=limit)
        if limit > need:
            assert spiel_cr.solve(game, "dcfr", 2, options=options).form.evaluator
            continue
        with pytest.raises(GameTooLargeError):
            spiel_cr.solve(game, "dcfr", 2, options=options)


def test_spot_command_builds_no_sequence_form(monkeypatch, tmp_path, capsys):
    def fail(*arguments):
        raise AssertionError("positions of the sequence form were computed")

    monkeypatch.setattr(public_form, "place", fail)
    command = "spot --board 5s9sJs --pot 60 --stack 60 --bets allin --iterations 20"
    ranges = ";".join(FLOP["ranges"])
    saved, page = tmp_path / "spot.npz", tmp_path / "spot.html"
    words = [*command.split(), "--ranges", ranges, "--save", saved, "--html", page]
    solved = report(capsys, *words)
    opened = report(capsys, "spot", "--open", saved)
    assert solved["nash_conv"] > 0 and page.exists()
    assert opened["hands"] == solved["hands"]
