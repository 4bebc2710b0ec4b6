"""`auto` says what it chose, tries fairly, and keeps to it."""

import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.common import storage
from spiel_cr.solvers import automatic
from spiel_cr.solvers.laying_out import Layout
from spiel_cr.solvers.lp import equilibrium
from tests.support import games

_RIVER = "python_poker_spot(pot=100,stack=100,ranges=AA QQ;KK JJ,bets=allin)"


@pytest.mark.parametrize(
    ("game", "goal", "layout", "chosen"),
    [
        ("kuhn_poker", None, None, "lp"),
        ("kuhn_poker", spiel_cr.Goal(until=1e-3), None, "lp"),
        ("leduc_poker", spiel_cr.Goal(seconds=5), None, "lp"),
        # Nobody asked for iterations of a linear program.
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
        ("kuhn_poker", 20, Layout(buckets=([0, 0, 1, 2, 3, 4], None)), "cfr+"),
        ("kuhn_poker", 2, Layout("stepped"), "os-mccfr"),
        (_RIVER, 20, Layout("signals"), "dcfr"),
        ("dark_hex(board_size=2)", 20, Layout("worlds"), "dcfr+"),
    ],
)
def test_choice(game, goal, layout, chosen):
    result = spiel_cr.solve(game, goal=goal, layout=layout)
    assert result.algorithm == chosen and result.why
    assert spiel_cr.solve("kuhn_poker", "cfr+", 5).why == ""


def test_goes_on_from_the_trial_and_counts_it():
    """The winner is the run of its name, bit for bit; the clock has the loser's."""
    goal = spiel_cr.Goal(100, eval_every=10)
    tried = spiel_cr.solve("leduc_poker", goal=goal)
    alone = spiel_cr.solve("leduc_poker", tried.algorithm, goal)
    for one, other in zip(tried.average, alone.average, strict=True):
        np.testing.assert_array_equal(one, other)
    points = [(point.iterations, point.nash_conv) for point in tried.curve]
    assert points == [(point.iterations, point.nash_conv) for point in alone.curve]
    assert "dcfr after 30 iterations" in tried.why
    assert "sapcfr+ after 30 iterations" in tried.why
    assert tried.iterations == 100


def test_until_takes_who_gets_there_first():
    goal = spiel_cr.Goal(until=1e-6, eval_every=64)
    result = spiel_cr.solve("kuhn_poker", goal=goal)
    assert result.algorithm == "sapcfr+" and result.nash_conv() <= 1e-6
    assert result.iterations < 512


def test_single_precision_where_it_is_enough(tmp_path):
    def solved(until, **more):
        goal = spiel_cr.Goal(2000, until=until, eval_every=50)
        layout = Layout("signals")
        return spiel_cr.solve(_RIVER, goal=goal, layout=layout, **more)

    rough, fine = solved(0.1), solved(1e-4)
    assert rough.nash_conv() <= 0.1 and "float32" in rough.why
    assert rough.average[0].dtype == np.float32 and fine.average[0].dtype == np.float64
    asked = solved(0.1, dtype="float64"), solved(0.1, checkpoint=tmp_path / "state")
    assert {one.average[0].dtype for one in asked} == {np.dtype("float64")}


def test_checkpoint_keeps_the_algorithm(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    begun = spiel_cr.solve("kuhn_poker", goal=30, checkpoint=path)
    assert storage.load_metadata(path)["algorithm"] == begun.algorithm == "sapcfr+"
    resumed = spiel_cr.solve("kuhn_poker", goal=90, checkpoint=path)
    whole = spiel_cr.solve("kuhn_poker", "sapcfr+", 90)
    np.testing.assert_array_equal(resumed.average[0], whole.average[0])
    assert resumed.why == begun.why and "after 9 iterations" in begun.why
    monkeypatch.setattr(automatic, "_KEPT_TRIAL", 7)
    short = spiel_cr.solve("kuhn_poker", goal=300, checkpoint=tmp_path / "short")
    assert "after 7 iterations" in short.why
    other = tmp_path / "other"
    spiel_cr.solve("kuhn_poker", "cfr+", 10, checkpoint=other)
    resumed = spiel_cr.solve("kuhn_poker", goal=20, checkpoint=other)
    assert resumed.algorithm == "cfr+" and "checkpoint" in resumed.why


def test_a_linear_program_that_is_late_leaves_the_rest(monkeypatch):
    monkeypatch.setattr(automatic, "_LINEAR_SHARE", 1e-9)
    result = spiel_cr.solve("leduc_poker", goal=spiel_cr.Goal(seconds=1.0))
    assert result.algorithm in automatic.CANDIDATES["compiled"]
    assert 0 < result.iterations and result.seconds == pytest.approx(1.0, abs=1.0)
    tree = games.compiled("leduc")
    with pytest.raises(spiel_cr.common.errors.SolverFailedError):
        equilibrium(tree.form, np.array([-1.0, 1.0]), seconds=1e-9)


def test_resolving_takes_the_form():
    tree = spiel_cr.resolve("kuhn_poker", iterations=20)
    assert tree.algorithm == automatic.OF_SUBGAMES["compiled"]
    river = spiel_cr.resolve(_RIVER, iterations=20, layout=Layout("signals"))
    assert river.algorithm == automatic.OF_SUBGAMES["signals"]
