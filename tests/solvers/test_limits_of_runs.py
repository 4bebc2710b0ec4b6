"""Time limits of whole calls, and schedules that a run does not complete."""

import time

import pytest

import spiel_cr
from spiel_cr.solvers import run as runs
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.task import Task
from tests.support.games import compiled


def test_call_after_its_wall_clock_limit_runs_one_iteration():
    result = spiel_cr.solve("kuhn_poker", "cfr+", spiel_cr.Goal(wall_clock=1e-3))
    assert (result.iterations, result.stop_reason) == (1, "seconds")


def test_other_limits_apply_besides_wall_clock():
    goal = spiel_cr.Goal(iterations=7, wall_clock=1e6)
    result = spiel_cr.solve("kuhn_poker", "cfr+", goal)
    assert (result.iterations, result.stop_reason) == (7, "iterations")
    with pytest.raises(ValueError, match="wall_clock=5: algorithm='lp' is exact"):
        spiel_cr.solve("kuhn_poker", "lp", spiel_cr.Goal(wall_clock=5))
    with pytest.raises(ValueError, match="wall_clock=0"):
        spiel_cr.Goal(wall_clock=0)


@pytest.mark.parametrize("algorithm", ["cfr+", "es-mccfr"])
def test_deadline_includes_time_of_evaluations(algorithm, monkeypatch):
    """By the deadline's clock, evaluations take one second and iterations no time."""
    solver = Task(find(algorithm)).solver(compiled("kuhn"))
    now = [0.0]
    monkeypatch.setattr(runs.time, "perf_counter", lambda: now[0])
    evaluate = type(solver).evaluate

    def evaluate_slowly(self):
        now[0] += 1.0
        return evaluate(self)

    monkeypatch.setattr(type(solver), "evaluate", evaluate_slowly)
    goal = spiel_cr.Goal(eval_every=10)
    *_, curve, reason = runs.drive(
        solver, goal, None, most=10_000, progress=False, deadline=4.5
    )
    assert reason == "seconds" and [point.iterations for point in curve] == [
        10,
        20,
        30,
        40,
        50,
    ]


@pytest.mark.slow
def test_call_ends_within_a_second_of_its_wall_clock_limit():
    """The limit includes building the game tree and compiling."""
    spiel_cr.solve("leduc_poker", "cfr+", 1)
    start = time.perf_counter()
    spiel_cr.solve("leduc_poker", "cfr+", spiel_cr.Goal(wall_clock=10))
    assert 9 < time.perf_counter() - start < 11


@pytest.mark.parametrize(("iterations", "share"), [(1, 0.5), (2, 1.0)])
def test_incomplete_schedules_warn(iterations, share, recwarn):
    episodes, decisions = 64, []
    first = spiel_cr.solve("kuhn_poker", f"mmd(hidden=8,episodes={episodes})", 1)
    decisions = first.schedule_share * 1e7
    assert recwarn.pop(UserWarning)
    text = f"mmd(hidden=8,episodes={episodes},schedule={int(decisions * 2)})"
    result = spiel_cr.solve("kuhn_poker", text, iterations)
    assert result.schedule_share == pytest.approx(share, rel=0.1)
    cut = [str(w.message) for w in recwarn if "of its schedule" in str(w.message)]
    assert bool(cut) == (result.schedule_share < 1)
