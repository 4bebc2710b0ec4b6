"""Messages: user text stays on one line, numbers are rounded, and silence."""

import logging
import math

import pyspiel
import pytest

from spiel_cr.common import atomic, messages
from spiel_cr.common.messages import one_line
from tests.support import commands


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kuhn_poker(players=2)", "kuhn_poker(players=2)"),
        ("Zürich ♠", "Zürich ♠"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("a\x00\x1b[31m", r"a\x00\x1b[31m"),
        ("\u2028\x85\u202e", r"\u2028\x85\u202e"),
        ("\ud800\udcff", r"\ud800\udcff"),
        (ValueError("a\nb"), r"a\nb"),
        (pyspiel.load_game("markov_soccer", {"grid": "A.\n.B"}), r"A.\n.B"),
    ],
)
def test_text_is_escaped_to_one_line(text, shown):
    found = one_line(text)
    assert shown in found and found.isprintable()
    found.encode()


GRID = "markov_soccer(grid=.....\n..OB.\n.AO..\n.....)"


@pytest.mark.parametrize(
    "words",
    [
        ("info", "--game", GRID),
        ("info", "--game", "kuhn_poker(\n=1)"),
        ("info", "--game", "kuhn_poker", "\n--nonsense"),
        ("solve", "--game", "kuhn_poker", "--algorithm", "a\nb"),
        ("solve", "--game", "kuhn_poker", "--lock", "a\nb.json"),
        ("show", "--game", "kuhn_poker", "--policy", "a\x1bb\n.npz"),
        ("play", "--game", "kuhn_poker", "--bots", "uni\nform;\x1b"),
        ("info", "--game", "kuhn\udcff_poker"),
        ("solve", "--game", "kuhn_poker", "--lock", '{"\\ud800\\n": [1]}'),
        ("evaluate", "--game", "kuhn_poker", "--bot", "\ud800"),
    ],
)
def test_command_errors_are_one_line(capsys, caplog, words):
    """Arguments with control characters cause no traceback."""
    with caplog.at_level(logging.ERROR):  # another test covers OpenSpiel's notice
        line = commands.rejection(capsys, *words)
    assert line.isprintable() and "error: " in line
    line.encode()


def test_text_files_escape_lone_surrogates(tmp_path):
    atomic.write_text(tmp_path / "page.html", "a\ud800ü\n")
    assert (tmp_path / "page.html").read_text("utf-8") == "a\\ud800ü\n"


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        (2.8e-16, ".6g", "0"),
        (-1e-13, "+.3f", "+0.000"),
        # Values that round to zero have no negative sign.
        (-0.0004, "+.3f", "+0.000"),
        (-0.0, ".4g", "0"),
        (-0.0006, "+.3f", "-0.001"),
        (2e-12, ".4g", "2e-12"),
        (math.nan, ".3f", "nan"),
        (-math.inf, ".3f", "-inf"),
    ],
)
def test_rounding_errors_are_shown_as_zero(value, spec, shown):
    assert messages.number_text(value, spec) == shown


def test_threshold_of_rounding_errors_is_an_argument():
    assert messages.number_text(1e-9, ".4g", 1e-8) == "0"
    assert messages.number_text(1e-9, ".4g", 1e-10) == "1e-09"


def test_silent_suppresses_announcements(capsys):
    with messages.listening():
        with messages.silent():
            messages.announce("no")
        messages.announce("yes")
    err = capsys.readouterr().err
    assert "yes" in err and "no\n" not in err
