"""`auto`: the choice of an algorithm, trial runs and the final linear program."""

import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.common import storage
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.solvers import automatic, footprint, lp
from spiel_cr.solvers.lp import equilibrium
from spiel_cr.solvers.representation import GameOptions
from tests.support import games

_RIVER = "python_poker_spot(pot=100,stack=100,ranges=AA QQ;KK JJ,bets=allin)"
# A game with three rounds.
_RHODE_ISLAND = "python_rhode_island_holdem(num_ranks=2,num_suits=2,max_bets=1)"


@pytest.mark.parametrize(
    ("game", "goal", "options", "chosen"),
    [
        ("kuhn_poker", None, None, "lp"),
        ("kuhn_poker", spiel_cr.Goal(until=1e-3), None, "lp"),
        ("leduc_poker", spiel_cr.Goal(seconds=5), None, "lp"),
        # A linear program has no iterations, so it is not chosen.
        ("leduc_poker", 100, None, "dcfr"),
        ("kuhn_poker", 29, None, "sapcfr+(gamma=5)"),
        ("kuhn_poker", 40, None, "sapcfr+"),
        ("kuhn_poker", 100, None, "sapcfr+(prediction=0.3333)"),
        (
            "kuhn_poker",
            spiel_cr.Goal(eval_every=50),
            None,
            "sapcfr+(prediction=0.3333)",
        ),
        ("kuhn_poker", 20, GameOptions(buckets=([0, 0, 1, 2, 3, 4], None)), "cfr+"),
        ("kuhn_poker", 2, GameOptions("simulator"), "os-mccfr"),
        (_RIVER, 20, GameOptions("public-tree"), "dcfr"),
        (_RIVER, spiel_cr.Goal(20, until=0.1), GameOptions("public-tree"), "dcfr"),
        (_RHODE_ISLAND, 20, GameOptions("public-tree"), "hs-dcfr"),
        (
            _RHODE_ISLAND,
            spiel_cr.Goal(seconds=0.01),
            GameOptions("public-tree"),
            "hs-dcfr",
        ),
        ("dark_hex(board_size=2)", 20, GameOptions("phantom"), "dcfr+"),
    ],
)
def test_auto_chooses_the_expected_algorithm(game, goal, options, chosen):
    result = spiel_cr.solve(game, goal=goal, options=options)
    assert result.algorithm == chosen and result.reason
    assert spiel_cr.solve("kuhn_poker", "cfr+", 5).reason == ""


def test_auto_result_equals_a_run_of_the_chosen_algorithm():
    """The run continues from the trial, so averages and curves are identical."""
    goal = spiel_cr.Goal(100, eval_every=10)
    tried = spiel_cr.solve("leduc_poker", goal=goal)
    alone = spiel_cr.solve("leduc_poker", tried.algorithm, goal)
    for one, other in zip(tried.average, alone.average, strict=True):
        np.testing.assert_array_equal(one, other)
    points = [(point.iterations, point.nash_conv) for point in tried.curve]
    assert points == [(point.iterations, point.nash_conv) for point in alone.curve]
    assert "dcfr after 30 iterations" in tried.reason
    assert "sapcfr+ after 30 iterations" in tried.reason
    assert tried.iterations == 100


def test_auto_chooses_the_candidate_that_reaches_until_first():
    goal = spiel_cr.Goal(until=1e-6, eval_every=64)
    result = spiel_cr.solve("kuhn_poker", goal=goal)
    assert result.algorithm == "sapcfr+" and result.nash_conv() <= 1e-6
    assert result.iterations < 512


def test_auto_uses_float32_if_until_allows_it(tmp_path):
    def solved(until, **more):
        goal = spiel_cr.Goal(2000, until=until, eval_every=50)
        options = GameOptions("public-tree")
        return spiel_cr.solve(_RIVER, goal=goal, options=options, **more)

    rough, fine = solved(0.1), solved(1e-4)
    assert rough.nash_conv() <= 0.1 and "float32" in rough.reason
    assert rough.algorithm == fine.algorithm == "dcfr"
    assert rough.average[0].dtype == np.float32 and fine.average[0].dtype == np.float64
    asked = solved(0.1, dtype="float64"), solved(0.1, checkpoint=tmp_path / "state")
    assert {one.average[0].dtype for one in asked} == {np.dtype("float64")}


