"""The benchmarks of abstractions and of endgames judge in the whole game."""

import pytest

from benchmarks import frame
from benchmarks.signals import abstraction, endgames, first_rounds
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_more_buckets_lose_less(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    picture = tmp_path / "curves.png"
    command = ["--games", "python_leduc_poker(num_ranks=6)", "--budgets", "2-4", "6-36"]
    command += ["--methods", "win-probability", abstraction.GAMESHRINK]
    command += ["--plot", str(picture)]
    rows, page = run_on_page(abstraction.BENCHMARK, tmp_path, command)
    few, _, many, shrunk = rows
    assert few["buckets"] == [2, 4] and few["nash_conv_of_buckets"] <= 0.02
    assert few["nash_conv"] > 1.5 * many["nash_conv"]
    assert shrunk["buckets"][0] == 6
    assert "2-4" in str(page) and picture.stat().st_size > 1000


@pytest.mark.slow
def test_first_rounds_by_budget(tmp_path):
    game = (
        "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
        "firstPlayer=2 1 1 1,numSuits=3,numRanks=4,numHoleCards=2,"
        "numBoardCards=0 2 1 1,raiseSize=10 10 20 20,maxRaises=1 1 1 1)"
    )
    command = ["--game", game, "--budgets", "3", "16", "3-9", "16-400"]
    command += ["--methods", "win-probability"]
    rows, page = run_on_page(first_rounds.BENCHMARK, tmp_path, command)
    few, all_of, small, large = rows
    assert [row["rounds"] for row in rows] == [1, 1, 2, 2]
    assert all(row["nash_conv_of_buckets"] <= 0.01 for row in rows)
    # With a bucket for each signal nothing is lost but what solving leaves.
    assert all_of["nash_conv"] == pytest.approx(
        all_of["nash_conv_of_buckets"], abs=1e-5
    )
    assert few["nash_conv"] > 10 * all_of["nash_conv"]
    assert small["nash_conv"] > 2 * large["nash_conv"]
    assert large["signals"] == [16, 528] and "| 3-9 |" in page


@pytest.mark.slow
def test_endgames_over_iterations(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "in_a_process", lambda measure, *given: measure(*given))
    command = ["--games", "python_leduc_poker(stack0=5,stack1=5,num_ranks=4)"]
    command += ["--budgets", "2-4", "--looks", "5", "40", "--until", "0.05"]
    command += ["--checkpoints", str(tmp_path)]
    rows, page = run_on_page(endgames.BENCHMARK, tmp_path, command)
    found = {
        (row["first"], row["gadget"], row["iterations"]): row["nash_conv"]
        for row in rows
    }
    assert len(found) == len(rows) == 2 * 2 * 3
    one_phase = found["abstraction", "cfrd", 0]
    assert one_phase == found["abstraction", "unsafe", 0]
    # Each solve is off by what its iterations leave.
    assert found["abstraction", "cfrd", 40] < one_phase + 0.02
    # Nobody bets in the last round: whoever does, wins.
    assert found["rollouts", "unsafe", 40] < 0.9 * found["rollouts", "unsafe", 0]
    assert found["rollouts", "unsafe", 0] > 2 * one_phase
    assert len(list(tmp_path.glob("*.npz"))) == 4
    assert "| safe |" in page and "40 iterations" in page


def test_endgames_of_a_checkpoint_have_no_row_before_it(tmp_path):
    """The strategy of more iterations is none of fewer."""
    settings = "python_leduc_poker(num_ranks=3)", "2-4", "abstraction", "cfrd", "cfr+"

    def rows(looks):
        limits = "float64", 0.2, 60.0, tmp_path
        return endgames.solve_both_phases(*settings, looks, *limits)["rows"]

    first, again = rows([2, 4]), rows([2, 4, 6])
    assert [row["iterations"] for row in first] == [0, 2, 4]
    assert [row["iterations"] for row in again] == [0, 4, 6]
    assert first[-1]["nash_conv"] == again[1]["nash_conv"]
    assert [row["timed_iterations"] for row in again[1:]] == [0, 2]
    # Nothing was iterated for the first; the time of an iteration is the second's.
    page = endgames.markdown([{**row, **frame.facts()} for row in again])
    assert f"{again[2]['cpu_seconds'] / 2:.2f}" in page


def test_looks_are_refused(tmp_path, capsys):
    for looks in (["0"], ["5", "5"], ["x"]):
        with pytest.raises(SystemExit):
            endgames.BENCHMARK.main(["--looks", *looks, "--out", str(tmp_path / "x")])
        assert "must be whole numbers" in capsys.readouterr().err
