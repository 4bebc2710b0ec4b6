"""The benchmark of rivers runs both solvers on one game, and they agree."""

import numpy as np
import pytest

import spiel_cr
from benchmarks import frame
from benchmarks.signals import rivers
from tests.support.benchmark_pages import run_on_page


def test_facts_of_games():
    """All hands of the deck without its five public cards, in both orders."""
    assert rivers.size(13, "fcpa")["hands"] == 1081
    assert rivers.size(13, "fcpa")["deals"] == 1081 * 990
    game = spiel_cr.load_game(rivers.river(4, "fc"))
    state = game.new_initial_state()
    assert len(state.legal_actions()) == 11
    ways = np.prod([11, 10, 9, 8]) / 4  # Each hand's cards come in two orders.
    assert rivers.size(4, "fc")["deals"] == ways


@pytest.mark.slow
def test_both_solvers_play_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    command = ["--ranks", "4", "--bets", "fcpa", "--seconds", "30"]
    rows, page = run_on_page(rivers.BENCHMARK, tmp_path, command)
    theirs, ours = rows
    assert theirs["solver"] == rivers.OPENSPIEL and ours["solver"] == rivers.SIGNALS
    assert theirs["iterations"] > 0 and theirs["peak_bytes"] > 0
    assert ours["compared"] == theirs["iterations"] < ours["iterations"]
    assert ours["signals"] == 55 and ours["decisions"] == 12
    assert theirs["nash_conv"] > 1
    assert abs(ours["compared_nash_conv"] - theirs["nash_conv"]) < 1e-9
    assert f"| {theirs['iterations']} |" in str(page)


@pytest.mark.slow
def test_what_takes_too_long_is_ended():
    row = rivers.run_openspiel(rivers.river(13, "fcpa"), 1.0)
    assert row["iterations"] == 0 and row["nash_conv"] is None
