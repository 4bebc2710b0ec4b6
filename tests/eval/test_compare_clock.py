"""Comparisons: budgets, and the time that counts as work."""

import time

import pytest

import spiel_cr
from spiel_cr.eval.adapters import registry
from spiel_cr.eval.common.budget import Budget
from spiel_cr.eval.comparison import comparisons, measure
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.policies.result import SolvedForm

KUHN = "kuhn_poker"


def measure_run(algorithm, iterations):
    record = measure.measurer()(measure.Run(KUHN, algorithm, 0, None, iterations))
    assert record["error"] is None, record
    return record


class Metronome:
    """A solver whose simulated clock advances by `tick` per iteration."""

    compile_seconds, note, iterations = 0.0, "", None

    def __init__(self, tick=1.0):
        self.tick, self.calls = tick, []

    def run(self, iterations):
        self.calls.append(iterations)
        return self.tick * iterations

    def strategy(self):
        return None


class Busy:
    """A solver that uses CPU time and reports one second per call."""

    compile_seconds, note, iterations = 0.0, "", None

    def __init__(self):
        self.calls = []

    def run(self, iterations):
        self.calls.append(iterations)
        end = time.process_time() + 0.02 * iterations
        while time.process_time() < end:
            pass
        return 1.0

    def strategy(self):
        return None


@pytest.mark.parametrize("way", ["iterates", "restarts"])
def test_cpu_time_excludes_evaluation_and_restarted_runs(way):
    """If each run restarts, only the last one counts."""
    entry = registry.find("cfr")._replace(mode=way)
    points = []
    for point in measure.work(entry, Busy(), Budget(None, 5)):
        points.append(point)
        Busy().run(5)  # an evaluation
    assert [count for _, count, _ in points] == [1, 2, 5]
    assert 0.02 * 5 <= points[-1][0].cpu_seconds < 0.02 * 7


def follow(way, budget, tick=1.0, least=1):
    entry = registry.find("cfr")._replace(mode=way, least=least)
    metronome = Metronome(tick)
    points = list(measure.work(entry, metronome, budget))
    return metronome, points, points[-1][0].seconds


def test_iteration_budget_is_used_exactly():
    metronome, points, _ = follow("iterates", Budget(None, 300), tick=1e-4)
    assert sum(metronome.calls) == 300
    assert [count for _, count, _ in points] == [1, 2, 5, 10, 20, 50, 100, 200, 300]


def test_time_budget_is_used():
    metronome, points, seconds = follow("iterates", Budget(10.0, None), tick=1e-3)
    assert seconds == pytest.approx(10.0, rel=1e-3)
    shares = [round(spent.seconds, 1) for spent, _, _ in points]
    assert shares == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    # At least one iteration is done, however slow, and it is evaluated once.
    metronome, points, seconds = follow("iterates", Budget(10.0, None), tick=60.0)
    assert metronome.calls == [1] and len({count for _, count, _ in points}) == 1


def test_restarted_runs_fill_the_budget():
    metronome, points, seconds = follow(
        "restarts", Budget(10.0, None), tick=1e-3, least=8
    )
    assert metronome.calls[0] == 8 and metronome.calls == sorted(metronome.calls)
    assert 6.5 < seconds <= 10.0
    assert points[-1][1] == metronome.calls[-1]
    metronome, points, _ = follow("restarts", Budget(None, 30), least=8)
    assert [count for _, count, _ in points] == [10, 20, 30]


def test_seconds_include_building_the_game(monkeypatch):
    def timed(tree, *arguments, **options):
        uniform = tuple(uniform_behaviour(i.decisions) for i in tree.infosets)
        return spiel_cr.Result(
            solved=SolvedForm(tree, tree.sequence_form),
            algorithm="",
            iterations=3,
            average=uniform,
            current=None,
            seconds=2.0,
            compile_seconds=compile_seconds,
            build_seconds=build_seconds,
        )

    compile_seconds, build_seconds = 7.0, 0.5

    monkeypatch.setattr(spiel_cr, "resolve", timed)
    record = measure_run("resolve(solver=cfr+,iterations=3)", 1)
    assert record["seconds"] == 2.5
    assert record["compile_seconds"] == 7.0
    assert record["iterations"] == 3


def test_solved_players_play_the_solution():
    solved, plain = (
        measure_run("solved(solver=cfr+,iterations=20)", 1),
        measure_run("cfr+", 20),
    )
    assert solved["nash_conv"] == pytest.approx(plain["nash_conv"], abs=1e-12)
    assert registry.find("solved(solver=es-mccfr)").samples
    assert not registry.find("solved(solver=cfr+)").samples


def test_policies_from_files_count_no_seconds(tmp_path):
    file = tmp_path / "kuhn.npz"
    spiel_cr.solve(KUHN, "cfr+", 20).save(file)
    record = measure_run(f"policy(path={file})", 1)
    assert record["seconds"] == 0.0
    assert record["nash_conv"] == measure_run("cfr+", 20)["nash_conv"]
    with pytest.raises(ValueError, match="does not exist; create it with"):
        comparisons.compare(
            [KUHN], [f"policy(path={file}x)"], Budget(None, 1), tmp_path / "new"
        )
    assert not (tmp_path / "new").exists()
