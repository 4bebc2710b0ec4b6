"""Measurements of the benchmarks, on small games."""

import json
import sys

import numpy as np
import pytest

import spiel_cr
from benchmarks import __main__ as command
from benchmarks import deep, exploit, lookahead_players, spots
from benchmarks.games import string_of
from tests.support.benchmark_pages import run_on_page, stay_in_this_process

# Options for runs of a few seconds, of benchmarks without separate tests.
SMALL = {
    "phantom_games": "--games dark_hex(num_rows=2,num_cols=2) --seconds 0.1 "
    "--algorithms pcfr+ os-mccfr(batch=64)",
    "deep": "--games kuhn --nodes 3000 --decisions 2000 --algorithms "
    "dream(network=table,memory=exact,traversals=30,critic_steps=2) "
    "mmd(hidden=8,layers=1)",
    "exploit": "--games ii_goofspiel4 --opponents uniform cfr+ --seconds 1 0.5",
    "spots": "--spots river --peer no-such-program",
    "lookahead_players": "--games kuhn --matches 4 --move-ms 50 "
    "--bots resolving(max_histories=58,move_ms=50)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_each_benchmark_on_small_games(name, tmp_path, monkeypatch):
    stay_in_this_process(monkeypatch)
    monkeypatch.chdir(tmp_path)
    rows, text = run_on_page(command.find(name), tmp_path, SMALL[name].split())
    for row in rows:
        for table in command.find(name).tables:
            assert table.title in text
        assert 0 <= row.get("nash_conv", 0) < 3 and json.dumps(row)
        assert row.get("peak_bytes", 1) > 0


@pytest.mark.parametrize(
    ("algorithm", "unit", "count"),
    [
        (
            "dream(network=table,memory=exact,traversals=30,critic_steps=2)",
            "nodes",
            4000,
        ),
        pytest.param(
            "vr-deep-dcfr+(network=table,memory=exact,traversals=30)",
            *("episodes", 400),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "mmd(hidden=8,layers=1,episodes=8)",
            *("decisions", 2000),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_networks_run_to_their_budget(algorithm, unit, count):
    row = deep.measure("kuhn", algorithm, 1, 4000, 2000)
    assert row["unit"] == unit and count <= row["done"] < 1.5 * count
    assert all(
        point["done"] >= count / 2 ** (3 - i) for i, point in enumerate(row["curve"])
    )
    assert len(row["curve"]) == 4 and row["nash_conv"] == row["curve"][-1]["nash_conv"]


def test_lower_bounds_are_compared_with_exact_values():
    """Lower bounds above the exact value, and different exact values, are wrong."""
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
    judged = exploit._evaluated([{**common, **row} for row in rows])
    assert [row["result"] for row in judged] == ["exact", "95.0%", "105.0%", "exact"]
    assert [row["wrong"] for row in judged] == [0, 0, 1, 1]
    (line,) = exploit._summary([{**common, **row} for row in rows])
    assert (line["exact"], line["by_matches"], line["wrong"]) == (2, 3, 2)
    assert line["latest"] == 0.9 and line["expected"] == pytest.approx(0.075)
    (unknown,) = exploit._evaluated([{**common, **rows[0], "exact": None}])
    assert unknown["result"] == "≥ 2.000"


def test_determinisations_are_consistent_with_the_infoset():
    """The player's information does not change; hidden cards are drawn uniformly."""
    game = spiel_cr.load_game("kuhn_poker")
    state = game.new_initial_state()
    for action in (1, 0, 0):
        state.apply_action(action)
    assert state.current_player() == 1
    worlds = lookahead_players.Determinisations(game, 0)
    drawn = [worlds(state, 1) for _ in range(400)]
    view = state.information_state_string(1)
    assert {world.information_state_string(1) for world in drawn} == {view}
    cards = [world.history()[0] for world in drawn]
    assert set(cards) == {1, 2}
    # Five standard errors of 400 draws with probability 1/2.
    assert abs(cards.count(1) - 200) < 5 * np.sqrt(100)
    # In some games, the other player's first information state has the same string.
    first = game.new_initial_state()
    for action in (1, 0):
        first.apply_action(action)
    assert worlds(first, 0).history()[0] == 1


def test_game_names_map_to_game_strings():
    assert string_of("kuhn") == "kuhn_poker" == string_of("kuhn_poker")


def test_spots_have_columns_for_both_programs(tmp_path, monkeypatch):
    """Both get equal goals, and a missing peer program leaves its columns empty."""
    stay_in_this_process(monkeypatch)
    commands = []

    def run(command):
        commands.append(command)
        if "iterations" in command[-2]:
            return {}
        report = {"iterations": 20, "seconds": 0.5, "peak_memory_bytes": 4_000_000}
        return {**report, "process_seconds": 3.0 if "--until" in command else 1.0}

    monkeypatch.setattr(spots, "run", run)
    peer = ["--spots", "turn", "--peer", sys.executable]
    (row,), text = run_on_page(command.find("spots"), tmp_path, peer)
    assert "| 0.1 | 25 | 3 | 4 | 25 | 1 | 4 |" in text and "error" not in row
    ours, theirs = commands[1], commands[2]
    # 0.1% of 180 chips, as NashConv and as exploitability.
    assert float(ours[ours.index("--until") + 1]) == pytest.approx(0.36)
    assert float(theirs[4]) == pytest.approx(0.18)
    alone = ["--spots", "turn", "--peer", "no-such-program"]
    _, text = run_on_page(command.find("spots"), tmp_path, alone)
    assert "| 0.1 | 25 | 3 | 4 | – | – | – |" in text


def test_failing_spot_is_reported(tmp_path, monkeypatch, capsys):
    stay_in_this_process(monkeypatch)
    failing = (sys.executable, "-c", "raise SystemExit('no solver here')")
    monkeypatch.setattr(spots, "SPIEL_CR", failing)
    assert command.main(["spots", "--spots", "river", "--out", str(tmp_path)]) == 1
    assert "no solver here" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="timed out"):
        spots.run([sys.executable, "-c", "import time; time.sleep(9)"], limit=0.1)
