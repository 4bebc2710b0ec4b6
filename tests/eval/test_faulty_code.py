"""Faults in users' games, policies and bots are reported as such, by every command."""

import pytest

from spiel_cr.common import plugins
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
def users_module(monkeypatch):
    monkeypatch.setattr(plugins, "user_modules", {"tests"})


def complaint(capsys, tmp_path, command, fault):
    """What is wrong with how a command reports a faulty game; "" if nothing is."""
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
    # The name of a method that raises is that of its code, which all have in common.
    method = faulty_games.FAULTS[fault][0] if "gives" in fault else ""
    if "users_game" not in reported[0] or method not in reported[0]:
        return f"{command}, {fault}: {reported}"
    return ""


def test_there_are_enough():
    assert len(FAULTS) >= 60 and len(COMMANDS) >= 9


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_fault_it_is_a_game(command, tmp_path):
    name, *rest = command.split()
    words = [str(tmp_path / "out") if word == "OUT" else word for word in rest]
    commands.run(name, "--game", "users_game()", *words)


@pytest.mark.parametrize("fault", FAULTS[:: len(FAULTS) // 9])
def test_few(fault, capsys, tmp_path):
    command = COMMANDS[FAULTS.index(fault) % len(COMMANDS)]
    assert not complaint(capsys, tmp_path, command, fault)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_all(command, capsys, tmp_path):
    all_complaints = [complaint(capsys, tmp_path, command, fault) for fault in FAULTS]
    assert "" == "\n".join(each for each in all_complaints if each)