def test_auto_continues_in_float64_when_float32_stalls(monkeypatch):
    """The goal is reached, unlike with float32 alone, and `reason` has the change."""
    options, goal = GameOptions("public-tree"), spiel_cr.Goal(50_000, until=1e-4)
    monkeypatch.setattr(automatic, "_FINE", 1e-8)
    watched = spiel_cr.solve(_RIVER, goal=goal, options=options)
    alone = spiel_cr.solve(_RIVER, "dcfr", goal, options=options)
    single = spiel_cr.solve(_RIVER, "dcfr", goal, options=options, dtype="float32")
    assert max(watched.nash_conv(), alone.nash_conv()) <= 1e-4
    assert single.nash_conv() > 15 * alone.nash_conv()
    assert watched.average[0].dtype == watched.current[0].dtype == np.float64
    assert "where it stalled" in watched.reason
    nash_convs = [point.nash_conv for point in watched.curve]
    seconds = [point.seconds for point in watched.curve]
    assert min(nash_convs) == nash_convs[-1] and seconds == sorted(seconds)
    # The run stays in float32 if that reaches the goal.
    monkeypatch.undo()
    span = single.game.max_utility() - single.game.min_utility()
    enough = spiel_cr.Goal(50_000, until=1e-5 * span)
    single = spiel_cr.solve(_RIVER, goal=enough, options=options)
    assert single.average[0].dtype == np.float32 and "stalled" not in single.reason
    assert single.nash_conv() <= 1e-5 * span


def test_auto_does_not_switch_to_float64_after_the_run_ends(monkeypatch):
    """Runs end after the last iteration, or when the goal is reached."""
    monkeypatch.setattr(automatic, "_FINE", 1e-8)
    monkeypatch.setattr(automatic, "_STALLED", {2: 0.0, 4: 0.0})
    options = GameOptions("public-tree")
    for goal in (
        spiel_cr.Goal(20, until=1e-4, eval_every=20),
        spiel_cr.Goal(2000, until=1e-3, eval_every=2000),
    ):
        result = spiel_cr.solve(_RIVER, goal=goal, options=options)
        assert len(result.curve) == 1 and result.average[0].dtype == np.float32
    goal = spiel_cr.Goal(80, until=1e-4, eval_every=10)
    for game, rule in ((_RIVER, "dcfr"), (_RHODE_ISLAND, "hs-dcfr")):
        result = spiel_cr.solve(game, goal=goal, options=options)
        assert "float64 after 40 iterations" in result.reason
        assert result.algorithm == rule and result.average[0].dtype == np.float64


def test_auto_checks_the_memory_of_float64_before_the_run(monkeypatch):
    """It is an error if a possible continuation in double precision is too large."""
    monkeypatch.setattr(automatic, "_FINE", 1e-8)

    def check(game, algorithm, dtype, limit, *, need=None):
        if np.dtype(dtype) == np.float64:
            raise GameTooLargeError("double")

    monkeypatch.setattr(footprint, "check", check)
    options = GameOptions("public-tree")
    with pytest.raises(GameTooLargeError, match="double"):
        spiel_cr.solve(_RIVER, goal=spiel_cr.Goal(until=1e-4), options=options)
    spiel_cr.solve(_RIVER, goal=spiel_cr.Goal(until=0.1), options=options)


