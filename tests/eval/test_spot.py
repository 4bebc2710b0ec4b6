"""The command `spot`: solving, and opening saved spots."""

import csv

import pytest

from spiel_cr.eval.cli import spot
from spiel_cr.policies import best_responses
from spiel_cr.solvers.cfr import solver
from tests.support.commands import outputs, rejection
from tests.support.strategies import random_spot_policy

RANGES = "[50]AhAd[/50],QhQd;KhKd:0.25,7h7d"
SPOT = ["spot", "--pot", "20", "--ranges", RANGES, "--iterations", "5"]
TURN = [*SPOT, "--board", "5c9cJc2c", "--bets", "none; river pot; cap 1"]
WRITE = "--write-ranges", "ranges.txt"
RIVER = [*SPOT, "--board", "5c9cJc2c3d", "--stack", "30"]


def test_saved_spot_is_opened_without_solving(capsys, tmp_path, monkeypatch):
    saved, picture, table = (tmp_path / n for n in ("a.npz", "a.png", "a.csv"))
    node = "--node", "check check"
    stacks = "--stack", "30,50"
    solved, out, _ = outputs(capsys, *TURN, *stacks, "--save", saved, *node)
    assert "stacks      30 of 50 chips are played: the smaller stack" in out
    assert solved["stacks"] == [30, 50] and "stack=30" in solved["game"]

    def run(*_, **__):
        raise AssertionError("an iteration of a saved spot")

    monkeypatch.setattr(solver.Solver, "run", run)
    files = "--report", "river", "--csv", table, "--plot", picture
    opened, out, _ = outputs(capsys, "spot", "--open", saved, *node, *files)
    assert f"NashConv    {solved['nash_conv']:.3e}  (stored)" in out
    for name in ("game", "algorithm", "iterations", "nash_conv", "node", "actions"):
        assert opened[name] == solved[name]
    for name in ("ev", "equity", "frequencies"):
        assert opened[name] == pytest.approx(solved[name], abs=1e-12)
    assert len(opened["hands"]) == len(solved["hands"])
    with open(table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(opened["runouts"]) == 48 and picture.stat().st_size
    mean = sum(float(row["probability"]) * float(row["ev"]) for row in rows)
    assert mean == pytest.approx(opened["ev"], abs=1e-9)

    text = tmp_path / "ranges.txt"
    on_board = "--board", "5c9cJc2cAs", "--write-ranges", text, "--notation", "gto+"
    hands, _, _ = outputs(capsys, "spot", "--open", saved, *node, *on_board)
    assert {row["board"] for row in hands["hands"]} == {"5c9cJc2cAs"}
    first, second = text.read_text("utf-8").splitlines()
    # Without bets on the turn, both ranges are those of the start.
    assert (first, second) == ("QhQd,[50]AhAd[/50]", "7h7d,[25]KhKd[/25]")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["spot", "--pot", "20"], "--board is missing; describe the spot with --board"),
        ([*SPOT, "--board", "5c9cJc2c3d"], "--stack is missing"),
        ([*RIVER, "--report", "river"], "report='river': no river is dealt before"),
        (
            [*TURN, "--stack", "30", "--node", "check check", *WRITE],
            "--board with all 5 cards",
        ),
    ],
)
def test_spot_rejects_missing_or_invalid_options(capsys, words, said):
    assert said in rejection(capsys, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pot", "20"], "--pot=20 has no effect on a saved spot; leave --pot out"),
        (["--iterations", "20"], "--iterations=20 has no effect on a saved spot"),
        (["--node", "check fold"], "the action 'fold' does not exist"),
        (["--plot", "a.png"], "needs --report turn or river, because"),
        (["--wall-clock", "5"], "--wall-clock=5.0 has no effect on a saved spot"),
        (
            ["--board", "5c9cJc2c3d", "--report", "river"],
            "a report is about all boards",
        ),
    ],
)
def test_open_rejects_options_without_effect(capsys, tmp_path, words, said):
    saved = tmp_path / "a.npz"
    outputs(capsys, *RIVER, "--save", saved)
    assert said in rejection(capsys, "spot", "--open", saved, *words)


def test_rake_is_kept_in_output_page_and_file(capsys, tmp_path):
    saved, page = tmp_path / "rake.npz", tmp_path / "rake.html"
    solved, out, _ = outputs(capsys, *RIVER, "--rake", "5%,3", "--save", saved)
    assert "not zero-sum" in out and "value_bounds" not in solved
    assert sum(solved["regrets"]) == pytest.approx(solved["nash_conv"], abs=1e-9)
    assert -3 <= sum(solved["values"]) < 0  # The rake.
    opened, _, _ = outputs(capsys, "spot", "--open", saved, "--html", page)
    assert opened["regrets"] == solved["regrets"]
    assert opened["ev"] == pytest.approx(solved["values"][0], abs=1e-9)
    text = page.read_text("utf-8")
    assert "rake 5% 3" in text and "a best response would gain" in text


def test_page_without_rake_does_not_mention_rake(capsys, tmp_path):
    page = tmp_path / "page.html"
    outputs(capsys, *RIVER, "--html", page)
    assert "rake" not in page.read_text("utf-8").partition("<script")[0]


def test_last_evaluation_with_locks_is_not_repeated(capsys, monkeypatch):
    evaluated, value = [], best_responses._value
    monkeypatch.setattr(
        best_responses, "_value", lambda *a: evaluated.append(a) or value(*a)
    )
    expected, means = [], best_responses._expected_by_position
    monkeypatch.setattr(
        best_responses,
        "_expected_by_position",
        lambda *a: expected.append(a) or means(*a),
    )
    lock = "--lock", '{"check": [0.5, 0.25, 0.25]}'
    found, _, _ = outputs(
        capsys, *RIVER, "--bets", "50%,allin", *lock, "--until", "1e-9"
    )
    assert len(evaluated) == 4 * len(found["curve"]) and len(expected) == 1
    last = found["curve"][-1]["nash_conv_with_locks"]
    assert found["nash_conv_with_locks"] == last < found["nash_conv"]


def test_last_evaluation_of_a_run_is_not_repeated(capsys, monkeypatch):
    evaluated = []
    value = best_responses._value
    monkeypatch.setattr(
        best_responses, "_value", lambda *a: evaluated.append(a) or value(*a)
    )
    found, _, _ = outputs(capsys, *RIVER, "--until", "1e-9")
    # Each player's best response once, after the last iteration.
    assert len(evaluated) == 2 * len(found["curve"])
    assert found["nash_conv"] == found["curve"][-1]["nash_conv"]
    monkeypatch.undo()
    again, _, _ = outputs(capsys, *RIVER)
    assert again["nash_conv"] == pytest.approx(found["nash_conv"], rel=1e-9)
    assert again["value_bounds"] == pytest.approx(found["value_bounds"], rel=1e-9)


def test_page_of_an_unevaluated_policy_has_unknown_nash_conv():
    policy = random_spot_policy("5c9cJc2c3d", "pot; cap 1", "AA;KK")
    assert "NashConv unknown" in spot._lead(policy, {"nash_conv": None})
