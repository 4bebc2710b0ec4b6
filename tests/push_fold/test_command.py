"""The command `push-fold`: report, page in a browser, resuming after Ctrl-C."""

import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from spiel_cr.common import storage
from spiel_cr.eval.reporting import push_charts
from tests.support import browser
from tests.support.commands import rejection, report

# The same options in all tests, so that functions are compiled only once.
WORDS = (
    "--stacks=2400/2400 --prizes=1 --blinds=300/600 --boards=16 --rounds=3 --steps=200"
).split()


def run(capsys, *words):
    """Run the command; return its JSON report."""
    return report(capsys, "push-fold", *words)


@pytest.mark.slow
def test_unrestricted_opponent_report_has_stacks_and_gaps(capsys, tmp_path):
    """The report has lower bounds and gaps of all stacks in chips."""
    words = [*WORDS, f"--cache={tmp_path}"]
    found = run(capsys, *words, "--unrestricted-opponent")
    least = found["unrestricted_opponent"]
    assert least["stacks"] == list(range(300, 4800, 300))
    lower, gap = np.array(least["lower"]), np.array(least["gap_points"])
    np.testing.assert_allclose(gap, 100 * (1 - lower[::-1, ::-1] - lower))
    assert least["largest_gap_points"] == gap.max() > 0.02
    # An opponent that may raise and fold later does not win less.
    assert lower[7, 0] < found["values"][0] + 0.005
    assert "unrestricted_opponent" not in run(capsys, *words)
    words = ("--stacks=900/900/900", "--prizes=1", "--blinds=300/600")
    words += ("--unrestricted-opponent", f"--cache={tmp_path}")
    assert "two stacks" in rejection(capsys, "push-fold", *words)


# Waits for a signal after the first checkpoint.
WAITING = """
import signal
# Processes in the background may ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
from spiel_cr.common import storage
from spiel_cr.eval.cli import entry
save = storage.save
def save_and_wait(*words, **more):
    save(*words, **more)
    signal.pause()
storage.save = save_and_wait
entry.main()
"""


def test_interrupted_run_resumes_bitwise_identically(capsys, tmp_path):
    """The solution equals that of a run without an interruption."""
    words = [*WORDS, f"--cache={tmp_path / 'k'}"]

    cut, whole = tmp_path / "cut", tmp_path / "whole"
    run(capsys, *words, f"--out={whole}")
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "push-fold", *words, f"--out={cut}"],
        stdout=subprocess.DEVNULL,
    )
    while not (cut / "state.npz").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130
    assert storage.load(cut / "state.npz")[1]["number"] == 1
    run(capsys, *words, f"--out={cut}")
    mine, theirs = (storage.load(f / "solution.npz")[0] for f in (cut, whole))
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], strict=True, err_msg=name)


def page(folder: pathlib.Path, players: int) -> pathlib.Path:
    """Write a page of charts in which later classes of hands are jammed more often."""
    names = ("button", "small blind", "big blind")[3 - players :]
    each = [1000.0 * (p + 1) for p in range(players)]
    keys = (
        "stacks",
        "chip_model",
        "values",
        "regrets_percent",
        "worst_regrets_percent",
    )
    text = push_charts.push_page(
        "Push or fold: 4500/4500/4500 chips, blinds 300/600",
        {
            **dict.fromkeys(keys, each),
            "jams": {name: (np.arange(169) / 168).tolist() for name in names},
        },
    )
    path = folder / "charts.html"
    path.write_text(text, "utf-8")
    return path


@browser.needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_charts_fit_the_browser_window(tmp_path, width):
    """All 13 columns are visible without scrolling, and no name of a hand is cut."""
    with browser.LiveBrowser(tmp_path, width=width) as live:
        live.open(page(tmp_path, 3).as_uri())
        assert not live.console
        assert live.value("document.documentElement.scrollWidth") == width
        boxes = "[...document.querySelectorAll('.scroll')]"
        assert live.value(f"{boxes}.map(b => b.scrollWidth - b.clientWidth)") == [0]
        charts = live.value(
            "[...document.querySelectorAll('table.push')].map(t => ["
            "t.rows.length, t.getBoundingClientRect().left,"
            "t.getBoundingClientRect().right,"
            "Math.max(...[...t.querySelectorAll('td')].map("
            "d => d.scrollWidth - d.clientWidth)),"
            "...[0, 168].map(i => getComputedStyle(t.querySelectorAll('td')[i]).color)"
            "])"
        )
        assert len(charts) == 3
        for rows, left, right, cut, seldom, always in charts:
            assert rows == 13 and left >= 8 and right <= width - 8 and cut <= 0
            # Letters on the darkest cells are light.
            assert always == "rgb(255, 255, 255)" != seldom
