"""Text that users give stays on one line of a message, and can be encoded."""

import logging

import pyspiel
import pytest

from spiel_cr.common import atomic
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
def test_one_line(text, shown):
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
def test_commands_refuse_in_one_line(capsys, caplog, words):
    """Whatever the words have in them, and without a traceback."""
    with caplog.at_level(logging.ERROR):  # OpenSpiel's notice has a test of its own
        line = commands.refused(capsys, *words)
    assert line.isprintable() and "error: " in line
    line.encode()


def test_files_of_text_hold_lone_surrogates_as_escapes(tmp_path):
    atomic.write_text(tmp_path / "page.html", "a\ud800ü\n")
    assert (tmp_path / "page.html").read_text("utf-8") == "a\\ud800ü\n"
