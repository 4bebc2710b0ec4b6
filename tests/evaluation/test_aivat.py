"""AIVAT: estimates are unbiased for any values, with low variance for good ones."""

import json

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation import aivat
from spiel_cr.evaluation.aivat import RolloutValues, TreeValues, baseline
from spiel_cr.evaluation.referee import Match
from spiel_cr.games.histories import TERMINAL
from spiel_cr.policies.array_queries import rules_for
from spiel_cr.policies.conversions import (
    history_values,
    move_probabilities,
    tabular_policy,
    uniform_behaviour,
)
from spiel_cr.policies.queries import query
from tests.support.commands import outputs, rejection, report
from tests.support.games import compiled


def random_behaviours(tree, seed):
    rng = np.random.default_rng(seed)
    found = []
    for infosets in tree.infosets:
        owner = infosets.decisions.owner[1:]
        weights = rng.random(len(owner)) + 0.05
        found.append(np.append(1, weights / np.bincount(owner, weights)[owner]))
    return found


def all_matches(tree, behaviours, known):
    """Return every possible match with its probability."""

    def walk(history, chance, actions, odds):
        player = tree.histories.player[history]
        if player == TERMINAL:
            utility = float(tree.histories.utility[history])
            yield chance, Match(actions, (utility, -utility), ((), ()), odds)
            return
        below = np.arange(*np.searchsorted(ordered, (history, history + 1)))
        below = order[below]
        actions_below = tree.histories.action[below].tolist()
        taken = dict(zip(actions_below, step[below - 1].tolist(), strict=True))
        probabilities = taken if player not in (0, 1) or known[player] else None
        for child, (action, share) in zip(below, taken.items(), strict=True):
            yield from walk(
                child, chance * share, (*actions, action), (*odds, probabilities)
            )

    step = move_probabilities(tree, behaviours)
    order = np.argsort(tree.histories.parent, kind="stable")
    ordered = tree.histories.parent[order]
    return list(walk(0, 1.0, (), ()))


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("game", ["kuhn", "leduc7"])
def test_estimates_are_unbiased_for_any_values(game, known):
    tree = compiled(game)
    behaviours = random_behaviours(tree, 1)
    values = np.random.default_rng(2).normal(scale=10, size=len(tree.histories))
    chances, matches = zip(*all_matches(tree, behaviours, known), strict=True)
    estimates = [TreeValues(tree, values).estimate(match) for match in matches]
    exact = history_values(tree, behaviours)
    assert np.dot(chances, estimates) == pytest.approx(exact[0], abs=1e-12)
    best = [TreeValues(tree, exact).estimate(match) for match in matches]
    assert np.dot(chances, best) == pytest.approx(exact[0], abs=1e-12)
    # If both policies are known, no variance remains; otherwise part of it does.
    variance = np.dot(chances, np.square(best - exact[0]))
    plain = np.dot(chances, [(m.returns[0] - exact[0]) ** 2 for m in matches])
    assert (variance < 1e-12) == all(known) and variance < 0.9 * plain


def all_matches_by_arrays(tree, behaviours, values):
    """Return probabilities, returns and luck of all matches; both players are known."""
    histories = tree.histories
    step, parent = move_probabilities(tree, behaviours), histories.parent[1:]
    mean = np.bincount(parent, step * values[1:], minlength=len(histories))
    reach, luck = np.ones(len(histories)), np.zeros(len(histories))
    for here in histories.by_depth[1:]:
        above = histories.parent[here]
        reach[here] = reach[above] * step[here.start - 1 : here.stop - 1]
        luck[here] = luck[above] + mean[above] - values[here]
    leaves = np.flatnonzero(histories.player == TERMINAL)
    return reach[leaves], histories.utility[leaves], luck[leaves]


def test_deviation_and_coverage_on_leduc():
    tree = compiled("leduc")
    solved = [spiel_cr.solve(tree, "cfr+", n).average for n in (300, 30)]
    behaviours = solved[0][0], solved[1][1]
    values = baseline(tree, "cfr+(iterations=100)")._values
    chances, plain, luck = all_matches_by_arrays(tree, behaviours, values)
    exact = history_values(tree, behaviours)[0]
    assert chances @ (plain + luck) == pytest.approx(exact, abs=1e-12)
    deviation = [np.sqrt(chances @ (x - exact) ** 2) for x in (plain + luck, plain)]
    assert deviation[0] < 0.3 * deviation[1]
    # 8 000 replays of 100 matches: 0.95 has a standard error of 0.0024.
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(chances), (8000, 100), p=chances / chances.sum())
    intervals = [mean_and_half_width(row) for row in (plain + luck)[drawn]]
    covered = np.mean([abs(mean - exact) <= half for mean, half in intervals])
    assert 0.94 <= covered <= 0.96


