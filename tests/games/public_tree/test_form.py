"""The public-tree form equals the game of its individually listed payoffs."""

from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.phantom import phantom_game
from spiel_cr.games.public_tree import form, places, public_terms
from spiel_cr.games.public_tree.payoff_matrices import SparseMatrix
from spiel_cr.games.public_tree.public_terms import Constants, PublicSide, PublicTerms
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.policies import best_responses
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from tests.support import kuhn_public_tree

# Private states of both players by round: narrow and wide slices.
NARROW = ((2, 3, 5), (3, 4, 7))
WIDE = ((2, 9, 23), (3, 8, 30))


def random_parts(sizes, *, weighted, rng, decisions=5):
    """Return random public decisions, private states and payoffs."""
    sides, parents = [], []
    for counts in sizes:
        above = (1, *counts)
        parents.append(
            [
                rng.integers(0, above[r], n).astype(np.int32)
                for r, n in enumerate(counts)
            ]
        )
        parent, actions, rounds = [], [], []
        last = [-1]
        for _ in range(decisions):
            sequence = int(rng.integers(0, len(last)))
            parent.append(sequence)
            actions.append(int(rng.integers(1, 4)))
            rounds.append(int(rng.integers(max(last[sequence], 0), len(counts))))
            last += [rounds[-1]] * actions[-1]
        sides.append(
            PublicSide(
                np.array(parent, np.int32),
                np.array(actions, np.int32),
                np.array(rounds, np.int8),
            )
        )
    payoff_matrices = []
    for round in (0, 1, 2, 2):
        shape = sizes[0][round], sizes[1][round]
        rows, columns = np.nonzero(rng.random(shape) < 0.7)
        values = rng.standard_normal(len(rows))
        entries = Payoffs(rows.astype(np.int32), columns.astype(np.int32), values)
        payoff_matrices.append(SparseMatrix(round, shape, entries))
    last_rounds = [side.sequence_rounds for side in sides]
    terms = []
    while len(terms) < 24:
        pair = [int(rng.integers(0, len(rounds))) for rounds in last_rounds]
        matrix = int(rng.integers(0, len(payoff_matrices)))
        played = [rounds[s] for rounds, s in zip(last_rounds, pair, strict=True)]
        if max(played) <= payoff_matrices[matrix].round:
            terms.append((*pair, matrix))
    first, second, matrix = np.array(terms, np.int32).T
    weights = None
    if weighted:
        private_states = [(1, *counts) for counts in sizes]
        weights = [rng.random(private_states[1][1 + last_rounds[1][s]]) for s in second]
    stake = rng.standard_normal(len(matrix))
    paid = PublicTerms((first, second), matrix, stake, (None, weights))
    constants = []
    for player, counts in enumerate(sizes):
        sequences = rng.choice(np.arange(1, len(last_rounds[player])), 3, replace=False)
        values = [
            rng.standard_normal(counts[last_rounds[player][s]]) for s in sequences
        ]
        constants.append(Constants(player, sequences, values))
    return (
        (sides[0], sides[1]),
        (parents[0], parents[1]),
        payoff_matrices,
        paid,
        constants,
    )


def random_reach(decisions, rng):
    behaviour = np.ones(decisions.num_sequences)
    behaviour[1:] = rng.random(decisions.num_sequences - 1)
    owner = decisions.owner[1:]
    behaviour[1:] /= np.bincount(owner, behaviour[1:])[owner]
    return best_responses.reach_from_behaviour(decisions, behaviour)


@pytest.mark.parametrize("sizes", [pytest.param(NARROW, marks=pytest.mark.slow), WIDE])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_values_equal_those_of_listed_payoffs(sizes, seed):
    rng = np.random.default_rng(seed)
    parts = random_parts(sizes, weighted=False, rng=rng)
    products = form.build(*parts)
    listed = layout.build(products.decisions, products.payoffs)
    reach = [random_reach(own, rng) for own in products.decisions]
    value = best_responses.expected_value(listed, reach)
    rows, columns, values = listed.payoffs
    by_hand = (values * reach[0][rows] * reach[1][columns]).sum()
    assert value == pytest.approx(by_hand, abs=1e-12)
    assert best_responses.expected_value(products, reach) == pytest.approx(
        value, abs=1e-12
    )
    for player in range(2):
        one, other = (
            best_responses.infoset_values(game, player, reach[1 - player])
            for game in (products, listed)
        )
        np.testing.assert_allclose(one, other, atol=1e-12)
        one, other = (
            best_responses.best_response(game, player, reach[1 - player])
            for game in (products, listed)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["cfr+", "dcfr"])
