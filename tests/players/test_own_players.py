"""User-defined bots and policies that are named by module, and `--import`."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pyspiel
import pytest
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.common import plugins
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies.bot_policies import BotPolicy
from tests.support.commands import report, run
from tests.support.named_opponents import load_opponent

MODULE = """
import pyspiel
from open_spiel.python import policy

class First(policy.Policy):
    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions()
        return {action: float(action == legal[0]) for action in legal}

class Last(pyspiel.Bot):
    def __init__(self, player, wish=-1):
        pyspiel.Bot.__init__(self)
        self.player, self.wish = player, wish
    def player_id(self):
        return self.player
    def restart(self):
        pass
    def inform_action(self, state, player, action):
        pass
    def provides_policy(self):
        return True
    def get_policy(self, state):
        legal = state.legal_actions()
        return [(a, float(a == legal[self.wish])) for a in legal]
    def step(self, state):
        return state.legal_actions()[self.wish]

def broken(player):
    return {}["nothing"]

def wrong_seat(player):
    return Last(0)

def nothing(game):
    return None

from os import system
from subprocess import run
"""

GAME = pathlib.Path(__file__).parents[1] / "project" / "my_game.py"


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """Run the test in a folder with a module of bots, and restore modules and paths."""
    # The variable is restored after the test.
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "user_modules", set())
    monkeypatch.setattr(plugins, "_named", set())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_bots.py").write_text(MODULE, encoding="utf-8")
    yield
    sys.modules.pop("my_bots", None)


@pytest.fixture
def imported():
    plugins.import_user_modules(["my_bots.py"])


def first_answer(bot, game="kuhn_poker"):
    state = pyspiel.load_game(game).new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    return dict(bot.get_policy(state))


@pytest.mark.usefixtures("imported")
def test_loads_bots_and_policies_from_a_file():
    first = spiel_cr.load_bot("kuhn_poker", "my_bots:First", 0)
    assert first_answer(first) == {0: 1, 1: 0}
    last = spiel_cr.load_bot("kuhn_poker", "my_bots:Last", 0)
    assert first_answer(last) == {0: 0, 1: 1}
    # Parameters that look like numbers are parsed as numbers.
    wish = spiel_cr.load_bot("kuhn_poker", "my_bots:Last(wish=0)", 0)
    assert first_answer(wish) == {0: 1, 1: 0}


@pytest.mark.usefixtures("imported")
def test_loads_opponents_from_a_file():
    game = pyspiel.load_game("kuhn_poker")
    policy = load_opponent("my_bots:First", game)
    assert policy.name == "First"
    first, last = (
        read_string(text).bots_behind(game, 0)
        for text in ("my_bots:First", "my_bots:Last")
    )
    assert first is None
    assert [type(rival).__name__ for rival in last] == ["Last"] * 2
    bot = load_opponent("my_bots:Last", game)
    assert isinstance(bot, BotPolicy)
    expected = spiel_cr.nash_conv("kuhn_poker", policy)
    assert spiel_cr.nash_conv("kuhn_poker", "my_bots:First") == expected


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my_bots:Lost", "module 'my_bots' has no attribute 'Lost'"),
        ("no_bots_here:First", "'no_bots_here' was not imported; write module:name"),
        ("os:system(command=touch made)", "module 'os' was not imported; .*--import"),
        ("my_bots:system(command=touch made)", "no parameter game, player or seed"),
        ("my_bots:run(args=touch)", "no parameter game, player or seed"),
        ("my_bots:Last(speed=2)", "unknown parameter 'speed'"),
        ("my_bots:policy", "is a module; write module:name of a function"),
        ("my_bots:nothing", "made a NoneType; return a pyspiel.Bot"),
        ("my_bots:wrong_seat", "a Last for seat 0 was given for seat 1"),
        (":First", "write module:name"),
    ],
)
def test_invalid_names_of_user_players_are_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        spiel_cr.load_bot("kuhn_poker", text, 1)
    assert not os.path.exists("made")


@pytest.mark.usefixtures("imported")
def test_loads_a_policy_object():
    table = UniformRandomPolicy(pyspiel.load_game("kuhn_poker"))
    sys.modules["my_bots"].plain = table
    bot = spiel_cr.load_bot("kuhn_poker", "my_bots:plain", 0)
    assert first_answer(bot) == {0: 0.5, 1: 0.5}


def test_modules_are_imported_by_name_file_or_environment(tmp_path):
    plugins.import_user_modules(["my_bots"])
    assert sys.modules["my_bots"].First
    # The same file under its own name is the same module.
    plugins.import_user_modules([str(tmp_path / "my_bots.py")])
    assert os.environ[plugins.VARIABLE].startswith("my_bots" + os.pathsep)
    del sys.modules["my_bots"]
    plugins.import_from_environment()
    assert sys.modules["my_bots"].First


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "--import='missing.py': FileNotFoundError"),
        ("no_such_module", "No module named 'no_such_module'; use an importable"),
        ("json.py", "module 'json' already exists"),
        ("bad.py", r"bad.py': ZeroDivisionError: .*bad.py, line 2\); correct it there"),
        ("wrong.py", r"SyntaxError: .*wrong.py, line 1\); correct it there"),
        ("lost.py", r"No module named 'nowhere' \(.*lost.py, line 1\); correct it"),
        ("no_package.module", "No module named 'no_package'; use an importable"),
    ],
)
def test_failed_imports_are_rejected_with_the_reason(tmp_path, name, message):
    (tmp_path / "json.py").write_text("", encoding="utf-8")
    (tmp_path / "bad.py").write_text("\n1 / 0", encoding="utf-8")
    (tmp_path / "wrong.py").write_text("def", encoding="utf-8")
    (tmp_path / "lost.py").write_text("import nowhere", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        plugins.import_user_modules([name])
    assert os.environ[plugins.VARIABLE] == ""
    assert "bad" not in sys.modules


def test_internal_errors_during_an_import_are_not_blamed_on_it(
    tmp_path, monkeypatch, capsys
):
    """A module may call spiel_cr while it is imported, and trigger a bug there."""
    names = {"__name__": "spiel_cr.somewhere"}
    exec("def broken(text): return [][0]", names)
    monkeypatch.setattr(spiel_cr, "parse_algorithm", names["broken"], raising=False)
    text = "import spiel_cr\nspiel_cr.parse_algorithm('cfr+')"
    (tmp_path / "calls.py").write_text(text, encoding="utf-8")
    with pytest.raises(IndexError):
        plugins.import_user_modules(["calls.py"])
    with pytest.raises(SystemExit, match="1"):
        run("info", "--import", "calls.py", "--game", "kuhn_poker")
    output = capsys.readouterr().err
    assert "calls.py" in output and "a mistake in spiel_cr" in output


def test_internal_value_errors_are_not_blamed_on_an_import(tmp_path, monkeypatch):
    """Only errors that spiel_cr raises deliberately are attributed to the module."""
    names = {"__name__": "spiel_cr.somewhere", "np": np}
    code = "def mistaken(text): return np.ones(2) + np.ones(3)\n"
    code += "def refuses(text): raise ValueError(f'{text} is unknown')"
    exec(code, names)
    text = "import spiel_cr\nspiel_cr.parse_algorithm('cfr-')"
    (tmp_path / "calls.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(spiel_cr, "parse_algorithm", names["mistaken"], raising=False)
    with pytest.raises(ValueError, match="^operands could not be broadcast"):
        plugins.import_user_modules(["calls.py"])
    monkeypatch.setattr(spiel_cr, "parse_algorithm", names["refuses"], raising=False)
    message = "cfr- is unknown .*calls.py, line 2.; correct it there"
    with pytest.raises(ValueError, match=message):
        plugins.import_user_modules(["calls.py"])


def test_commands_accept_bots_from_a_file(capsys, tmp_path):
    own = ("--import", "my_bots.py", "--game", "kuhn_poker")
    bots = ("--bots", "my_bots:First;uniform", "--matches", "2", "--out", "out")
    found = report(capsys, "tournament", *bots, *own)
    assert found["bots"] == ["my_bots:First", "uniform"]
    found = report(capsys, "best-response", "--policy", "my_bots:First", *own)
    assert found["is_exact"]
    assert found["value"] == pytest.approx(
        spiel_cr.nash_conv("kuhn_poker", "my_bots:First"), abs=1e-12
    )


def test_errors_in_a_users_file_are_attributed_to_it(capsys):
    words = ("--import", "my_bots.py", "--game", "kuhn_poker")
    with pytest.raises(SystemExit, match="2"):
        run("evaluate", *words, "--bot", "my_bots:broken")
    output = capsys.readouterr().err
    assert "my_bots.py, line" in output and "which is not part of spiel_cr" in output
    assert "a mistake in spiel_cr" not in output


@pytest.mark.slow
def test_workers_import_user_modules(tmp_path):
    """A user-defined game and bot are used by a subprocess with workers."""
    words = [sys.executable, "-c", "from spiel_cr.eval.cli import entry; entry.main()"]
    words += ["compare", "--import", "my_bots.py", "--import", str(GAME)]
    words += ["--game", "my_game(size=1)", "--algorithms", "my_bots:First;uniform"]
    words += ["--iterations", "2", "--workers", "1", "--out", "out", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "out").glob("*.jsonl")
    lines = log.read_text("utf-8").splitlines()
    found = {r["algorithm"]: r["nash_conv"] for r in map(json.loads, lines)}
    expected = spiel_cr.nash_conv("kuhn_poker", "uniform")
    assert found["uniform"] == pytest.approx(expected, abs=1e-9)
    assert found["my_bots:First"] is not None


@pytest.mark.usefixtures("imported")
def test_functions_that_cannot_make_a_policy_are_rejected():
    wanted = (
        "^policy='my_bots:run' has no parameter game, player or seed, so it "
        r"cannot make a player; .* an OpenSpiel policy: "
        r"def run\(game\): return MyPolicy\(game, \[0, 1\]\)"
    )
    with pytest.raises(ValueError, match=wanted):
        spiel_cr.nash_conv("kuhn_poker", "my_bots:run")