def test_aivat_reduces_variance_and_keeps_the_mean():
    tree = compiled("leduc")
    players = ["solved(iterations=30)", "uniform"]
    plain = spiel_cr.play_matches(tree, players, 200, seed=3)
    found = spiel_cr.play_matches(
        tree, players, 200, seed=3, aivat="cfr+(iterations=30)"
    )
    assert found.half_width < 0.75 * plain.half_width
    assert abs(found.mean - plain.mean) < 2 * plain.half_width
    same = spiel_cr.play_matches(tree, ["uniform"] * 2, 20, aivat="uniform")
    value = history_values(tree)[0]
    assert same.returns == pytest.approx(np.tile([value, -value], (10, 1)), abs=1e-12)


def test_estimate_of_a_played_match_equals_that_from_arrays():
    tree = compiled("leduc")
    policy = spiel_cr.solve(tree, "cfr", 5).average_policy()
    behaviours = query(tree, policy)
    values = np.random.default_rng(5).normal(size=len(tree.histories))
    _, plain, luck = all_matches_by_arrays(tree, behaviours, values)
    match = spiel_cr.evaluation.matches.play_match(
        tree,
        [spiel_cr.players.bots.PolicyBot(seat, policy, seed=seat) for seat in range(2)],
        np.random.default_rng(6),
    )
    leaves = np.flatnonzero(tree.histories.player == TERMINAL)
    paths = [tree.histories.actions_to(int(leaf)) for leaf in leaves]
    place = paths.index(list(match.actions))
    wanted = plain[place] + luck[place]
    found = TreeValues(tree, values).estimate(match)
    assert found == pytest.approx(wanted, abs=1e-12)


