"""Removal of forced moves from the sequence form."""

import functools

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.games.sequence_form import forced, layout, locking
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.first_order import solvers as methods
from spiel_cr.solvers.run import Goal
from tests.support import games
from tests.support.strategies import solver_of

# Forced moves occur inside, at the end, and for one player more often.
GAMES = ["chained", "liars_dice_1x3", "ii_goofspiel4", "dark_hex"]
# Each pair of a game and an algorithm compiles two functions. Each game and each
# algorithm occurs in a quick pair, and the other pairs are slow.
RULES = ("cfr+", "dcfr", "pcfr+")
TRIED = {("liars_dice_1x3", "pcfr+"), ("ii_goofspiel4", "dcfr"), ("dark_hex", "cfr+")}
PAIRS = [
    pytest.param(
        name,
        rule,
        marks=[pytest.mark.slow] * (name != "chained" and (name, rule) not in TRIED),
    )
    for name in GAMES
    for rule in RULES
]


def game_of_payoff_array(own, other, values):
    """Return a game with a payoff for each pair of sequences: float [S, S']."""
    rows, columns = np.indices(values.shape).reshape(2, -1).astype(np.int32)
    decisions = tuple(Decisions(*map(np.array, each)) for each in (own, other))
    assert values.shape == tuple(each.num_sequences for each in decisions)
    return decisions, Payoffs(rows, columns, values.reshape(-1))


@functools.cache
def liars_dice():
    """Return liar's dice with three sides; four sides would only add levels."""
    return build_tree("liars_dice(numdice=1,dice_sides=3)").sequence_form


def chained():
    """Return a game in which player 0 has forced moves before and between choices."""
    values = np.random.default_rng(5).normal(size=(8, 3))
    return game_of_payoff_array(([0, 1, 2, 4, 5], [1, 2, 1, 1, 2]), ([0], [2]), values)


def form_of(name):
    if name == "chained":
        return layout.build(*chained())
    if name == "liars_dice_1x3":
        return liars_dice()
    return games.compiled(name).sequence_form


def test_forced_sequences_have_the_number_of_their_parent():
    free = forced.leave_out(*chained())
    own, other = free.decisions
    assert own.parent.tolist() == [0, 1] and own.num_actions.tolist() == [2, 2]
    assert free.numbers[0].tolist() == [0, 0, 1, 2, 1, 1, 3, 4]
    assert free.numbers[1].tolist() == [0, 1, 2] and other.num_sequences == 3
    # Each pair of sequences occurs once, with the sum of its payoffs.
    assert len(free.payoffs.values) == 5 * 3
    assert free.payoffs.values.sum() == pytest.approx(chained()[1].values.sum())


