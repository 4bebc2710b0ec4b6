"""The benchmark of players of partial trees measures what it says; on Kuhn poker."""

import argparse
import json

import numpy as np
import pyspiel
import pytest

import spiel_cr
from benchmarks import frame
from benchmarks.partial import matches, opponents
from spiel_cr.partial.match import PartialStatistics
from spiel_cr.resolving import clock
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_smoke(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    command = ["--games", "kuhn_poker", "--matches", "4", "--move-ms", "100"]
    command += ["--players", "resolving", "oos", "--iterations", "2"]
    command += ["--max-histories", "58"]
    rows, _ = run_on_page(matches.BENCHMARK, tmp_path, command)
    assert [row["opponent"] for row in rows] == 2 * list(matches.OPPONENTS)
    assert [row["player"] for row in rows] == 2 * ["resolving"] + 2 * ["oos"]
    assert [row["iterations"] for row in rows] == [None, None, 2, 2]
    assert rows[0]["late_moves"] is not None and rows[2]["late_moves"] is None
    for row in rows:
        assert row["matches"] == 4 and row["illegal_moves"] == 0
        assert -2 <= row["mean"] <= 2 and row["interval"] >= 0
        assert row["moves"] >= 4 and row["most_histories"] <= 58
        assert row["peak_bytes"] >= row["start_bytes"] > 0
    assert rows[0]["simulations"] > 0 and rows[1]["simulations"] is None
    assert matches.markdown(rows) == capsys.readouterr().out[:-1]


def test_worlds_are_what_the_player_may_think_possible():
    """Its own information is that of the state; hidden cards are drawn alike."""
    game = spiel_cr.load_game("kuhn_poker")
    state = game.new_initial_state()
    for action in (1, 0, 0):
        state.apply_action(action)
    assert state.current_player() == 1
    worlds = opponents.Worlds(game, 0)
    drawn = [worlds(state, 1) for _ in range(400)]
    view = state.information_state_string(1)
    assert {world.information_state_string(1) for world in drawn} == {view}
    cards = [world.history()[0] for world in drawn]
    assert set(cards) == {1, 2}
    # Five standard errors of 400 draws of one in two.
    assert abs(cards.count(1) - 200) < 5 * np.sqrt(100)
    # The other player's first view reads the same in some games.
    first = game.new_initial_state()
    for action in (1, 0):
        first.apply_action(action)
    assert worlds(first, 0).history()[0] == 1


class Failing(pyspiel.Bot):
    """Gives a policy that may be played, or not, or none."""

    def __init__(self, policy=None):
        pyspiel.Bot.__init__(self)
        self._policy = policy
        self.statistics, self.counts = clock.Statistics(), PartialStatistics()

    def provides_policy(self):
        return True

    def restart(self):
        pass

    def inform_action(self, state, player, action):
        pass

    def get_policy(self, state):
        if self._policy is None:
            raise ValueError("a fault of its own")
        return self._policy


def measure(monkeypatch, mine, other, **changed):
    monkeypatch.setattr(matches, "_player", lambda *_: mine)
    monkeypatch.setattr(opponents, "simulations_of", lambda *_: None)
    monkeypatch.setattr(opponents, "pair", lambda *_: (other, other))
    given = {"matches": 8, "seed": 0, "max_histories": 9, "move_ms": 9.0}
    given |= {"init_ms": None, "leaf": "", "settings": [], "iterations": 1}
    given |= {"record": None, "seconds": None, "simulations": None}
    opponent = changed.pop("opponent", "uniform")
    options = argparse.Namespace(**given | changed)
    return matches.measure("kuhn_poker", "resolving", opponent, options)


def test_only_illegal_moves_of_the_player_count_as_that(monkeypatch):
    legal, cheat = [(1, 1.0)], [(7, 1.0)]
    assert measure(monkeypatch, Failing(legal), Failing(legal))["illegal_moves"] == 0
    for mine, other, words in (
        (Failing(), Failing(legal), "a fault"),
        (Failing(legal), Failing(), "a fault"),
        (Failing(legal), Failing(cheat), "illegal action 7"),
        (Failing(cheat), Failing(legal), "8 of 8 matches"),
    ):
        with pytest.raises(ValueError, match=words):
            measure(monkeypatch, mine, other)


class Cheating(Failing):
    """Makes an illegal move in some matches."""

    def __init__(self, numbers):
        super().__init__([(1, 1.0)])
        self._numbers, self._match = numbers, -1

    def restart(self):
        self._match += 1

    def get_policy(self, state):
        return [(7, 1.0)] if self._match in self._numbers else self._policy


def test_illegal_moves_lose_the_most_there_is(monkeypatch, tmp_path):
    """Matches that they ended count, and pairs are of the same two matches as ever."""
    legal, rows, returns = Failing([(1, 1.0)]), [], []
    for name, mine in (("legal", legal), ("cheating", Cheating({2, 3, 5}))):
        path = tmp_path / name
        rows.append(measure(monkeypatch, mine, legal, record=path))
        lines = path.read_text().splitlines()
        returns.append([json.loads(line)["return"] for line in lines])
    expected = np.array(returns[0])
    expected[[2, 3, 5]] = -2  # the most that can be lost in Kuhn poker
    assert returns[1] == expected.tolist() and returns[1] != returns[0]
    pairs = expected.reshape(-1, 2).mean(axis=1)
    assert rows[1]["matches"] == 8 and rows[1]["illegal_moves"] == 3
    assert rows[1]["mean"] == pytest.approx(pairs.mean())
    wide = 3.182 * np.std(pairs, ddof=1) / 2
    assert rows[1]["interval"] == pytest.approx(wide, rel=1e-3)
    assert rows[1]["by_seat"] == [expected[::2].mean(), expected[1::2].mean()]
    assert rows[1]["won"] == (expected > 0).mean()


def test_records_of_other_conditions_are_refused(monkeypatch, tmp_path):
    """What is on record must be of this program, and of an opponent as strong."""
    legal, record = Failing([(1, 1.0)]), tmp_path / "matches.jsonl"
    given = {"record": record, "opponent": "ismcts", "simulations": 3}
    assert measure(monkeypatch, legal, legal, **given)["simulations"] == 3
    # None is asked for: as many as before.
    again = measure(monkeypatch, legal, legal, **given | {"simulations": None})
    assert again["simulations"] == 3
    # As of a player without a clock, whose string does not name the milliseconds.
    monkeypatch.setattr(matches, "_string", lambda *_: "the same")
    line = json.loads(record.read_text().splitlines()[0]) | {"bot": "the same"}
    record.write_text(json.dumps(line) + "\n")
    for changed, words in (
        ({"simulations": 4}, "simulations=3, and these would be with 4; give another"),
        ({"move_ms": 8.0}, "its_move_ms=9.0, and these"),
    ):
        with pytest.raises(ValueError, match=words):
            measure(monkeypatch, legal, legal, **given | changed)
    for name, other in (("source", "another"), ("versions", {"jax": "0"})):
        changed = {key: value for key, value in line.items() if key != name}
        for old in (changed, changed | {name: other}):
            record.write_text(json.dumps(old) + "\n")
            with pytest.raises(ValueError, match=f"matches with {name}="):
                measure(monkeypatch, legal, legal, **given)


def test_matches_on_record_are_not_played_again(monkeypatch, tmp_path):
    """Two matches, one in each seat, are one observation."""
    legal, record = Failing([(1, 1.0)]), tmp_path / "matches.jsonl"
    row = measure(monkeypatch, legal, legal, record=record)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(8))
    assert [line["seat"] for line in lines] == 4 * [0, 1]
    returns = [line["return"] for line in lines]
    pairs = np.reshape(returns, (-1, 2)).mean(axis=1)
    assert row["mean"] == np.mean(pairs) and row["moves"] >= 8
    # Twice the standard error of pairs, or more: Student's t with three degrees.
    assert row["interval"] == pytest.approx(3.182 * np.std(pairs, ddof=1) / 2, rel=1e-3)
    cheat = Failing([(7, 1.0)])
    again = measure(monkeypatch, cheat, legal, record=record)
    assert again["mean"] == row["mean"] and again["illegal_moves"] == 0
    more = measure(monkeypatch, legal, legal, record=record, matches=10)
    assert more["matches"] == 10 and len(record.read_text().splitlines()) == 10


def test_what_an_opponent_draws_depends_on_the_match_alone():
    """So a record that goes on has the matches of one run."""
    game = spiel_cr.load_game("kuhn_poker")

    def moves(number):
        bot, _ = opponents.pair(game, 3, 0, number)
        state = game.new_initial_state()
        for action in (1, 0):
            state.apply_action(action)
        return [bot.step(state.clone()) for _ in range(12)]

    first = moves(4)
    assert moves(4) == first and moves(5) != first
    # Seeds of the bots in C++ are 32 bits with a sign.
    assert all(len(opponents.pair(game, None, 0, number)) == 2 for number in range(12))
