"""The CFR family, compared iterate by iterate with other implementations."""

import math

import jax
import numpy as np
import pytest
from open_spiel.python.algorithms import cfr as openspiel_cfr
from open_spiel.python.algorithms import discounted_cfr

from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import sum_payoffs
from spiel_cr.games.tree import tree_builder
from spiel_cr.policies.best_responses import nash_conv
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS
from spiel_cr.solvers.solve import solve
from tests.support import games, reference
from tests.support.made_games import random_game
from tests.support.strategies import solver_of

# Implementations sum float64 numbers in different orders. Strategies are quotients of
# regrets, which magnifies rounding errors somewhat; over 12 iterations 1e-9 is far
# above them and far below the effect of any difference between algorithms.
TOLERANCE = 1e-9
PLAYERS = (0, 1)


def assert_same_policy(compiled, behaviours, table):
    """Assert that behaviours equal an OpenSpiel TabularPolicy at every infoset."""
    for p, infosets in enumerate(compiled.infosets):
        rows = np.array([table.state_lookup[key] for key in infosets.keys])
        owner = infosets.decisions.owner[1:]
        expected = table.action_probability_array[rows[owner], infosets.actions]
        np.testing.assert_allclose(behaviours[p][1:], expected, rtol=0, atol=TOLERANCE)


def simultaneous(game, plus=False):
    given = {"linear_averaging": plus, "regret_matching_plus": plus}
    return openspiel_cfr._CFRSolver(game, alternating_updates=False, **given)


PEERS = {
    "cfr": openspiel_cfr.CFRSolver,
    "cfr+": openspiel_cfr.CFRPlusSolver,
    "cfr(alternating=false)": simultaneous,
    "cfr+(alternating=false)": lambda game: simultaneous(game, plus=True),
    "dcfr": discounted_cfr.DCFRSolver,
    "dcfr(alpha=2.5,beta=-1.0,gamma=3.0)": lambda game: discounted_cfr.DCFRSolver(
        game, alpha=2.5, beta=-1.0, gamma=3.0
    ),
    "lcfr": discounted_cfr.LCFRSolver,
}
# Implementations differ most in ties, of which goofspiel has many and poker few. Other
# rows, or leduc7, cover the settings of these peers; lcfr is a special case of dcfr.
SELDOM = ("cfr(alternating=false)", "dcfr", "lcfr")
PEER_ROWS = [("goofspiel4", peer) for peer in PEERS if peer not in SELDOM]
PEER_ROWS += [("kuhn", "cfr+"), ("leduc7", "dcfr")]
PEER_ROWS += [
    pytest.param(*row, marks=pytest.mark.slow)
    for row in (
        *(("kuhn", peer) for peer in PEERS if peer != "cfr+"),
        *(("goofspiel4", peer) for peer in SELDOM),
        *(("goofspiel4_descending", peer) for peer in ("cfr", "cfr+")),
        *(("leduc", peer) for peer in ("cfr", "cfr+")),
    )
]
ITERATIONS = 12


@pytest.mark.parametrize(("name", "peer"), PEER_ROWS)
def test_iterates_equal_those_of_openspiel(name, peer):
    """In goofspiel many regrets are exactly zero, and must be treated as ties."""
    compiled = games.compiled(name)
    other = PEERS[peer](compiled.game)
    solver = solver_of(compiled.sequence_form, peer)
    for _ in range(ITERATIONS):
        solver.run(1)
        other.evaluate_and_update_policy()
        current = [solver.current_behaviour(p) for p in PLAYERS]
        assert_same_policy(compiled, current, other.current_policy())
        average = [solver.average_behaviour(p) for p in PLAYERS]
        assert_same_policy(compiled, average, other.average_policy())
    assert solver.iterations == ITERATIONS


RECURSIVE = {
    "cfr": {},
    "cfr+": {"beta": None, "gamma": 1.0},
    "lcfr": {"alpha": 1.0, "beta": 1.0, "gamma": 1.0},
    "dcfr": {"alpha": 1.5, "beta": 0.0, "gamma": 2.0},
    "hs-dcfr(ramp=6)": {"alpha": 3.5, "beta": -3.0, "gamma": 3.0, "ramp": 6},
    "pcfr+": {"beta": None, "gamma": 2.0, "predictive": True},
    "pdcfr+": {"alpha": 2.3, "beta": None, "gamma": 5.0, "predictive": True},
    "pdcfr+(alternating=false)": {
        **{"alpha": 2.3, "beta": None, "gamma": 5.0, "predictive": True},
        "alternating": False,
    },
}
RECURSIVE_ROWS = [("kuhn", name) for name in RECURSIVE]
RECURSIVE_ROWS += [
    pytest.param(*row, marks=pytest.mark.slow)
    for row in (
        ("princess4", "pdcfr+"),
        ("goofspiel4", "pcfr+"),
        ("goofspiel4", "pdcfr+"),
    )
]


def assert_same_as_recursion(compiled, variant, iterations):
    solver = solver_of(compiled.sequence_form, variant)
    other = reference.CFR(reference.Tree(compiled.game), **RECURSIVE[variant])
    for _ in range(iterations):
        solver.run(1)
        other.step()
        assert_same_now(compiled, solver, other)