def test_tournament_reports_results_with_and_without_luck(capsys, tmp_path):
    words = ["tournament", "--game", "leduc_poker", "--out", tmp_path / "out"]
    words += ["--bots", "solved(iterations=30);solved(iterations=100)"]
    aivat = ["--aivat", "cfr+(iterations=50)"]
    first = report(capsys, *words, *aivat, "--matches", 40)
    found, out, _ = outputs(capsys, *words, *aivat, "--matches", 60)
    assert first["matches"][0][1] == 40 and found["matches"][0][1] == 60
    assert found["half_width"][0][1] < 0.4 * found["plain_half_width"][0][1]
    lines = (tmp_path / "out" / "matches.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    lucky = np.mean([record["returns"][record["swapped"]] for record in records])
    half, lucky_half = (found[key][0][1] for key in ("half_width", "plain_half_width"))
    for title, mean, width in (
        (
            "without luck (AIVAT, values of cfr+(iterations=50)):",
            found["mean"][0][1],
            half,
        ),
        ("as played, with luck:", lucky, lucky_half),
    ):
        row = out.partition(f"{title}\n")[2].splitlines()[1]
        assert row.split("-", 1)[1].split() == f"{mean:+.4f} ± {width:.4f}".split()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert "plain_half_width" in summary and "plain_mean" not in summary
    for other in ([], ["--aivat", "uniform"]):
        message = rejection(capsys, *words, "--matches", 60, *other)
        assert "holds a tournament with aivat=cfr+(iterations=50), not" in message


def test_sessions_report_chips_with_and_without_luck(capsys, tmp_path):
    words = ["tournament", "--game", "leduc_poker", "--out", tmp_path / "out"]
    words += ["--bots", "solved(iterations=30);solved(iterations=100)"]
    words += ["--session", "stack=20,rounds=4", "--aivat", "cfr+(iterations=50)"]
    found, out, _ = outputs(capsys, *words, "--matches", 60)
    half, lucky_half = (
        found[f"{name}chips_half_width"][0][1] for name in ("", "plain_")
    )
    assert half < 0.4 * lucky_half
    lines = (tmp_path / "out" / "sessions.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    hands = sum(len(record["hands"]) for record in records)
    for name, key in (("chips", "aivat"), ("plain_chips", "paid")):
        won = sum((-1 if r["swapped"] else 1) * sum(r[key]) for r in records)
        assert found[name][0][1] == pytest.approx(won / hands)
        assert f"{found[name][0][1]:+.4f}" in out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["plain_chips"] == found["plain_chips"]
    message = rejection(capsys, *words[:-2], "--matches", 60)
    assert "holds a tournament with aivat=cfr+(iterations=50), not None" in message


def test_values_are_clipped_at_the_stack_like_payments():
    """Luck is computed from values that are clipped at the stack, as payments are."""
    tree = compiled("leduc13")
    values = baseline(tree, "uniform")
    chances, matches = zip(
        *all_matches(tree, [uniform(tree, p) for p in range(2)], (True, True)),
        strict=True,
    )
    paid = np.clip([match.returns[0] for match in matches], -3, 3)
    cut, whole = (
        np.array([values.luck(match, most) for match in matches]) for most in (3, 13)
    )
    mean = np.dot(chances, paid)
    variances = [
        np.dot(chances, (paid - luck - mean) ** 2) for luck in (cut, whole, 0 * cut)
    ]
    assert np.dot(chances, cut) == pytest.approx(0, abs=1e-12)
    assert variances[0] < 0.3 * min(variances[1:])


def uniform(tree, player):
    return uniform_behaviour(tree.infosets[player].decisions)


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        *(
            pytest.param(f"python_leduc_poker{ranks}", marks=pytest.mark.slow)
            for ranks in ("", "(num_ranks=2)")
        ),
    ],
)
def test_rollouts_are_unbiased(game, monkeypatch):
    """Rollouts use OpenSpiel states or batched rules, and are bitwise reproducible."""
    monkeypatch.setattr(aivat, "_ON_ARRAYS", 60)
    tree = spiel_cr.build_tree(game)
    behaviours = random_behaviours(tree, 1)
    policy = tabular_policy(tree, behaviours)
    values = RolloutValues(tree.game, policy)
    assert (game != "kuhn_poker") == (rules_for(tree.game, policy) is not None)
    chances, matches = zip(*all_matches(tree, behaviours, (True, True)), strict=True)
    estimates = [values.estimate(match) for match in matches]
    exact = history_values(tree, behaviours)[0]
    assert np.dot(chances, estimates) == pytest.approx(exact, abs=1e-12)
    variance = np.dot(chances, np.square(np.array(estimates) - exact))
    plain = np.dot(chances, [(m.returns[0] - exact) ** 2 for m in matches])
    assert variance < 0.1 * plain
    again = RolloutValues(tree.game, policy)
    assert again.estimate(matches[-1]) == estimates[-1]


@pytest.mark.slow
def test_aivat_without_a_game_tree_is_the_same_in_workers(capsys, tmp_path):
    words = ["tournament", "--game", "leduc_poker", "--bots", "uniform;uniform"]
    words += ["--aivat", "uniform", "--memory-limit", "100MB", "--matches", 10]
    found = report(capsys, *words, "--out", tmp_path / "here")
    assert found["half_width"][0][1] < 0.3 * found["plain_half_width"][0][1]
    report(capsys, *words, "--out", tmp_path / "there", "--workers", 1)
    here, there = (
        [
            json.loads(line)["aivat"]
            for line in (tmp_path / name / "matches.jsonl").read_text().splitlines()
        ]
        for name in ("here", "there")
    )
    assert here == there


def test_solver_values_are_rejected_for_games_that_are_too_large():
    game = spiel_cr.poker.spot("5c9dJs2h3c", 200, 900)
    with pytest.raises(
        spiel_cr.common.errors.GameTooLargeError, match="leave aivat out"
    ):
        baseline(game, "cfr+(iterations=10)")
    assert isinstance(baseline(game, "uniform"), RolloutValues)


@pytest.mark.slow
def test_aivat_reduces_variance_in_limit_holdem():
    """A game tree would be too large, so values come from rollouts."""
    game = (
        "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=2 1,"
        "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3 1 1,raiseSize=2 2 4 4,maxRaises=3 4 4 4,"
        "bettingAbstraction=fcpa)"
    )
    plain = spiel_cr.play_matches(game, ["uniform"] * 2, 40)
    found = spiel_cr.play_matches(game, ["uniform"] * 2, 40, aivat="uniform")
    assert found.returns.std() < 0.3 * plain.returns.std()