def test_iterates_equal_those_of_listed_payoffs(algorithm):
    parts = random_parts(WIDE, weighted=False, rng=np.random.default_rng(5))
    products = form.build(*parts)
    listed = layout.build(products.decisions, products.payoffs)
    one, other = (
        cfr.make_solver(
            game, config=find(algorithm).config, values=True, compile="fast"
        )
        for game in (products, listed)
    )
    for solver in (one, other):
        solver.run(10)
    for player in range(2):
        np.testing.assert_allclose(
            one.average(player), other.average(player), atol=1e-9
        )
        np.testing.assert_allclose(
            one.infoset_values(player), other.infoset_values(player), atol=1e-9
        )
    assert one.nash_conv() == pytest.approx(other.nash_conv(), abs=1e-9)
    assert one.nash_conv() == pytest.approx(
        best_responses.nash_conv(listed, (other.average(0), other.average(1))), abs=1e-9
    )


def test_weights_affect_only_values_of_the_opponent():
    rng = np.random.default_rng(7)
    sides, parents, payoff_matrices, terms, constants = random_parts(
        WIDE, weighted=True, rng=rng
    )
    parts = sides, parents, payoff_matrices
    weighted = form.build(*parts, terms, constants)
    plain = form.build(*parts, terms._replace(weights=(None, None)), constants)
    reach = [random_reach(own, rng) for own in weighted.decisions]
    # Weights change the values of player 0, but not those of player 1.
    np.testing.assert_allclose(
        best_responses.infoset_values(weighted, 1, reach[0]),
        best_responses.infoset_values(plain, 1, reach[0]),
        atol=1e-12,
    )
    listed = layout.build(weighted.decisions, weighted.payoffs)
    values = best_responses.infoset_values(weighted, 0, reach[1])
    np.testing.assert_allclose(
        values, best_responses.infoset_values(listed, 0, reach[1]), atol=1e-12
    )
    without = best_responses.infoset_values(plain, 0, reach[1])
    assert np.abs(values - without).max() > 1e-3


def test_raises_if_there_are_too_many_payoffs_to_list(monkeypatch):
    parts = random_parts(NARROW, weighted=False, rng=np.random.default_rng(0))
    monkeypatch.setattr(public_terms, "_MOST_LISTED", 10)
    with pytest.raises(GameTooLargeError, match="576 entries, but at most 10"):
        _ = form.build(*parts).payoffs


def test_strategies_do_not_depend_on_the_scale_of_weights():
    """The tolerance for rounding errors scales with the weights."""
    parts = random_parts(WIDE, weighted=True, rng=np.random.default_rng(3))
    sides, parents, payoff_matrices, terms, _ = parts
    found = []
    for scale in (0, -60):
        weights = [np.ldexp(own, scale) for own in terms.weights[1]]
        scaled = terms._replace(weights=(None, weights))
        game = form.build(sides, parents, payoff_matrices, scaled)
        solver = cfr.make_solver(game, config=find("cfr+").config, compile="fast")
        solver.run(10)
        found.append(solver.average(0))
    np.testing.assert_array_equal(*found)


def test_positions_of_large_games_are_not_cached(monkeypatch):
    game = kuhn_public_tree.kuhn()
    small = game.build_sequence_form(products=True).layouts
    monkeypatch.setattr(places, "_LARGE", 0)
    large = game.build_sequence_form(products=True).layouts
    for kept, made in zip(small, large, strict=True):
        assert kept.sequences is kept.sequences
        assert made.sequences is not made.sequences
        np.testing.assert_array_equal(made.sequences, kept.sequences)
        np.testing.assert_array_equal(made.infosets, kept.infosets)


def test_evaluation_of_large_games_equals_that_of_small_ones(monkeypatch):
    solved = kuhn_public_tree.kuhn().build_sequence_form(products=True)
    solver = cfr.make_solver(solved, config=find("dcfr").config)
    solver.run(20)
    played = solver.average_behaviour(0), solver.average_behaviour(1)

    def evaluate():
        reach = best_responses.reach_of(solved, played)
        return (
            solver.nash_conv(),
            best_responses.behaviour_value(solved, played),
            best_responses.expected_value(solved, reach),
            best_responses.value_bounds(solved, played),
            *best_responses.action_values(solved, 0, reach[1], played[0]),
            best_responses.infoset_values(solved, 1, reach[0]),
            best_responses.best_response(solved, 1, reach[0]),
        )

    at_once = evaluate()
    for name in ("_evaluate", "_expected", "_reach_of_sums"):
        monkeypatch.setattr(best_responses, name, None)
    monkeypatch.setattr(best_responses, "_LARGE", 0)
    for ours, theirs in zip(evaluate(), at_once, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)


def test_forms_are_pickled_to_other_processes():
    """All forms are tested."""
    public_tree_game = kuhn_public_tree.kuhn()
    for laid in (
        spiel_cr.build_tree("kuhn_poker").sequence_form,
        public_tree_game.sequence_form,
        public_tree_game.build_sequence_form(products=True),
        phantom_game("dark_hex(num_rows=2,num_cols=2)").sequence_form,
    ):
        again = ForkingPickler.loads(ForkingPickler.dumps(laid))
        for player in range(2):
            np.testing.assert_array_equal(
                again.layouts[player].sequences, laid.layouts[player].sequences
            )
            assert len(again.decisions[player]) == len(laid.decisions[player])
