"""Sessions with stacks: payments, ends of sessions, and tables."""

import csv
import json
import math

import numpy as np
import pyspiel
import pytest

from spiel_cr.common import json_log, statistics
from spiel_cr.eval.tournaments import sessions, tournament
from spiel_cr.eval.tournaments.round_robin import RoundRobinConfig
from spiel_cr.eval.tournaments.sessions import SessionConfig
from tests.support.commands import outputs

LEDUC = "leduc_poker"
BOTS = ("uniform", "honest(rollouts=2)", "uniform()")
CONFIG = SessionConfig(stack=8, rounds=6)
TABLES = (
    "win_share",
    "win_share_half_width",
    "chips",
    "chips_half_width",
    "sessions",
    "hands",
)


def play(out, *, bots=BOTS, count=6, config=CONFIG, game=LEDUC, **options):
    conditions = RoundRobinConfig(**options)
    return sessions.play_sessions(game, bots, count, config, out, conditions)


def lines(out):
    text = (out / "sessions.jsonl").read_text("utf-8")
    return [json_log.unsealed(line) for line in text.splitlines()]


def without_clock(out):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines(out)]


def test_stacks_follow_from_the_capped_results_of_hands(tmp_path):
    """Each hand is replayed with OpenSpiel; the seats alternate between hands."""
    found = play(tmp_path, count=20)
    game = pyspiel.load_game(LEDUC)
    ends, capped = set(), 0
    for line in lines(tmp_path):
        stacks = [8.0, 8.0]
        for hand, actions in enumerate(line["hands"]):
            assert min(stacks) > 0
            state = game.new_initial_state()
            for action in actions:
                state.apply_action(action)
            # Player 0 of the session sits in seat 0, in seat 1, in seat 0 ...
            won = state.returns()[hand % 2]
            assert line["returns"][hand] == won
            paid = math.copysign(min(abs(won), *stacks), won)
            assert line["paid"][hand] == paid
            capped += paid != won
            stacks = [stacks[0] + paid, stacks[1] - paid]
        assert line["stacks"] == stacks
        assert sum(stacks) == 16
        broke = min(stacks) == 0
        assert broke or len(line["hands"]) == 6
        ends.add((broke, len(line["hands"]) == 6))
    # Both kinds of end occurred, and some results were capped by a stack.
    assert {(True, False), (False, True)} <= ends and capped
    assert found.sessions[0][1] == 20


def test_both_sessions_of_a_deal_have_the_same_cards(tmp_path):
    play(tmp_path, bots=["uniform", "uniform()"], count=8)
    by_deal = {}
    for line in lines(tmp_path):
        by_deal.setdefault(line["deal"], []).append(line)
    for one, other in by_deal.values():
        assert one["players"] == other["players"][::-1]
        for mine, yours in zip(one["hands"], other["hands"], strict=False):
            assert mine[:2] == yours[:2]
    cards = {tuple(line["hands"][0][:2]) for line in lines(tmp_path)}
    assert len(cards) > 2
    # The hands of a session have different cards.
    longest = max((line["hands"] for line in lines(tmp_path)), key=len)
    assert len({tuple(hand[:2]) for hand in longest}) > 1


def rewrite(out, results):
    """Replace the results of a finished run by (chips, hands) of the first bot."""
    made = lines(out)
    for line in made:
        chips, hands = results[line["deal"]][line["swapped"]]
        own = -chips if line["swapped"] else chips
        line["stacks"] = [8.0 + own, 8.0 - own]
        line["paid"] = [own / hands] * hands
        line["returns"], line["hands"] = line["paid"], [[0, 1, 1, 1]] * hands
    text = "".join(json.dumps(json_log.sealed(line)) + "\n" for line in made)
    (out / "sessions.jsonl").write_text(text)


def test_session_tables_equal_a_calculation_by_hand(tmp_path):
    """Deals of (win, draw), (loss, loss), (win, win): points 0.75, 0, 1."""
    bots = ["uniform", "uniform()"]
    play(tmp_path, bots=bots)
    given = [((4, 2), (0, 6)), ((-8, 1), (-2, 6)), ((8, 3), (1, 6))]
    rewrite(tmp_path, given)
    found = play(tmp_path, bots=bots)
    assert found.win_share[0][1] == pytest.approx(1.75 / 3)
    assert found.win_share[1][0] == pytest.approx(1.25 / 3)
    # Student's t with two degrees of freedom, see test_tournament.
    t = 2 * 0.475 / math.sqrt(2 * 0.975 * 0.025)
    error = np.std([0.75, 0, 1], ddof=1) / math.sqrt(3)
    assert found.win_share_half_width[0][1] == pytest.approx(t * error)
    assert found.chips[0][1] == pytest.approx(3 / 24)
    # Chips 4, -10, 9 in 8, 7, 9 hands: residuals of the ratio, per 8 hands.
    left = np.array([4 - 1, -10 - 7 / 8, 9 - 9 / 8]) / 8
    error = np.std(left, ddof=1) / math.sqrt(3)
    assert found.chips_half_width[1][0] == pytest.approx(t * error)
    assert (found.wins[0][1], found.draws[0][1], found.wins[1][0]) == (3, 1, 2)
    assert found.hands[0][1] == 24
    (row,) = csv.DictReader((tmp_path / "sessions.csv").open())
    assert float(row["chips"]) == found.chips[0][1]
    assert (row["row"], row["hands"], row["draws"]) == ("uniform", "24", "1")