@pytest.mark.parametrize("name", GAMES)
def test_values_without_forced_moves_are_unchanged(name):
    """Compare expected values and best-response values of random strategies."""
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
    free, left = forced.leave_out(form.decisions, form.payoffs), []
    for player, own in enumerate(without.layouts):
        positions = own.by_position(reach[player])
        np.testing.assert_array_equal(positions[own.sequences], reach[player])
        played = own.behaviour(own.by_position(behaviours[player]))
        np.testing.assert_array_equal(played, behaviours[player])
        numbers = free.numbers[player]
        left.append(reach[player][np.unique(numbers, return_index=True)[1]])
    rows, columns, values = free.payoffs
    assert (values * left[0][rows] * left[1][columns]).sum() == pytest.approx(
        best_responses.expected_value(form, reach), abs=1e-12
    )
    found = [
        best_responses.bounds_of_averages(
            f,
            tuple(own.by_position(r) for own, r in zip(f.layouts, reach, strict=True)),
        )
        for f in (form, without)
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    with pytest.raises(ValueError, match="forced moves.*no position"):
        best_responses.nash_conv(without, reach)


def test_games_without_forced_moves_and_with_locks_are_unchanged():
    for name in ("kuhn", "goofspiel4"):
        assert forced.without(form_of(name)) is form_of(name)
    form = form_of("liars_dice_1x3")
    rows = np.full(form.decisions[0].num_sequences, np.nan)
    locked = locking.locked(form, (rows, None))
    assert forced.without(locked) is locked


@pytest.mark.parametrize(("name", "algorithm"), PAIRS)
def test_solvers_give_equal_strategies_without_forced_moves(name, algorithm):
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


def test_rounding_of_summed_payoffs_does_not_break_ties():
    """Payoffs that sum to zero except for rounding do not change the strategy."""
    values = np.zeros((3, 4))
    values[1, 1:] = 0.1, 0.2, -0.3
    assert values[1, 1:].sum() != 0
    game = game_of_payoff_array(([0], [2]), ([0, 0, 0], [1, 1, 1]), values)
    for form in (layout.build(*game), forced.without(layout.build(*game))):
        solver = solver_of(form, "cfr")
        solver.run(5)
        assert solver.average_behaviour(0).tolist() == [1, 0.5, 0.5]


@pytest.mark.parametrize(
    "game",
    [
        game_of_payoff_array(
            ([0, 1], [1, 1]), ([0], [2]), np.arange(9.0).reshape(3, 3)
        ),
        game_of_payoff_array(([0], [1]), ([0, 1], [1, 1]), np.ones((2, 3))),
        (
            game_of_payoff_array(([0], [1]), ([0], [2]), np.ones((2, 3)))[0],
            Payoffs(*np.zeros((3, 0))),
        ),
    ],
    ids=["one player decides", "nobody does", "nothing is paid"],
)
def test_solves_games_in_which_a_player_has_no_choice(game):
    decisions, payoffs = game
    payoffs = Payoffs(*(part.astype(np.int32) for part in payoffs[:2]), payoffs.values)
    form = layout.build(decisions, payoffs)
    assert any(own.forced is not None for own in forced.without(form).layouts)
    for make in (
        solver_of,
        lambda f, _: methods.make_solver(f, config=find("pdhg").config),
    ):
        plain, solver = make(form, "cfr+"), make(forced.without(form), "cfr+")
        for each in (plain, solver):
            each.run(300)
        assert solver.nash_conv() == pytest.approx(plain.nash_conv(), abs=1e-6)
        assert (solver.average_behaviour(0)[: len(decisions[0]) + 1] == 1).all()


def test_padding_does_not_change_iterates():
    form = form_of("liars_dice_1x3")
    free = forced.leave_out(form.decisions, form.payoffs)
    need = layout.shapes_of(free.decisions, free.payoffs)
    more = tuple(
        layout.PaddedShape((*each.levels, np.full(3, 2)), np.append(each.rows, 1))
        for each in need
    )
    solvers = [solver_of(forced.lay_out(free, room), "cfr+") for room in (None, more)]
    for solver in solvers:
        solver.run(20)
    for player in range(2):
        first, second = (solver.average_behaviour(player) for solver in solvers)
        np.testing.assert_allclose(first, second, atol=1e-9)
    with pytest.raises(ValueError, match="does not fit"):
        forced.lay_out(free, layout.shapes_of(*chained()))


@pytest.mark.parametrize(
    "algorithm", ["cfr+", "pdhg", pytest.param("egt", marks=pytest.mark.slow)]
)
def test_solve_removes_forced_moves(algorithm, tmp_path, monkeypatch):
    seen, without = [], forced.without

    def spy(form):
        seen.append(without(form))
        return seen[-1]

    monkeypatch.setattr(forced, "without", spy)
    tree, path = games.compiled("ii_goofspiel4"), tmp_path / "state.npz"
    spiel_cr.solve(tree, algorithm, 100, checkpoint=path)
    result = spiel_cr.solve(tree, algorithm, Goal(200, eval_every=100), checkpoint=path)
    assert [own.size for own in seen[-1].layouts] == [175, 175]
    judged = exploitability.nash_conv(tree.game, result.average_policy())
    assert result.curve[-1].nash_conv == pytest.approx(judged, abs=1e-9)
    straight = spiel_cr.solve(tree, algorithm, 200).average_policy()
    np.testing.assert_array_equal(
        result.average_policy().action_probability_array,
        straight.action_probability_array,
    )
    if algorithm == "cfr+":
        solver = spiel_cr.CFRPlusSolver(tree)
        assert solver._solver.form is seen[-1]
        seen.clear()
        options = spiel_cr.GameOptions(buckets=(np.arange(len(tree.infosets[0])), None))
        spiel_cr.solve(tree, algorithm, 2, options=options)
        assert not seen
