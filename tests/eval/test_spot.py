"""The command `spot`: it says what `solve` says, and what each hand does."""

import csv

import numpy as np
import pyspiel
import pytest

import spiel_cr
from tests.support.commands import refused, report, told

RIVER = ("--board", "5c9dJs2h3c", "--pot", 1000, "--stack", 1500)
BETS = ("--bets", "pot,allin")
# Few hands, so that little is to be done.
SMALL = ("--board", "5c9dJs2h3c", "--pot", 20, "--stack", 30, "--iterations", 20)
RANGES = ("--ranges", "AhAd,7h7d:0.5;QQ,AcKc")


@pytest.mark.slow
def test_value_of_the_other_solver(capsys):
    """-37.77 is what a program says that shares no code with this one."""
    words = (*RIVER, *BETS, "--ranges", "random;random", "--until", 0.5)
    found, out, _ = told(capsys, "spot", *words)
    low, high = found["value_bounds"]
    assert low < -37.77 < high and high - low <= 0.5
    assert found["nash_conv"] == pytest.approx(high - low)
    assert found["form"] == "public-tree" and found["curve"]
    assert found["ev"] == pytest.approx(found["game_value"], abs=1e-6)
    assert found["equity"] == pytest.approx(0.5)  # both have all hands
    assert found["actions"] == ["check", "bet-1000", "allin-1500"]
    assert len(found["hands"]) == 1081
    hands = {row["hand"]: row for row in found["hands"]}
    # Three jacks lose to the straights of A4 and 64 alone, 32 hands of 990.
    assert hands["JdJc"]["equity"] == pytest.approx(1 - 32 / 990)
    assert "after the deal: player 0, 1,081 hands, EV -37." in out
    assert "\ncheck\n    A   K   Q   J" in out


def test_node_as_a_table_and_from_a_file(capsys, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    policy, node = tmp_path / "spot.npz", ("--node", "check bet-10")
    words = (*SMALL, *RANGES, "--bets", "50%,allin", *node)
    found = report(capsys, "spot", *words, "--csv", first, "--save", policy)
    assert (found["node"], found["player"]) == (["check", "bet-10"], 0)
    with first.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("hand", "board", "combos", "weight", "equity", "ev"),
        *("fold", "call", "allin-30"),
        *("ev fold", "ev call", "ev allin-30"),
    ]
    for row, hand in zip(rows, found["hands"], strict=True):
        assert row["hand"] == hand["hand"]
        for key in ("weight", "equity", "ev"):
            assert float(row[key]) == hand[key]
        played = [float(row[name]) for name in found["actions"]]
        assert played == hand["probabilities"]
        assert sum(played) == pytest.approx(1)
        worth = [float(row[f"ev {name}"]) for name in found["actions"]]
        assert np.dot(played, worth) == pytest.approx(float(row["ev"]), abs=1e-6)
    weights = {row["hand"]: float(row["weight"]) for row in rows}
    assert weights["AhAd"] <= 1 and weights["7h7d"] <= 0.5
    game = ("--game", found["game"], "--policy", policy)
    shown = report(capsys, "show", *game, *node, "--csv", second)
    assert shown["hands"] == found["hands"]
    assert second.read_text("utf-8") == first.read_text("utf-8")
    grid = report(capsys, "show", *game, *node)
    assert grid["hands"][0].keys() == {"hand", "board", "probabilities"}
    bots = [
        spiel_cr.load_bot(found["game"], f"policy(path={policy})", player, seed=1)
        for player in range(2)
    ]
    state = spiel_cr.load_game(found["game"]).new_initial_state()
    returns = pyspiel.evaluate_bots(state, bots, 3)
    assert sum(returns) == 0 and state.is_terminal()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--board", "5c9d"), "board='5c9d' has 2 cards; use 3 different"),
        (("--pot", 0), "pot=0 must be a whole number from 1"),
        (("--ranges", "QQ;AKx"), "ranges: 'AKx' is neither a hand"),
        (("--bets", "50%,3x"), "bets: '3x' is a multiple of a bet"),
        (("--first", "button"), "--first"),
        (
            ("--node", "check raise-7"),
            "the action 'raise-7' does not exist; choose among",
        ),
        (("--csv", "/"), "--csv"),
        (("--algorithm", "sd-cfr"), "public-tree"),
    ],
)
def test_refusals_before_any_work(capsys, words, said):
    assert said in refused(capsys, "spot", *SMALL, *words)
