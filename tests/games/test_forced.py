"""Games laid out without their forced moves."""

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.games.sequence_form import forced, locking
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.sequence_form.layout import build
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.solvers.run import Goal
from tests.support import games
from tests.support.strategies import solver_of

# Forced moves at the end, in the middle and for one player more often.
GAMES = ["chained", "liars_dice_1x4", "ii_goofspiel4", "dark_hex"]


def chained():
    """Player 0: a forced start, a choice, two forced moves, a choice; 1: a choice."""
    own = Decisions(np.array([0, 1, 2, 4, 5]), np.array([1, 2, 1, 1, 2]))
    other = Decisions(np.array([0]), np.array([2]))
    rng = np.random.default_rng(5)
    rows, columns = np.indices((own.num_sequences, other.num_sequences)).reshape(2, -1)
    return (own, other), Payoffs(
        rows.astype(np.int32), columns.astype(np.int32), rng.normal(size=len(rows))
    )


def test_forced_moves_are_numbered_as_what_is_before_them():
    free = forced.leave_out(*chained())
    own, other = free.decisions
    assert own.parent.tolist() == [0, 1] and own.num_actions.tolist() == [2, 2]
    assert free.numbers[0].tolist() == [0, 0, 1, 2, 1, 1, 3, 4]
    assert free.numbers[1].tolist() == [0, 1, 2] and other.num_sequences == 3
    # Each pair of sequences once, with all that is paid there.
    assert len(free.payoffs.values) == 5 * 3
    assert free.payoffs.values.sum() == pytest.approx(chained()[1].values.sum())


def form_of(name):
    return build(*chained()) if name == "chained" else games.compiled(name).form


@pytest.mark.parametrize("name", GAMES)
def test_the_game_is_the_same(name):
    form = form_of(name)
    without = forced.without(form)
    before, after = (sum(own.size for own in f.layouts) for f in (form, without))
    assert after < before
    rng = np.random.default_rng(1)
    behaviours = []
    for own in form.decisions:
        weights = rng.exponential(size=own.num_sequences)
        total = np.bincount(own.owner[1:], weights[1:])
        behaviours.append(np.append(1.0, weights[1:] / total[own.owner[1:]]))
    reach = tuple(map(reach_from_behaviour, form.decisions, behaviours))
    assert best_responses.nash_conv(without, reach) == pytest.approx(
        best_responses.nash_conv(form, reach), abs=1e-12
    )
    assert best_responses.expected_value(without, reach) == pytest.approx(
        best_responses.expected_value(form, reach), abs=1e-12
    )


def test_games_without_forced_moves_and_locked_ones_stay_as_they_are():
    for name in ("kuhn", "goofspiel4"):
        assert forced.without(form_of(name)) is form_of(name)
    form = form_of("liars_dice_1x4")
    rows = np.full(form.decisions[0].num_sequences, np.nan)
    locked = locking.locked(form, (rows, None))
    assert forced.without(locked) is locked


@pytest.mark.parametrize("algorithm", ["cfr+", "dcfr", "pcfr+"])
@pytest.mark.parametrize("name", GAMES)
def test_solvers_do_the_same(name, algorithm):
    form = form_of(name)
    first, second = (solver_of(f, algorithm) for f in (form, forced.without(form)))
    for solver in (first, second):
        solver.run(30)
    assert second.nash_conv() == pytest.approx(first.nash_conv(), rel=1e-6, abs=1e-12)
    for player, own in enumerate(form.decisions):
        for read in ("average", "average_behaviour", "current_behaviour"):
            np.testing.assert_allclose(
                *(getattr(solver, read)(player) for solver in (second, first)),
                atol=1e-7,
                err_msg=read,
            )
        played = second.average_behaviour(player)
        assert (played[own.first_sequence[own.num_actions == 1]] == 1).all()


@pytest.mark.parametrize("algorithm", ["cfr+", "pdhg"])
def test_solve_leaves_them_out(algorithm, monkeypatch):
    seen = []
    without = forced.without
    monkeypatch.setattr(
        forced, "without", lambda form: seen.append(form) or without(form)
    )
    tree = games.compiled("ii_goofspiel4")
    result = spiel_cr.solve(tree, algorithm, Goal(200, eval_every=200))
    assert seen == [tree.form]
    judged = exploitability.nash_conv(tree.game, result.average_policy())
    assert result.curve[-1].nash_conv == pytest.approx(judged, abs=1e-9)
