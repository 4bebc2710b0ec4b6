"""Approximate NashConv: both seats together, matches, and the command line."""

import json
import math
import sys

import numpy as np
import pytest

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from eval import approximate, cli
from spiel_cr import opponents
from spiel_cr.search_config import SearchConfig


def _run(monkeypatch, capsys, *arguments):
    """The JSON of a command."""
    monkeypatch.setattr(sys, "argv", ["spiel-cr", *arguments, "--json"])
    options = cli._parse(sys.argv)
    cli._run(options)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("policy", ["uniform", "cfr+(iterations=3)"])
def test_exact_responses_have_share_one(policy):
    tree = spiel_cr.compile_game("kuhn_poker")
    behaviour = approximate.opponent_behaviour(tree, policy)
    seats = [
        approximate.on_tree(tree, p, behaviour, "exact", SearchConfig(), matches=4000)
        for p in (0, 1)
    ]
    report = approximate.summary(seats)
    assert report["share"] == pytest.approx(1)
    # OpenSpiel's NashConv of uniform play.
    if policy == "uniform":
        assert report["value"] == pytest.approx(0.916667, abs=1e-6)
    for seat in seats:
        # Five standard errors: a false alarm in two million.
        assert abs(seat.matches_value - seat.value) < 5 * seat.half_width / 1.96
        assert 0 < seat.half_width < 0.1
    both = math.hypot(*(seat.half_width for seat in seats))
    assert report["half_width"] == pytest.approx(both)


def test_share_is_of_the_gain():
    tree = spiel_cr.compile_game("leduc_poker")
    behaviour = approximate.opponent_behaviour(tree, "cfr+(iterations=10)")
    seats = [
        approximate.on_tree(tree, p, behaviour, "lbr", SearchConfig(), leaf="call")
        for p in (0, 1)
    ]
    report = approximate.summary(seats)
    # The gains of both seats add up to NashConv; published: 1.22088.
    assert report["exact_value"] == pytest.approx(1.22088, abs=1e-5)
    assert sum(seat.on_policy for seat in seats) == pytest.approx(0, abs=1e-9)
    assert report["share"] == pytest.approx(report["value"] / report["exact_value"])
    assert 0 < report["share"] < 1
    one = approximate.summary(seats[:1])
    gain = seats[0].value - seats[0].on_policy
    assert one["share"] == pytest.approx(
        gain / (seats[0].exact_value - seats[0].on_policy)
    )


def test_on_states_agrees_with_the_tree():
    game = spiel_cr.load_game("kuhn_poker")
    tree = spiel_cr.compile_game(game)
    behaviour = approximate.opponent_behaviour(tree, "uniform")
    opponent = opponents.load_opponent("uniform", game)
    exact = approximate.on_tree(tree, 0, behaviour, "exact", SearchConfig())
    seat = approximate.on_states(
        game, 0, opponent, "ismcts", SearchConfig(300), matches=400, seed=1
    )
    assert abs(seat.value - exact.value) < 5 * seat.half_width / 1.96
    assert seat.exact_value is None
    assert seat.simulations >= 300
    assert approximate.summary([seat])["share"] is None


def test_bad_arguments_are_named():
    tree = spiel_cr.compile_game("kuhn_poker")
    behaviour = approximate.opponent_behaviour(tree, "uniform")
    with pytest.raises(ValueError, match="method='best'"):
        approximate.on_tree(tree, 0, behaviour, "best", SearchConfig())
    with pytest.raises(ValueError, match="matches=1"):
        approximate.on_tree(tree, 0, behaviour, "exact", SearchConfig(), matches=1)
    opponent = opponents.load_opponent("uniform", "kuhn_poker")
    with pytest.raises(ValueError, match="whole tree"):
        approximate.on_states(tree.game, 0, opponent, "exact", SearchConfig())


def test_command_reports_all_keys(monkeypatch, capsys):
    report = _run(
        monkeypatch, capsys, "best-response", "--game", "kuhn_poker",
        "--policy", "uniform", "--simulations", "2000", "--matches", "100",
    )  # fmt: skip
    for key in (
        "value",
        "exact_value",
        "share",
        "half_width",
        "simulations",
        "seconds",
    ):
        assert isinstance(report[key], float | int), key
    assert report["exact_value"] == pytest.approx(0.916667, abs=1e-6)
    assert report["share"] == pytest.approx(1, abs=0.01)
    assert report["compiled"] is True


def test_command_searches_on_states(monkeypatch, capsys):
    report = _run(
        monkeypatch, capsys, "best-response", "--game", "kuhn_poker", "--states",
        "--policy", "always_fold", "--simulations", "50", "--matches", "20",
        "--player", "1",
    )  # fmt: skip
    # Who always folds or passes loses its ante to one who bets.
    assert report["value"] == pytest.approx(1)
    assert report["exact_value"] is None and report["share"] is None
    assert report["compiled"] is False


def test_command_refuses_unknown_policies(monkeypatch, capsys):
    with pytest.raises(SystemExit) as stop:
        _run(
            monkeypatch, capsys, "best-response", "--game", "kuhn_poker",
            "--policy", "nobody",
        )  # fmt: skip
    assert stop.value.code == 2
    assert "opponent='nobody'" in capsys.readouterr().err


def test_matches_on_the_tree_follow_the_odds():
    tree = spiel_cr.compile_game("kuhn_poker")
    behaviour = approximate.opponent_behaviour(tree, "uniform")
    returns = approximate._play_on_tree(
        tree, behaviour, 60_000, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(returns[0], -returns[1])
    # Uniform play is worth 1/8 to the first player; standard error 0.006.
    assert returns[0].mean() == pytest.approx(0.125, abs=0.03)
