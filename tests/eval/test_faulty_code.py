"""Every command reports faults in user-defined games, policies and bots."""

import re
import signal
import sys

import pyspiel
import pytest

import spiel_cr
from spiel_cr.common import plugins
from spiel_cr.common.errors import InvalidGameError
from tests.support import commands, faulty_games

FAULTS = list(faulty_games.FAULTS)
COMMANDS = [
    "info",
    "solve --algorithm cfr+ --iterations 2",
    "solve --algorithm os-mccfr --form simulator --iterations 2",
    "resolve --iterations 2",
    "evaluate --bot uniform",
    "best-response --policy uniform",
    "exploit --policy uniform --minutes 0.1",
    "tournament --bots uniform;uniform --matches 2 --out OUT",
    "play --bots uniform;uniform --matches 1",
]


@pytest.fixture(autouse=True)
def mark_tests_as_user_code(monkeypatch):
    monkeypatch.setattr(plugins, "user_modules", {"tests"})


def reporting_problem(capsys, tmp_path, command, fault):
    """Describe how a command misreports a faulty game; return "" if it does not."""
    name, *rest = command.split()
    words = [str(tmp_path / "out") if word == "OUT" else word for word in rest]
    try:
        commands.run(name, "--game", f"users_game(fault={fault})", *words)
    except SystemExit as stopped:
        code = stopped.code
    else:
        code = 0
    _, err = capsys.readouterr()
    lines = err.strip().splitlines()
    reported = [line for line in lines if line.startswith("spiel-cr: error:")]
    if code != 2 or len(reported) != 1 or "Traceback" in err or "mistake in" in err:
        return f"{command}, {fault}: exit code {code}, {lines[-3:]}"
    # All methods that raise share their code, so their names are not tested.
    method = faulty_games.FAULTS[fault][0] if "gives" in fault else ""
    if "users_game" not in reported[0] or method not in reported[0]:
        return f"{command}, {fault}: {reported}"
    return ""


def test_number_of_faults_and_commands():
    assert len(FAULTS) >= 60 and len(COMMANDS) >= 9


@pytest.mark.parametrize("command", COMMANDS)
def test_game_without_faults_passes_every_command(command, tmp_path):
    name, *rest = command.split()
    words = [str(tmp_path / "out") if word == "OUT" else word for word in rest]
    commands.run(name, "--game", "users_game()", *words)


@pytest.mark.parametrize("fault", FAULTS[:: len(FAULTS) // 9])
def test_some_faults_are_reported(fault, capsys, tmp_path):
    command = COMMANDS[FAULTS.index(fault) % len(COMMANDS)]
    assert not reporting_problem(capsys, tmp_path, command, fault)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_all_faults_are_reported_by_every_command(command, capsys, tmp_path):
    all_complaints = [
        reporting_problem(capsys, tmp_path, command, fault) for fault in FAULTS
    ]
    assert "" == "\n".join(each for each in all_complaints if each)


_PLAYERS = """
import pyspiel

print("imported")

class Bot(pyspiel.Bot):
    def __init__(self, player, seed=0):
        super().__init__()
        self.player = player

    def player_id(self):
        return self.player

    def step(self, state):
        print("asked")
        raise RuntimeError("no idea")

def divides(state):
    return {0: 1 / 0}

def leaves(state):
    raise SystemExit(7)
"""
PLAYERS = {
    "Bot": "Bot.step.* raised RuntimeError: no idea",
    "divides": "divides.* raised ZeroDivisionError: division by zero",
    "leaves": "leaves.* raised SystemExit: 7",
}


@pytest.fixture
def players(tmp_path, monkeypatch):
    """Write the module `users_players`, for the option --import; return its path."""
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(plugins, "_named", set())
    monkeypatch.setattr(plugins, "user_modules", set())
    path = tmp_path / "users_players.py"
    path.write_text(_PLAYERS, "utf-8")
    yield str(path)
    sys.modules.pop("users_players", None)


@pytest.mark.parametrize("name", PLAYERS)
def test_exceptions_in_user_players_are_reported(name, players, capsys):
    words = ("--game", "kuhn_poker", "--policy", f"users_players:{name}")
    for option in ((), ("--traceback",)):
        with pytest.raises(SystemExit, match="2"):
            commands.run("best-response", "--import", players, *words, *option)
        out, err = capsys.readouterr()
        last = err.splitlines()[-1]
        pattern = f"kuhn_poker: after .*{PLAYERS[name]} .*users_players.py, line"
        assert re.search(pattern, last) and not out
        assert ("Traceback" in err) == bool(option)
    with pytest.raises(ValueError, match=PLAYERS[name]) as caught:
        spiel_cr.nash_conv("kuhn_poker", f"users_players:{name}")
    assert not isinstance(caught.value, InvalidGameError)
    assert type(caught.value.__cause__).__name__ in PLAYERS[name]


def test_output_of_user_modules_goes_to_stderr(players, capsys):
    words = ("--game", "kuhn_poker", "--algorithm", "lp", "--import", players)
    _, out, err = commands.outputs(capsys, "solve", *words)
    assert "imported" in err and "imported" not in out


def test_signals_in_user_code_are_not_reported_as_faults(monkeypatch):
    """A KeyboardInterrupt that user code raises by itself is a fault."""
    monkeypatch.setattr(
        faulty_games.State,
        "returns",
        lambda self: signal.raise_signal(signal.SIGINT) or [1.0, -1.0],
    )
    with pytest.raises(KeyboardInterrupt):
        spiel_cr.solve("users_game()", "lp")
    with pytest.raises(InvalidGameError, match="returns raised KeyboardInterrupt"):
        spiel_cr.solve("users_game(fault=returns raises KeyboardInterrupt)", "lp")


def test_state_that_stores_an_unregistered_game_is_rejected():
    class Game(faulty_games.Game):
        def new_initial_state(self):
            state = faulty_games.State(self)
            state.kept = self
            return state

    # No game of this name is registered, so OpenSpiel cannot copy the attribute.
    settings = {**faulty_games.SETTINGS, "short_name": "not_registered"}
    unknown = faulty_games.KIND(**settings)
    game = Game.__new__(Game)
    pyspiel.Game.__init__(game, unknown, faulty_games.INFO, {"fault": ""})
    with pytest.raises(InvalidGameError, match="register the game, or do not keep it"):
        spiel_cr.solve(game, "lp")


def test_error_is_chained_to_the_users_exception():
    with pytest.raises(InvalidGameError, match="returns raised Zero") as caught:
        spiel_cr.solve("users_game(fault=returns raises ZeroDivisionError)", "lp")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