def test_ratio_interval_equals_mean_interval_for_equal_hand_counts():
    chips, hands = [1.0, -2.0, 4.0, 0.5], [10.0] * 4
    ratio, half = statistics.ratio_and_half_width(chips, hands)
    mean, expected = statistics.mean_and_half_width(np.array(chips) / 10)
    assert (ratio, half) == (pytest.approx(mean), pytest.approx(expected))
    assert statistics.ratio_and_half_width([3.0], [2.0]) == (1.5, None)


def test_resumed_sessions_equal_an_uninterrupted_run(tmp_path):
    straight = play(tmp_path / "straight")
    out = tmp_path / "stopped"
    play(out, count=2)
    log = out / "sessions.jsonl"
    # The line of the last session is incomplete.
    log.write_bytes(log.read_bytes()[:-40])
    resumed = play(out)
    for name in TABLES:
        assert getattr(resumed, name) == getattr(straight, name)
    key = ["deal", "row", "column", "swapped"]
    by_key = [
        sorted(without_clock(folder), key=lambda line: [line[k] for k in key])
        for folder in (out, tmp_path / "straight")
    ]
    for line in (*by_key[0], *by_key[1]):
        line.pop("crc", None)
    assert by_key[0] == by_key[1]


def test_rejects_a_folder_of_another_kind_of_tournament(tmp_path):
    play(tmp_path / "s", bots=BOTS[:2], count=2)
    with pytest.raises(ValueError, match="session={'stack': 8, 'rounds': 6}, not None"):
        tournament.play_tournament(LEDUC, BOTS[:2], 2, tmp_path / "s")
    with pytest.raises(ValueError, match="not {'stack': 9, 'rounds': 6}"):
        play(tmp_path / "s", bots=BOTS[:2], config=SessionConfig(9, 6))
    tournament.play_tournament(LEDUC, BOTS[:2], 2, tmp_path / "m")
    with pytest.raises(ValueError, match="holds a tournament with session=None, not"):
        play(tmp_path / "m", bots=BOTS[:2], count=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "stack and rounds must be given"),
        ("stack=80", "session='stack=80': rounds must be given"),
        ("80,10", "session='80,10': cannot be parsed"),
        ("stack=80,rounds=10)", "cannot be parsed; write, for instance, stack=80"),
        ("stack=80,rounds=1.5", "rounds=1.5 must be a whole number"),
        ("stack=80,rounds=0", "rounds=0 must be a whole number"),
        ("stack=0,rounds=3", "stack=0.0 must be"),
        ("stack=inf,rounds=3", "stack=inf must be"),
        ("stack=80,rounds=10,ante=1", "unknown parameter 'ante'"),
    ],
)
def test_rejects_invalid_session_settings(text, words):
    with pytest.raises(ValueError, match=words):
        sessions.read_session(text)


@pytest.mark.parametrize("game", ["liars_dice", "tic_tac_toe"])
def test_rejects_games_without_chips(tmp_path, game):
    with pytest.raises(ValueError, match="session: utilities are chips only in poker"):
        play(tmp_path, game=game, bots=["uniform", "uniform"])
    assert not list(tmp_path.iterdir())


def test_tournament_command_plays_sessions(tmp_path, capsys):
    words = ["tournament", "--game", "kuhn_poker", "--bots", "uniform;honest"]
    words += ["--out", tmp_path, "--matches", "4", "--styles"]
    report, out, _ = outputs(capsys, *words, "--session", "stack=3,rounds=4")
    assert report["sessions"] == [[0, 4], [4, 0]]
    assert [style["bot"] for style in report["styles"]] == ["uniform", "honest"]
    assert "4 sessions per pair, of at most 4 hands, with stacks of 3" in out
    assert "chips that it wins per hand" in out
    assert "honest: " in out and "street 0" in out
    names = {path.name for path in tmp_path.iterdir()}
    assert {"sessions.jsonl", "sessions.csv", "summary.json", "styles.csv"} <= names
