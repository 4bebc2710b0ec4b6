"""The programs measure what they say; on small games here."""

import argparse
import json

import numpy as np
import pytest

import spiel_cr
from benchmarks import __main__ as command
from benchmarks import (
    deep,
    devices,
    exploiting,
    frame,
    games,
    partial,
    signals,
)
from benchmarks.games import string_of
from tests.support.benchmark_pages import run_on_page, stay_in_this_process

# Small enough for seconds: every part of every benchmark that has no test of its own.
SMALL = {
    "hidden_boards": "--games dark_hex(num_rows=2,num_cols=2) --seconds 0.1 "
    "--algorithms pcfr+ os-mccfr(batch=64)",
    "deep": "--parts nodes self-play --games kuhn --nodes 3000 --decisions 2000 "
    "--algorithms dream(network=table,memory=exact,traversals=30,critic_steps=2)",
    "exploiting": "--games ii_goofspiel4 --opponents uniform cfr+ --seconds 1 0.5",
    "partial": "--games kuhn --sizes 58 --iterations 2 --seeds 2 --large kuhn "
    "--matches 4 --move-ms 50 --max-histories 58",
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


def test_bounds_are_held_against_what_is_exact():
    """Shares, and what is wrong: above the best response, or not it."""
    matches, all_ = {"is_exact": False}, {"is_exact": True}
    rows = [
        {"seats": [{"at_least": 0.5, **a}, {"at_least": b, **c}], "at_least": 0.5 + b}
        for a, b, c in (
            (all_, 1.5, all_),
            (all_, 1.4, matches),
            (matches, 1.6, matches),
        )
        + ((all_, 1.4, all_),)
    ]
    common = {"exact": [0.5, 1.5], "seconds": 10.0, "took": 9.0}
    judged = exploiting._judged([{**common, **row} for row in rows])
    assert [row["said"] for row in judged] == ["exact", "95.0%", "105.0%", "exact"]
    assert [row["wrong"] for row in judged] == [0, 0, 1, 1]
    (line,) = exploiting._summary([{**common, **row} for row in rows])
    assert (line["exact"], line["by_matches"], line["wrong"]) == (2, 3, 2)
    assert line["latest"] == 0.9 and line["expected"] == pytest.approx(0.075)
    (unknown,) = exploiting._judged([{**common, **rows[0], "exact": None}])
    assert unknown["said"] == "≥ 2.000"


def test_clocks_take_the_place_of_iterations():
    options = {"games": ["leduc"], "sizes": (9,), "settings": (), "iterations": (100,)}
    options |= {"blueprints": (10,), "seeds": 2, "clocks": (10.0, 0.5)}
    bots = [row["bot"] for row in partial._plan(argparse.Namespace(**options))]
    timed = [
        "resolving(max_histories=9,move_ms=10)",
        "resolving(max_histories=9,move_ms=0.5)",
    ]
    assert bots == [timed[0], timed[0], timed[1], timed[1]]
    options |= {"clocks": ()}
    untimed = [row["bot"] for row in partial._plan(argparse.Namespace(**options))]
    assert untimed == ["resolving(max_histories=9,iterations=100)"] * 2
    each = [
        {"late_moves": 2, "moves": 600, "max_ms": 12.4},
        {"late_moves": 1, "moves": 600, "max_ms": 9.0},
    ]
    assert partial._late({"bot": bots[0], "each": each}) == "3 of 1,200; 12 ms"
    assert partial._late({"bot": untimed[0], "each": each}) == "–"


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


def test_two_devices_have_the_same_iterates(monkeypatch):
    """Of a CPU that JAX takes for two."""
    with pytest.raises(RuntimeError, match="no device but the CPU"):
        devices.measure("kuhn:cfr+", seconds=0.1)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    row = frame.in_a_process(devices.measure, run="kuhn:cfr+/float32", seconds=0.1)
    assert row["apart"] == 0.0 and row["form"] == "tree"
    assert 0 < row["device_ms"] < 100 and 0 < row["cpu_ms"] < 100


@pytest.mark.slow
def test_networks_are_timed_without_their_compiling(monkeypatch):
    """An iteration of two matches is short, and its programs take far longer."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    run = "kuhn:mmd(hidden=8,layers=1,episodes=2)"
    row = frame.in_a_process(devices.measure, run=run, seconds=0.1)
    for name in ("cpu", "device"):
        assert 0 < row[f"{name}_ms"] < 200 * row[f"{name}_compile"]


@pytest.fixture
def endgames(tmp_path):
    """A folder as that of OpenSpiel's sources, with ranges that are drawn."""
    reaches = np.random.default_rng(0).random(2652).round(3).tolist()
    for number in (1, 4):
        path = tmp_path / f"subgame{number}.txt"
        path.write_text(" ".join(map(str, reaches)) + "\n")
    return str(tmp_path)


def test_endgames_begin_with_their_pot_and_board(endgames):
    for name, cards in (("endgame1", 8), ("endgame4", 10)):
        given = spiel_cr.load_game(games.endgame(name, endgames)).get_parameters()
        pot, board = games.ENDGAMES[name]
        assert given["blind"] == f"{pot // 2} {pot // 2}" and given["potSize"] == pot
        assert given["boardCards"] == board and len(board) == cards


@pytest.mark.slow
def test_endgames_are_solved_to_shares_of_the_pot(endgames):
    rule = "hs-dcfr(alpha=4,ramp=60,gamma=2)"
    row = signals.measure_endgame("endgame4", rule, 60, "float32", endgames)
    (iterations, seconds), percent = row["at 1.0%"], row["percent"]
    assert row["at 0.1%"] is None and 0.1 < percent < 1
    assert 0 < iterations <= row["iterations"] == 60 and seconds > 0
    part = signals.BENCHMARK.parts["endgames"]
    text = part.tables[0].markdown([{"game": "endgame4", "algorithm": rule, **row}])
    assert f"| {iterations} ({seconds:.3g} s) | – | 60 | {percent:.3f} |" in text


def test_names_of_games_are_strings():
    assert string_of("kuhn") == "kuhn_poker" == string_of("kuhn_poker")
