"""The benchmark of players in growing games measures what it says; on Kuhn poker."""

import json

import numpy as np
import pytest

import spiel_cr
from benchmarks import growing


def here(measure, *arguments):
    return measure(*arguments)


@pytest.mark.slow
def test_smoke(tmp_path, capsys):
    lines, page = tmp_path / "out.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{growing.MARKS.begin}\nold\n{growing.MARKS.end}\nafter\n")
    command = ["--games", "kuhn_poker", "--matches", "4", "--move-ms", "100"]
    command += ["--max-histories", "58", "--out", str(lines), "--markdown", str(page)]
    assert growing.main(command, run=here) == 0
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["opponent"] for row in rows] == list(growing.OPPONENTS)
    for row in rows:
        assert row["matches"] == 4 and row["illegal_moves"] == 0
        assert -2 <= row["mean"] <= 2 and row["interval"] >= 0
        assert row["moves"] >= 4 and row["most_histories"] <= 58
        assert row["peak_bytes"] >= row["start_bytes"] > 0
    assert rows[0]["simulations"] > 0 and rows[1]["simulations"] is None
    text = page.read_text()
    assert text.startswith(f"before\n{growing.MARKS.begin}\n") and "old" not in text
    assert text.endswith(f"{growing.MARKS.end}\nafter\n")
    assert growing.markdown(rows) == capsys.readouterr().out[:-1]


def test_worlds_are_what_the_player_may_think_possible():
    """Its own information is that of the state; hidden cards are drawn alike."""
    game = spiel_cr.load_game("kuhn_poker")
    state = game.new_initial_state()
    for action in (1, 0, 0):
        state.apply_action(action)
    assert state.current_player() == 1
    worlds = growing.Worlds(game, 0)
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
