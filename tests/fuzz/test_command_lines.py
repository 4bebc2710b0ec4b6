"""Random command lines: invalid ones are errors of one helpful line."""

import collections
import pathlib
import subprocess
import sys
import time

import pytest

from tests.fuzz import command_lines, in_process, values
from tests.fuzz.__main__ import run
from tests.fuzz.in_process import Outcome

SCRIPT = pathlib.Path(sys.executable).parent / "spiel-cr"
# Lines that are rejected before any solving, and a few commands that work.
_CHEAP = range(40)
_PROCESSES = range(5000, 5024)


def test_every_option_has_valid_and_invalid_values():
    assert len(values.options()) == 21
    for command, own in values.options().items():
        for flag, option in own.items():
            assert option.values.good, (command, flag)
            assert values.bad_of(command, flag), (command, flag)


def test_seed_determines_the_command_line():
    lines = [command_lines.make_line(seed) for seed in range(60)]
    assert lines == [command_lines.make_line(seed) for seed in range(60)]
    assert len({tuple(line.words) for line in lines}) > 55
    assert 35 < sum(bool(line.spoiled) for line in lines) < 60


_BAD = values.Bad("x", ("--seed", "seed"), ("x",))
_GOOD = "spiel-cr: error: seed='x' is no number; write one"


@pytest.mark.parametrize(
    ("code", "out", "err", "complaint"),
    [
        (2, "", _GOOD, ""),
        (0, "", "", "exit 0 on nonsense"),
        (1, "", _GOOD, "exit 1, not 2"),
        (2, "", "seed='x'; write", "no message"),
        (2, "", f"{_GOOD}\nmore", "the message has 2 lines"),
        (2, "much work", _GOOD, "something on stdout"),
        (2, "", _GOOD.replace("seed=", ""), "the argument is not named"),
        (2, "", _GOOD.replace("'x'", "it"), "the value is not shown"),
        (2, "", _GOOD.partition(";")[0], "no remedy"),
        (2, "", f"{_GOOD}; see spiel-cr solve --help", ""),
        (2, "", f"{_GOOD.partition(';')[0]}; see spiel-cr solve --help", "no remedy"),
        (2, "", f"{_GOOD.partition(';')[0]}; it takes exactly one of 2", "no remedy"),
        (2, "", f"{_GOOD} CHECK_TRUE", "words of a library"),
        (2, "", f"Traceback (most recent call last)\n{_GOOD}", "a traceback"),
    ],
)
def test_checker_reports_bad_outcomes(code, out, err, complaint):
    line = command_lines.Line(0, ["solve"], (_BAD,))
    outcome = Outcome(code, out, err, "", 0.0)
    found = command_lines.complaints(line, outcome)
    assert bool(found) == bool(complaint)
    assert any(text.startswith(complaint) for text in found) or not complaint


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("gamma=x must be a number", ""),
        ("gamma must be no 'x'", ""),
        ("gamma must be a number", "the value is not shown"),
        ("it must be a number", "the argument is not named"),
        ("digamma=x must be a number", "the argument is not named"),
    ],
)
def test_checker_requires_the_parameters_name_and_value(said, complaint):
    """The quoted algorithm contains both; the rest of the message must name them."""
    given = "cfr+(gamma=x)"
    every = values.bad_of("solve", "--algorithm")
    bad = next(bad for bad in every if bad.value == given)
    err = f"spiel-cr: error: algorithm={given!r}: {said}"
    found = command_lines.complaints(
        command_lines.Line(0, ["solve"], (bad,)), Outcome(2, "", err, "", 0.0)
    )
    assert bool(found) == bool(complaint)
    assert any(text.startswith(complaint) for text in found) or not complaint


@pytest.mark.parametrize("waits", [False, True])
def test_hanging_commands_are_detected_by_cpu_time(waits, tmp_path, monkeypatch):
    """A command that waits for the processor may be silent for longer."""

    def work(_):
        time.sleep(1.5 * waits)
        begun = time.process_time()
        while not waits and time.process_time() - begun < 3:
            pass

    monkeypatch.setattr(in_process, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(in_process.main, "_run", work)
    outcome = in_process.run(["info", "--game", "kuhn_poker"], tmp_path)
    assert ("HangsError" in outcome.error) != waits
    assert outcome.code == (0 if waits else None)


@pytest.mark.parametrize("seed", _CHEAP)
def test_random_command_lines(seed):
    assert not command_lines.judge(command_lines.cheap_line(seed))["faults"]


@pytest.mark.slow
def test_many_random_command_lines(tmp_path):
    rows = run("command_lines", 0, 2100, tmp_path / "lines")
    assert not [fault for row in rows for fault in row["faults"]]
    commands = collections.Counter(row["outcome"].split()[0] for row in rows)
    assert min(commands[name] for name in values.options()) > 30
    assert sum(row["poker"] for row in rows) > 300


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPT.exists(), reason="not installed")
@pytest.mark.parametrize("seed", _PROCESSES)
def test_random_command_lines_as_processes(tmp_path, seed):
    line = command_lines.make_line(seed)
    # Arguments of a process cannot contain NUL.
    words = [word.replace("\0", "\udcff") for word in line.words]
    command_lines.prepare(tmp_path)
    done = subprocess.run(
        [SCRIPT, *words],
        cwd=tmp_path,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=in_process.MAX_SECONDS,
    )
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    shown = [
        bad._replace(
            shown=(*bad.shown, *(s.replace("\0", "\udcff") for s in bad.shown))
        )
        for bad in line.spoiled
    ]
    line = line._replace(words=words, spoiled=tuple(shown))
    outcome = Outcome(done.returncode, out, err, "", 0.0)
    assert not command_lines.complaints(line, outcome), str(line)
