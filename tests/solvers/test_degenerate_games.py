"""Games in which no player or only one decides: solvers, evaluators, commands.

Values and NashConv are known without any solver, see `degenerate_games`.
"""

import pathlib

import numpy as np
import pytest

import spiel_cr
from spiel_cr import GameOptions, Goal, ResponseConfig
from spiel_cr.solvers.algorithms import ALGORITHMS
from tests.support import degenerate_games
from tests.support.commands import report

GAMES = degenerate_games.GAMES
# Games in which no player affects the result, so that every policy is an equilibrium.
FIXED = [
    name for name in GAMES if name not in ("degenerate_first", "degenerate_second")
]
_DEEP = "traversals=4,steps=2,batch=4,hidden=4,layers=1,average_steps=2,critic_steps=1"
TINY = {
    "deep": f"({_DEEP},critic_batch=4)",
    "self-play": "(hidden=4,layers=1,episodes=4)",
}
# Parts of the error messages that are expected for some games, forms and algorithms.
EXPECTED_ERRORS = (
    "set hand_buckets",
    "visits the whole game",
    "requires a game tree",
    "the game has no decisions",
    "needs the game tree",
    "which only the public-tree form",
)
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def solved(game, algorithm, form="auto", iterations=3):
    family = ALGORITHMS[algorithm]
    goal = Goal(iterations) if family.iterates else Goal()
    settings = algorithm + TINY.get(family.name, "")
    return spiel_cr.solve(game, settings, goal, options=GameOptions(form))


def check(name, algorithm, form):
    """Check NashConv and value of a solution, or that the error is an expected one."""
    try:
        result = solved(name, algorithm, form)
    except ValueError as error:
        assert any(part in str(error) for part in EXPECTED_ERRORS)
        return
    found = spiel_cr.nash_conv(name, result.average_policy())
    assert np.isfinite(found) and found >= -1e-9
    if name in FIXED:
        assert found == pytest.approx(0, abs=1e-6)
        if result.form is not None:
            assert result.game_value() == pytest.approx(GAMES[name][1], abs=1e-6)


@pytest.mark.parametrize("form", ["tree", "simulator"])
@pytest.mark.parametrize("algorithm", ["os-mccfr", "es-mccfr", "vr-mccfr"])
def test_sampling_algorithms_accept_games_without_decisions(algorithm, form):
    check("degenerate_terminal", algorithm, form)


@pytest.mark.parametrize("name", ["degenerate_terminal", "degenerate_second"])
def test_sd_cfr_accepts_games_where_a_player_never_decides(name):
    check(name, "sd-cfr", "tree")


@pytest.mark.parametrize("name", GAMES)
def test_cfr_and_linear_programs_solve_degenerate_games(name):
    for algorithm in ("lp", "cfr+", "auto"):
        check(name, algorithm, "tree")
    exact = spiel_cr.solve(name, "lp")
    assert exact.game_value() == pytest.approx(GAMES[name][1], abs=1e-9)
    assert exact.nash_conv() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_evaluators_accept_degenerate_games(name):
    value = GAMES[name][1]
    for player, sign in enumerate((1, -1)):
        found = spiel_cr.best_response(name, "uniform", player)
        assert found.is_exact and np.isfinite(found.value)
        if name in FIXED:
            assert found.value == pytest.approx(sign * value, abs=1e-9)
        lbr = ResponseConfig("lbr", matches=4)
        assert spiel_cr.best_response(name, "uniform", player, lbr).value <= 2 + 1e-9
    matches = spiel_cr.play_matches(name, ["uniform", "uniform"], 4)
    assert np.isfinite(matches.returns).all()
    assert spiel_cr.differences(name, "uniform", "uniform").rows == ()
    evaluation = spiel_cr.evaluate(name, "resolving(solver=cfr+,iterations=40)")
    assert 0 <= evaluation.nash_conv < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("form", ["auto", "tree", "simulator"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_accepts_degenerate_games(algorithm, form):
    for name in GAMES:
        check(name, algorithm, form)


@pytest.mark.parametrize("name", ["degenerate_terminal", "degenerate_first"])
def test_commands_accept_degenerate_games(name, tmp_path, capsys):
    module = pathlib.Path(degenerate_games.__file__)
    policy, game = tmp_path / "policy.npz", ["--game", name, "--import", module]
    assert report(capsys, "info", *game)["histories"] >= 1
    found = report(capsys, "solve", *game, "--algorithm", "lp", "--save", policy)
    assert found["game_value"] == pytest.approx(GAMES[name][1], abs=1e-9)
    for words in (
        ("solve", "--iterations", "3", "--algorithm", "cfr+"),
        ("resolve", "--iterations", "3"),
        ("show", "--policy", policy),
        ("play", "--bots", "uniform;uniform"),
        ("evaluate", "--bot", "resolving(iterations=3)"),
        ("best-response", "--policy", policy),
        ("exploit", "--policy", policy, "--minutes", "0.02"),
        (
            "tournament",
            "--bots",
            "uniform;uniform",
            "--matches",
            "2",
            "--out",
            tmp_path,
        ),
    ):
        report(capsys, words[0], *game, *words[1:])
