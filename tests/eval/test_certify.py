"""`certify` on files of spiel_cr and of other programs, against OpenSpiel."""

import csv
import hashlib
import subprocess
import sys

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from tests.support.commands import outputs, rejection

_GOOFSPIEL = "goofspiel(num_cards=4,imp_info=True,points_order=descending)"
_GOOFSPIEL_IN_TURNS = f"turn_based_simultaneous_game(game={_GOOFSPIEL})"
_RIVER = "python_poker_spot(pot=100,stack=100,ranges=AA QQ;KK JJ,bets=allin)"
# A program without spiel_cr: it writes the policy of one of OpenSpiel's solvers, and
# prints its NashConv, which OpenSpiel computes.
_OTHER_PROGRAM = """
import csv, sys
import pyspiel
from open_spiel.python import policy
from open_spiel.python.algorithms import cfr, exploitability, external_sampling_mccfr

game, solver, count, path = sys.argv[1:]
game = pyspiel.load_game(game)
if solver == "first":
    average = policy.TabularPolicy(game)
    for row in average.state_lookup.values():
        first = average.legal_actions_mask[row].argmax()
        average.action_probability_array[row] = 0
        average.action_probability_array[row, first] = 1
else:
    import numpy as np
    np.random.seed(1)
    make = {"cfr": cfr.CFRSolver, "cfr+": cfr.CFRPlusSolver}.get(solver)
    if make is None:
        solver = external_sampling_mccfr.ExternalSamplingSolver(game)
        step = solver.iteration
    else:
        solver = make(game)
        step = solver.evaluate_and_update_policy
    for _ in range(int(count)):
        step()
    average = solver.average_policy()
    if not isinstance(average, policy.TabularPolicy):
        average = average.to_tabular()
with open(path, "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["information_state", "action", "probability"])
    for state, row in average.state_lookup.items():
        for action in range(game.num_distinct_actions()):
            probability = float(average.action_probability_array[row, action])
            if probability:
                writer.writerow([state, action, probability])
print(float(exploitability.nash_conv(game, average)))
"""


@pytest.mark.parametrize(
    ("game", "solver", "count"),
    [
        ("kuhn_poker", "cfr+", 50),
        ("leduc_poker", "first", 0),
        ("liars_dice(numdice=1,dice_sides=3)", "cfr", 5),
        (_GOOFSPIEL_IN_TURNS, "cfr+", 5),
        ("leduc_poker", "external sampling", 300),
        pytest.param("leduc_poker", "cfr+", 30, marks=pytest.mark.slow),
    ],
)
def test_certifies_csv_files_of_other_programs(game, solver, count, tmp_path, capsys):
    """NashConv equals that of OpenSpiel in a process that does not import spiel_cr."""
    path = tmp_path / "policy.csv"
    words = [sys.executable, "-c", _OTHER_PROGRAM, game, solver, str(count), path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found, out, _ = outputs(capsys, "certify", path, "--game", game)
    assert found["nash_conv"] == pytest.approx(float(done.stdout), abs=1e-9)
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert outputs(capsys, "certify", path, "--game", game)[1] == out


@pytest.mark.parametrize(
    ("game", "algorithm", "iterations", "form"),
    [
        ("kuhn_poker", "cfr+", 10, "tree"),
        ("kuhn_poker", "lp", None, "tree"),
        ("matrix_rps", "cfr", 3, "tree"),
        ("connect_four(rows=2,columns=3)", "dcfr", 20, "tree"),
        ("python_rock_paper_scissors(num_actions=5)", "cfr+", 9, "tree"),
        (_GOOFSPIEL, "pcfr+", 10, "tree"),
        ("python_leduc_poker(num_ranks=2,max_raises=1)", "cfr+", 10, "public-tree"),
        ("dark_hex(board_size=2)", "cfr+", 5, "phantom"),
        ("kuhn_poker", "os-mccfr(batch=64)", 3, "simulator"),
        ("liars_dice(numdice=1,dice_sides=2)", "cfr+", 10, "tree"),
        *(
            pytest.param(*given, marks=pytest.mark.slow)
            for given in (
                ("leduc_poker", "vad-cfr", 20, "tree"),
                ("leduc_poker", "hs-dcfr", 5, "public-tree"),
                ("dark_hex(board_size=2)", "os-mccfr(batch=64)", 3, "tree"),
                ("leduc_poker", "es-mccfr(batch=64)", 3, "simulator"),
            )
        ),
    ],
)
def test_certifies_files_of_solve(game, algorithm, iterations, form, tmp_path, capsys):
    """NashConv equals that of OpenSpiel's evaluator for every form."""
    path = tmp_path / "policy.npz"
    options = spiel_cr.GameOptions(form)
    spiel_cr.solve(game, algorithm, iterations, options=options).save(path)
    found, out, _ = outputs(capsys, "certify", path)
    policy = spiel_cr.load_policy(path)
    loaded = pyspiel.load_game(game)
    if loaded.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        loaded = pyspiel.convert_to_turn_based(loaded)
    expected = exploitability.nash_conv(loaded, _copy(loaded, policy))
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-9)
    assert outputs(capsys, "certify", path)[1] == out


def _copy(game, policy):
    """Copy the probabilities of a policy to a tabular policy of OpenSpiel."""
    table = openspiel_policy.TabularPolicy(game)
    for state, row in zip(table.states, table.action_probability_array, strict=True):
        row[:] = 0
        for action, share in policy.action_probabilities(state).items():
            row[action] = share
    return table


def _write(path, rows, header=("information_state", "action", "probability")):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _uniform():
    table = openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))
    return [(state, action, 0.5) for state in table.state_lookup for action in (0, 1)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda rows: rows[:-2], "sum to"),
        (lambda rows: [*rows[:-1], (*rows[-1][:2], 0.6)], "sum to"),
        (lambda rows: [*rows, rows[0]], "line 26: the action occurs twice"),
        (lambda rows: [*rows, ("9", 0, 1)], "no information state '9'"),
        (lambda rows: [*rows, (rows[0][0], 2, 0)], "with action 2"),
        (lambda rows: [*rows, ("0",)], "line 26"),
        (lambda rows: [*rows, ("0", "x", 1)], "line 26"),
        (lambda rows: [(*rows[0][:2], "nan"), *rows[1:]], "probabilities"),
    ],
)
def test_rejects_invalid_csv_files(rows, message, tmp_path, capsys):
    path = tmp_path / "policy.csv"
    _write(path, _uniform())
    assert spiel_cr.nash_conv("kuhn_poker", str(path)) == pytest.approx(0.9166666667)
    _write(path, rows(_uniform()))
    assert message in rejection(capsys, "certify", path, "--game", "kuhn_poker")


def test_csv_files_require_a_game_and_a_header(tmp_path, capsys):
    path = tmp_path / "policy.csv"
    _write(path, _uniform())
    assert "add --game" in rejection(capsys, "certify", path)
    with pytest.raises(ValueError, match="does not name its game"):
        spiel_cr.load_policy(path)
    _write(path, _uniform(), header=("state", "action", "probability"))
    assert "first line" in rejection(capsys, "certify", path, "--game", "kuhn_poker")
