"""The programs measure what they say; on small games here."""

import json

import numpy as np
import pytest

import spiel_cr
from benchmarks import __main__ as command
from benchmarks import best_response, deep, large, partial, signals
from benchmarks.games import string_of
from tests.support.benchmark_pages import run_on_page, stay_in_this_process

# Small enough for seconds: every part of every benchmark that has no test of its own.
SMALL = {
    "resolving": "--games kuhn --iterations 20 10 --sizes rps5 "
    "--solvers cfr+ --move-ms 20",
    "large": "--games rps5 kuhn --seconds 0.05 --dtypes float64",
    "first_order": "--games kuhn --algorithms pdhg cfr+ --seconds 1 --parts curves",
    "players": "--games kuhn --repeats 1 --moves 10 --matches 2 --move-ms 20",
    "leaves": "--games leduc --parts ranges --iterations 5 10 --inner 5 "
    "--leaves none exact uniform",
    "signals": "--parts size rivers --decks 2x2 --ranks 4 --bets fcpa "
    "--river-seconds 20",
    "abstraction": "--games python_leduc_poker(num_ranks=3) --budgets 2-4 --until 0.2 "
    "--looks 2 4 --methods win-probability gameshrink",
    "deep": "--parts nodes self-play --games kuhn --nodes 3000 --decisions 2000 "
    "--algorithms dream(network=table,memory=exact,traversals=30,critic_steps=2)",
    "partial": "--games kuhn --sizes 58 --iterations 2 --seeds 2 --large kuhn "
    "--matches 4 --move-ms 50 --max-histories 58",
    "best_response": "--games kuhn --scale 0.05 --seeds 1 --parts states speed",
    "uncompiled": "--games kuhn --algorithms os-mccfr(batch=64) --seconds 0.5 "
    "--matches 40 --response-matches 4 --simulations 20 --response-seconds 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_all_parts_on_small_games(name, tmp_path, monkeypatch):
    stay_in_this_process(monkeypatch)
    monkeypatch.chdir(tmp_path)
    options = SMALL[name].split()
    rows, text = run_on_page(command.find(name), tmp_path, options)
    parts = command.find(name).parts
    if "--parts" not in options and name != "partial":
        assert {row["part"] for row in rows} == set(parts)
    for row in rows:
        for table in parts[row["part"]].tables:
            assert table.title in text
        assert 0 <= row.get("nash_conv", 0) < 3 and json.dumps(row)
        assert row.get("peak_bytes", 1) >= row.get("start_bytes", 0)


def test_rates_are_rates():
    tree = spiel_cr.compile_game("kuhn_poker")
    states = best_response.decisions(tree, 3)
    assert all(state.current_player() == 0 for state in states)
    for bot, count in (
        (best_response.cpp_bot(20, 0), 20),
        (best_response.python_bot(tree.game, 5, 0), 5),
    ):
        assert 10 < best_response.rate(bot, states, count) < 1e8


def test_nash_conv_is_that_of_the_budget():
    row = large.measure_solve("kuhn", "cfr+", "float64", 0.05)
    again = spiel_cr.solve("kuhn_poker", "cfr+", row["iterations"])
    assert row["nash_conv"] == pytest.approx(again.nash_conv(), abs=1e-12)


@pytest.mark.parametrize(("what", "most"), [("nodes", 4000), ("episodes", 1000)])
def test_deep_runs_end_before_their_budget(what, most):
    text = deep.with_exact(
        "dream(network=table,memory=exact,traversals=30,critic_steps=2)"
    )
    row = deep.measure("kuhn", text, 1, what, most)
    assert most * 0.8 < row[what] <= most and len(row["curve"]) > 1
    assert row["bank"] == pytest.approx(row["exact"])


def test_the_exact_average_is_kept_besides_others():
    assert deep.with_exact("sd-cfr") == "sd-cfr(averaging=bank+exact)"
    text = deep.with_exact("deep-cfr(hidden=8,averaging=exact)")
    assert text == "deep-cfr(hidden=8,averaging=exact)"


def test_worlds_are_what_the_player_may_think_possible():
    """Its own information is that of the state; hidden cards are drawn alike."""
    game = spiel_cr.load_game("kuhn_poker")
    state = game.new_initial_state()
    for action in (1, 0, 0):
        state.apply_action(action)
    assert state.current_player() == 1
    worlds = partial.Worlds(game, 0)
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


@pytest.mark.slow
def test_both_solvers_of_a_river_play_the_same():
    row = signals.measure_river(4, "fcpa", 30.0)
    ours, theirs = row["ours"], row["theirs"]
    assert row["hands"] == ours["signals"] == 55
    assert 0 < theirs["iterations"] < ours["iterations"]
    assert abs(ours["compared_nash_conv"] - theirs["nash_conv"]) < 1e-9


@pytest.mark.slow
def test_a_river_that_takes_too_long_is_ended():
    row = signals.run_openspiel(signals.river(13, "fcpa"), 1.0)
    assert row["iterations"] == 0 and row["nash_conv"] is None


def test_names_of_games_are_strings():
    assert string_of("kuhn") == "kuhn_poker" == string_of("kuhn_poker")
