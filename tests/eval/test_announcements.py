"""Commands announce each phase on stderr, and stdout does not change."""

import contextlib
import json
import re
import subprocess
import sys

import pytest

import spiel_cr
from spiel_cr.eval.cli import main
from tests.support import commands

LINE = re.compile(r"\[ *[0-9]+\.[0-9] s\] (.*)")
GAME = ("--game", "kuhn_poker")
# Options of commands, and the phases that they announce, in order.
PHASES = {
    "info": ((), ["estimating the number of histories of kuhn_poker()"]),
    "solve": (
        ("--iterations", "30"),
        [
            "choosing an algorithm",
            r"algorithm \S+: NashConv .* iterations",
            "evaluating",
        ],
    ),
    "resolve": (("--iterations", "2"), ["evaluating"]),
    "evaluate": (
        ("--bot", "resolving(iterations=2)"),
        [
            "making the bot of seat 0",
            "player 0: warming up layer 1 of 2",
            "player 0: warming up layer 2 of 2",
            "player 0: solving the start",
            "making the bot of seat 1",
            "player 1: warming up layer 1 of 1",
            "evaluating",
        ],
    ),
    "best-response": (
        ("--policy", "uniform"),
        [
            "opening kuhn_poker",
            "taking the policy uniform",
            "exact response of player 0",
            "exact response of player 1",
        ],
    ),
    "exploit": (
        ("--policy", "uniform", "--minutes", "0.01", "--methods", "table"),
        ["taking the policy uniform", r"table, player 0: \d.\d s"],
    ),
    "subgame": (
        ("--actions", "0,1,0,1", "--iterations", "2", "--trunk-iterations", "2"),
        ["cutting the game into subgames", "evaluating"],
    ),
    "show": (
        ("--policy", "policy.npz", "--html", "page.html"),
        [
            "loading the policy policy.npz",
            "values of all information states",
            "making the page page.html",
        ],
    ),
    "tournament": (
        ("--bots", "resolving(iterations=2);uniform", "--matches", "2", "--out", "t"),
        ["player 0: warming up layer 1 of 2", "player 1: warming up layer 1 of 1"],
    ),
    "compare": (
        ("--algorithms", "cfr+", "--iterations", "2", "--workers", "0", "--out", "c"),
        ["cfr+ on kuhn_poker, seed 0"],
    ),
    "abstract": (
        ("--game", "python_leduc_poker", "--budget", "2-4", "--iterations", "2"),
        [
            "clustering private states",
            "solving the game of buckets",
            "evaluating in the full game",
        ],
    ),
    "push-fold": (
        (
            *("--stacks", "1200/900", "--prizes", "1", "--blinds", "300/600"),
            *("--boards", "2", "--cache", "k", "--rounds", "1", "--steps", "2"),
            "--unrestricted-opponent",
        ),
        [
            "looking for the table of all-in hands",
            "solving the tournament",
            "bounding the value against an unrestricted opponent",
        ],
    ),
}


def run(capsys, command, words):
    """Run a command in this process; return its stdout and its announcements."""
    given = () if "--game" in words or command == "push-fold" else GAME
    commands.run(command, *given, *words)
    out, err = capsys.readouterr()
    return out, LINE.findall(err)


@pytest.mark.parametrize("command", PHASES)
def test_commands_announce_their_phases(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, wanted = PHASES[command]
    if command == "show":
        spiel_cr.solve("kuhn_poker", goal=2).save("policy.npz")
    out, said = run(capsys, command, (*words, "--json"))
    places = [
        next(i for i, line in enumerate(said) if re.fullmatch(_pattern(text), line))
        for text in wanted
    ]
    assert places == sorted(places), said
    assert out and not LINE.search(out)
    json.loads(out.splitlines()[-1])


def _pattern(text):
    return text if "\\" in text else re.escape(text)


@pytest.mark.parametrize("command", ["info", "show"])
def test_announcements_do_not_change_stdout(command, tmp_path, monkeypatch, capsys):
    """`info` and `show` print no times, so their outputs can be compared."""
    monkeypatch.chdir(tmp_path)
    spiel_cr.solve("kuhn_poker", goal=2).save("policy.npz")
    words = ("--policy", "policy.npz", "--json") if command == "show" else ("--json",)
    out, said = run(capsys, command, words)
    monkeypatch.setattr(main, "_announcing", contextlib.nullcontext)
    assert run(capsys, command, words) == (out, [])
    assert out and said


def test_first_announcement_precedes_slow_imports():
    """Importing JAX and OpenSpiel takes seconds; here the import fails."""
    code = """
        import sys
        sys.modules["spiel_cr.eval.cli.main"] = None
        sys.argv = ["spiel-cr", *sys.argv[1:]]
        from spiel_cr.eval.cli import entry
        try:
            entry.main()
        except ImportError:
            print("imported", sorted({"jax", "pyspiel", "numpy"} & set(sys.modules)))
    """
    code = "\n".join(line[8:] for line in code.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", code, "info", *GAME],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "imported []\n"
    assert LINE.findall(done.stderr) == ["importing JAX and OpenSpiel"]
