"""The benchmark of games that are never compiled: all parts on a small game."""

import pathlib

import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from benchmarks.uncompiled import BENCHMARK, matches
from tests.support.benchmark_pages import run_on_page

ALGORITHM = "os-mccfr(batch=64)"


@pytest.mark.slow
def test_all_parts_on_a_small_game(tmp_path):
    command = ["--games", "leduc_poker", "--seconds", "0.5", "--matches", "100"]
    command += ["--response-matches", "4", "--simulations", "20"]
    command += ["--response-seconds", "1"]
    command += ["--algorithms", ALGORITHM, "--policies", str(tmp_path / "policies")]
    rows, text = run_on_page(BENCHMARK, tmp_path, command)
    ours, play, response, peer = rows
    parts = ["ours", "play", "response", "peer"]
    assert [row["part"] for row in rows] == parts
    assert pathlib.Path(ours["policy"]).is_file() and 400 < ours["infosets"] <= 936
    for opponent in ("itself", "uniform"):
        assert 0.5 < play[f"our_{opponent}_met"] <= 1
        assert 0.3 < play[f"our_{opponent}_informed"] <= 1
        assert 0.3 < peer[f"peer_{opponent}_informed"] <= 1
    assert play["our_uniform_mean"] > 0 and peer["stopped"] == "time"
    assert response["response_0"] + response["response_1"] > -5
    assert response["root_0_mean"] + response["root_1_mean"] > 1
    assert -5 < peer["matches"][ALGORITHM]["mean"] < 5
    solved, played = text.partition("Matches")[::2]
    (line,) = (line for line in solved.splitlines() if ALGORITHM in line)
    assert "–" not in line and f"| {ours['infosets']} |" in line
    assert f"{play['our_uniform_met']:.1%}" in played


def test_what_a_policy_knew_is_counted():
    """Kuhn poker: every decision has two actions."""
    game = spiel_cr.load_game("kuhn_poker")
    uniform = openspiel_policy.UniformRandomPolicy(game)
    row = matches.facts_of("x", game, uniform, 20, 0)
    assert row["x_itself_informed"] == row["x_uniform_informed"] == 0
    assert "x_itself_met" not in row and abs(row["x_itself_mean"]) < 2
    first = openspiel_policy.FirstActionPolicy(game)
    watched = matches.Watched(game, first)
    played = matches.between(game, watched, uniform, 40, 0)
    assert watched.informed == watched.decisions > 40
    # Who never bets loses its ante to bets: -1 at worst in each match.
    assert -1 <= played.mean < 0 and played.half_width > 0