def assert_same_now(compiled, solver, other):
    for p, infosets in enumerate(compiled.infosets):
        average = solver.average_behaviour(p)
        current = solver.current_behaviour(p)
        first = infosets.decisions.first_sequence
        for i, key in enumerate(infosets.keys):
            at = slice(first[i], first[i] + infosets.decisions.num_actions[i])
            for mine, theirs in ((current, other.policy), (average, other.average())):
                expected = list(theirs[p, key].values())
                np.testing.assert_allclose(mine[at], expected, atol=TOLERANCE)


@pytest.mark.parametrize(("name", "variant"), RECURSIVE_ROWS)
def test_iterates_equal_those_of_the_recursive_reference(name, variant):
    assert_same_as_recursion(games.compiled(name), variant, 12)


@pytest.mark.parametrize("seed", [3, 5])
def test_iterates_equal_the_recursive_reference_on_random_games(seed):
    """The trees have padded blocks, consecutive moves of a player, single actions."""
    game = random_game(seed, turns="by history", max_actions=4, depth=5)
    assert_same_as_recursion(tree_builder.build_tree(game), "dcfr", 8)


def test_updating_player_1_first_equals_swapping_the_players():
    form = games.compiled("goofspiel4_descending").sequence_form
    rows, columns, values = form.payoffs
    swapped = layout.build(
        (form.decisions[1], form.decisions[0]), sum_payoffs(columns, rows, -values)
    )
    second = solver_of(form, "cfr+", first=1, values=True)
    mirrored = solver_of(swapped, "cfr+", values=True)
    for solver in (second, mirrored):
        solver.run(25)
    for p in PLAYERS:
        for what in ("average", "current_behaviour", "infoset_values"):
            np.testing.assert_allclose(
                getattr(second, what)(p), getattr(mirrored, what)(1 - p), atol=TOLERANCE
            )


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_infoset_values_are_means_over_the_iterates(gamma):
    """Player 0 is evaluated against player 1's strategy before its update."""
    compiled = games.compiled("kuhn")
    tree = reference.Tree(compiled.game)
    beta = math.inf if gamma == 0 else None
    other = reference.CFR(tree, beta=beta, gamma=gamma)
    solver = solver_of(
        compiled.sequence_form, "cfr" if gamma == 0 else "cfr+", values=True
    )
    totals = {key: 0.0 for key in tree.infosets}
    for t in range(1, 8):
        before = dict(other.policy)
        other.step()
        # Player 1 responds to the updated strategy of player 0.
        seen = {
            key: other.policy[key] if key[0] == 0 else before[key] for key in before
        }
        for key in totals:
            policy = before if key[0] == 0 else seen
            totals[key] += t**gamma * sum(
                (1 - 2 * key[0])
                * tree.nodes[i].chance
                * tree.own_reach(i, 1 - key[0], policy)
                * reference.value_at(tree, policy, i)
                for i in tree.infosets[key]
            )
    solver.run(7)
    weight = sum(t**gamma for t in range(1, 8))
    for p, infosets in enumerate(compiled.infosets):
        expected = [totals[p, key] / weight for key in infosets.keys]
        np.testing.assert_allclose(
            solver.infoset_values(p), expected, rtol=0, atol=TOLERANCE
        )


def test_infoset_values_require_values_true():
    solver = solver_of(games.compiled("kuhn").sequence_form, "cfr")
    with pytest.raises(ValueError, match="values=True"):
        solver.infoset_values(0)


def test_exploration_bounds_action_probabilities_from_below():
    compiled = games.compiled("kuhn")
    solver = solver_of(compiled.sequence_form, "cfr+(exploration=0.1)")
    for _ in range(5):
        solver.run(40)
        for p in PLAYERS:
            # Each of the two actions has at least half of the exploration of 0.1.
            assert solver.current_behaviour(p).min() >= 0.05 - 1e-12
            assert solver.average_behaviour(p).min() >= 0.05 - 1e-12
    plain = solver_of(compiled.sequence_form, "cfr+")
    plain.run(200)
    assert plain.current_behaviour(0).min() == 0


def test_float32_nash_conv_is_close_to_float64():
    """With epsilon 6e-8 and 100 iterations of sums of about 30 terms, 1e-3 is ample."""
    form = games.compiled("leduc").sequence_form
    conv = {}
    for dtype in (np.float32, np.float64):
        solver = solver_of(form, "cfr+", dtype=dtype)
        solver.run(100)
        assert solver.state.weight.dtype == dtype
        reach = (solver.average(0), solver.average(1))
        behaviours = tuple(solver.average_behaviour(p) for p in PLAYERS)
        # Rows sum to one although the arithmetic was in single precision.
        for p in PLAYERS:
            infosets = form.decisions[p]
            sums = np.bincount(infosets.owner[1:], behaviours[p][1:])
            np.testing.assert_allclose(sums, 1, atol=1e-12)
        conv[dtype] = nash_conv(form, reach)
    assert conv[np.float32] == pytest.approx(conv[np.float64], abs=1e-3)
    assert conv[np.float32] != conv[np.float64]