def test_checkpoint_keeps_the_algorithm(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    begun = spiel_cr.solve("kuhn_poker", goal=30, checkpoint=path)
    assert storage.load_metadata(path)["algorithm"] == begun.algorithm == "sapcfr+"
    resumed = spiel_cr.solve("kuhn_poker", goal=90, checkpoint=path)
    whole = spiel_cr.solve("kuhn_poker", "sapcfr+", 90)
    np.testing.assert_array_equal(resumed.average[0], whole.average[0])
    assert resumed.reason == begun.reason and "after 9 iterations" in begun.reason
    monkeypatch.setattr(automatic, "_KEPT_TRIAL", 7)
    short = spiel_cr.solve("kuhn_poker", goal=300, checkpoint=tmp_path / "short")
    assert "after 7 iterations" in short.reason
    other = tmp_path / "other"
    spiel_cr.solve("kuhn_poker", "cfr+", 10, checkpoint=other)
    resumed = spiel_cr.solve("kuhn_poker", goal=20, checkpoint=other)
    assert resumed.algorithm == "cfr+" and "checkpoint" in resumed.reason


def test_auto_runs_cfr_if_the_linear_program_takes_too_long(monkeypatch):
    monkeypatch.setattr(automatic, "_LINEAR_SHARE", 1e-9)
    result = spiel_cr.solve("leduc_poker", goal=spiel_cr.Goal(seconds=1.0))
    assert result.algorithm in automatic.CANDIDATES["tree"]
    assert 0 < result.iterations and result.seconds == pytest.approx(1.0, abs=1.0)
    tree = games.compiled("leduc")
    with pytest.raises(spiel_cr.common.errors.SolverFailedError):
        equilibrium(tree.sequence_form, (-1.0, 1.0), seconds=1e-9)


def test_auto_iterates_if_the_linear_program_uses_the_whole_budget():
    """Four milliseconds suffice to solve the linear program, but not to build it."""
    result = spiel_cr.solve("kuhn_poker", "auto", spiel_cr.Goal(seconds=0.004))
    assert result.iterations >= 1 and result.nash_conv() < 11 / 6


def test_auto_improves_long_runs_with_a_linear_program():
    """Current strategy and curve remain those of the iterations."""
    result = spiel_cr.solve("leduc_poker", goal=spiel_cr.Goal(1000, eval_every=500))
    alone = spiel_cr.solve("leduc_poker", result.algorithm, 1000)
    assert result.nash_conv() < 1e-12 < 1e-5 < alone.nash_conv()
    assert result.curve[-1].nash_conv == pytest.approx(alone.nash_conv())
    np.testing.assert_array_equal(result.current[0], alone.current[0])
    said = f"then a linear program on what it plays: NashConv {alone.nash_conv():.1e}"
    assert said in result.reason and result.iterations == 1000


@pytest.mark.parametrize(
    ("goal", "more"),
    [
        (999, {}),
        pytest.param(1000, {"dtype": "float32"}, marks=pytest.mark.slow),
        (spiel_cr.Goal(1000, until=0.5), {}),
        (spiel_cr.Goal(1000, seconds=1000.0), {}),
        (1000, {"options": GameOptions(buckets=(list(range(468)), None))}),
    ],
)
def test_auto_skips_the_final_linear_program(goal, more):
    result = spiel_cr.solve("leduc_poker", goal=goal, **more)
    assert "linear program" not in result.reason and result.nash_conv() > 1e-5


def test_resumed_auto_runs_equal_uninterrupted_ones(tmp_path):
    path = tmp_path / "checkpoint"
    for count in (500, 1000, 1200):
        resumed = spiel_cr.solve("leduc_poker", goal=count, checkpoint=path)
        whole = spiel_cr.solve("leduc_poker", goal=count)
        for one, other in zip(resumed.average, whole.average, strict=True):
            np.testing.assert_array_equal(one, other)
        assert ("linear program" in resumed.reason) == (count >= 1000)
        assert resumed.reason.count("linear program") <= 1


def test_auto_discards_a_worse_final_solution(monkeypatch):
    alone = spiel_cr.solve("leduc_poker", "dcfr", 1000)
    asked = []

    def worse(form, behaviours, most):
        asked.append(most)
        return lp.Solution(alone.current, 2 * alone.nash_conv(), 1)

    monkeypatch.setattr(lp, "polished", worse)
    result = spiel_cr.solve("leduc_poker", goal=1000)
    np.testing.assert_array_equal(result.average[0], alone.average[0])
    assert asked == [3000] and "linear program" not in result.reason


def test_polished_strategy_keeps_the_support_of_the_average():
    """It adds no sequence, and does not change infosets that it does not reach."""
    tree = games.compiled("leduc")
    average = spiel_cr.solve(tree, "dcfr", 1000).average
    found = lp.polished(tree.sequence_form, average, 10_000)
    assert found.nash_conv_with_locks < 1e-12
    assert lp.polished(tree.sequence_form, average, 1) is None
    before, after = (
        reach_of(tree.sequence_form, one) for one in (average, found.behaviour)
    )
    for player, decisions in enumerate(tree.sequence_form.decisions):
        assert after[player][before[player] <= 1e-5].max() <= 1e-12
        gone = after[player][decisions.parent[decisions.owner[1:]]] == 0
        assert gone.sum() > 100
        was, now = average[player][1:][gone], found.behaviour[player][1:][gone]
        np.testing.assert_array_equal(now, was)


def test_resolving_chooses_the_algorithm_by_form():
    tree = spiel_cr.resolve("kuhn_poker", iterations=20)
    assert tree.algorithm == automatic.OF_SUBGAMES["tree"]
    river = spiel_cr.resolve(_RIVER, iterations=20, options=GameOptions("public-tree"))
    assert river.algorithm == automatic.OF_SUBGAMES["public-tree"]


def test_auto_reports_that_lp_does_not_support_checkpoints(tmp_path):
    path = tmp_path / "kuhn.npz"
    found = spiel_cr.solve("kuhn_poker", checkpoint=path)
    assert found.algorithm != "lp" and found.reason.endswith(
        "; lp does not support checkpoints"
    )
    again = spiel_cr.solve("kuhn_poker", checkpoint=path)
    assert again.reason == found.reason
    counted = spiel_cr.solve("kuhn_poker", goal=30, checkpoint=tmp_path / "a.npz")
    assert "lp" not in counted.reason