def test_iterates_are_bitwise_reproducible_for_any_chunks():
    form = games.compiled("goofspiel4").sequence_form
    runs = []
    for chunks in ((60,), (60,), (1, 2, 57)):
        solver = solver_of(form, "pdcfr+", values=True)
        for chunk in chunks:
            solver.run(chunk)
        runs.append(jax.tree.leaves(solver.state))
    for other in runs[1:]:
        for one, two in zip(runs[0], other, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(two).tobytes()


def test_other_payoffs_and_iterations_do_not_recompile():
    """The compiled function depends on shapes and settings only."""
    compiled = games.compiled("kuhn")
    solve(compiled, "cfr+", 10)
    programs = cfr._run._cache_size()
    solve(compiled, "cfr+", 77)
    solve("kuhn_poker", "cfr+", 10)
    payoffs = compiled.sequence_form.payoffs
    louder = payoffs._replace(values=2 * payoffs.values)
    solver_of(
        layout.build(compiled.sequence_form.decisions, louder),
        "cfr+",
        compile="optimised",
    ).run(3)
    assert cfr._run._cache_size() == programs
    # Other settings do compile another function.
    solve(compiled, "cfr+(gamma=1.25)", 10)
    assert cfr._run._cache_size() == programs + 1


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solve_does_not_change_the_precision_of_the_caller(flag, dtype):
    with jax.enable_x64(flag):
        before = solve(games.compiled("kuhn"), "cfr+", 5, dtype=dtype)
        assert jax.config.jax_enable_x64 is flag
        with pytest.raises(ValueError, match="dtype"):
            solve(games.compiled("kuhn"), "cfr+", 5, dtype=np.float16)
        assert jax.config.jax_enable_x64 is flag
        assert jax.numpy.zeros(1).dtype == (np.float64 if flag else np.float32)
    # The result does not depend on the flag.
    again = solve(games.compiled("kuhn"), "cfr+", 5, dtype=dtype)
    for p in PLAYERS:
        assert before.average[p].dtype == np.float64
        np.testing.assert_array_equal(before.average[p], again.average[p])


@pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("dark_hex", marks=pytest.mark.slow)]
)
def test_spare_capacity_does_not_change_results(name):
    """Padded rows, columns and blocks have weight 0; only orders of sums may differ."""
    form = games.compiled(name).sequence_form
    others = [games.compiled(other).sequence_form for other in ("nim", "princess4")]
    capacity = layout.common_shapes(
        [layout.shapes_of(f.decisions, f.payoffs) for f in (form, *others)]
    )
    rounded = layout.build(form.decisions, form.payoffs, capacity=capacity)
    assert rounded.layouts[0].size > form.layouts[0].size
    shapes = [
        jax.tree.map(np.shape, f.arrays)
        for f in (
            rounded,
            layout.build(others[0].decisions, others[0].payoffs, capacity=capacity),
        )
    ]
    assert shapes[0] == shapes[1]
    with pytest.raises(ValueError, match="does not fit"):
        own = layout.shapes_of(form.decisions, form.payoffs)
        layout.build(others[0].decisions, others[0].payoffs, capacity=own)
    solvers = [solver_of(f, "cfr", values=True) for f in (form, rounded)]
    for solver in solvers:
        solver.run(1)
    for p in PLAYERS:
        # After one iteration from uniform play there are no ties to break yet.
        for what in ("average", "infoset_values"):
            one, other = (getattr(solver, what)(p) for solver in solvers)
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)
    for solver in solvers:
        solver.run(299)
    convs = [
        nash_conv(f, (s.average(0), s.average(1)))
        for f, s in zip((form, rounded, rounded), (*solvers, solvers[0]), strict=True)
    ]
    assert convs[1] == pytest.approx(convs[0], rel=0.5)
    # The same strategy has the same NashConv in both forms.
    assert convs[2] == pytest.approx(convs[0], abs=1e-12)


def test_large_states_are_updated_in_place_with_identical_results(monkeypatch):
    """Results are bitwise identical, even if a state is copied and restored."""
    form = tree_builder.build_tree("leduc_poker").sequence_form
    small = cfr.make_solver(form, config=PRESETS["dcfr"])
    monkeypatch.setattr(cfr, "_LARGE_STATE", 0)
    large = cfr.make_solver(form, config=PRESETS["dcfr"])
    assert large._functions.consumes and not small._functions.consumes
    taken = {name: leaf.copy() for name, leaf in large.arrays().items()}
    for solver in (small, large):
        solver.run(7)
    both = zip(small.arrays().values(), large.arrays().values(), strict=True)
    for mine, other in both:
        np.testing.assert_array_equal(mine, other, strict=True)
    kept = large.state
    large.run(5)
    assert int(kept.iteration) == 7 and large.iterations == 12
    unlent = large._state
    large.run(1)
    assert unlent.iteration.is_deleted() and not kept.iteration.is_deleted()
    large.restore(taken, seconds=0.0)
    large.run(7)
    both = zip(small.arrays().values(), large.arrays().values(), strict=True)
    for mine, other in both:
        np.testing.assert_array_equal(mine, other, strict=True)
