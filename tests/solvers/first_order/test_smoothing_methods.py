"""Methods with prox functions: their optimality conditions, bounds and rates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spiel_cr
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.first_order import regularisers
from spiel_cr.solvers.first_order.solvers import make_solver
from tests.solvers.test_deep_trees import centipede
from tests.support import games

PROX = ("euclidean", "entropy")
# One compiled function for each tree, instead of one for each operation.
respond = jax.jit(regularisers.respond, static_argnames="prox")


def form_of(name):
    if name == "liars_dice_1x3":
        return spiel_cr.build_tree("liars_dice(numdice=1,dice_sides=3)").sequence_form
    return games.compiled(name).sequence_form


def solver_of(name, algorithm):
    return make_solver(form_of(name), config=find(algorithm).config)


def scaled_weights(form, player):
    weight = regularisers.make_weights(form, player)
    return weight / weight.max()


def local_prox(prox, probabilities, count):
    """Compute a prox function of a simplex, centred at the uniform distribution."""
    if prox == "euclidean":
        return ((probabilities - 1 / count) ** 2).sum() / 2
    positive = probabilities[probabilities > 0]
    return (positive * np.log(positive * count)).sum()


def dilated_prox(prox, form, player, weight, reach):
    """Compute the dilated prox function infoset by infoset in plain Python."""
    decisions, total = form.decisions[player], 0.0
    for infoset, count in enumerate(decisions.num_actions):
        first = decisions.first_sequence[infoset]
        above = reach[decisions.parent[infoset]]
        if above > 0:
            shares = reach[first : first + count] / above
            total += weight[infoset] * above * local_prox(prox, shares, count)
    return total


def random_reach(form, player, rng):
    """Return the sequence form of a random behaviour strategy, float64 [S]."""
    decisions = form.decisions[player]
    reach = np.zeros(decisions.num_sequences)
    reach[0] = 1
    for infoset in np.argsort(decisions.first_sequence):
        first, count = decisions.first_sequence[infoset], decisions.num_actions[infoset]
        shares = rng.dirichlet(np.full(count, 0.5))
        reach[first : first + count] = reach[decisions.parent[infoset]] * shares
    return reach


@pytest.mark.parametrize("prox", PROX)
@pytest.mark.parametrize("name", ["kuhn", "liars_dice_1x3"])
def test_smoothed_responses_are_optimal(name, prox):
    """No random strategy has a larger value than the response, by slow code."""
    rng = np.random.default_rng(1)
    form = form_of(name)
    for player in range(2):
        tree, places = form.arrays[player], form.layouts[player].sequences
        problem = regularisers.smoothed_problem(form, form.arrays, prox)
        weights, weight = problem.weights[player], scaled_weights(form, player)
        slope = rng.normal(size=form.layouts[player].size)
        answer = respond(tree, prox, weights, jnp.asarray(slope), jnp.asarray(0.3))
        slope = slope[places]

        def value(reach, slope=slope, player=player, weight=weight):
            return slope @ reach - 0.3 * dilated_prox(prox, form, player, weight, reach)

        reach = np.asarray(treeplex.reach(tree, answer.strategy))[places]
        assert value(reach) == pytest.approx(float(answer.value), abs=1e-9)
        others = [value(random_reach(form, player, rng)) for _ in range(200)]
        near = [
            value(0.99 * reach + 0.01 * random_reach(form, player, rng))
            for _ in range(200)
        ]
        assert max(others + near) < value(reach) + 1e-12


@pytest.mark.parametrize("prox", PROX)
def test_diameters_equal_the_largest_prox_values(prox):
    """On Kuhn poker, a prox function is largest at a pure strategy."""
    form = games.compiled("kuhn").sequence_form
    problem = regularisers.smoothed_problem(form, form.arrays, prox)
    for player in range(2):
        decisions = form.decisions[player]
        weight = scaled_weights(form, player)
        largest = 0.0
        for number in range(2 ** len(decisions)):
            reach = np.zeros(decisions.num_sequences)
            reach[0] = 1
            for infoset in np.argsort(decisions.first_sequence):
                chosen = decisions.first_sequence[infoset] + (number >> infoset) % 2
                reach[chosen] = reach[decisions.parent[infoset]]
            value = dilated_prox(prox, form, player, weight, reach)
            largest = max(largest, value)
        assert float(problem.diameters[player]) == pytest.approx(largest)


@pytest.mark.parametrize(
    "algorithm",
    [
        "egt",
        "egt(prox=entropy)",
        "egt(aggressive=false)",
        "egt(balancing=false)",
    ],
)
def test_excessive_gap_bounds_nash_conv(algorithm):
    solver = solver_of("kuhn", algorithm)
    bounds = []
    for _ in range(4):
        solver.run(20)
        state = solver.state
        assert float(state.excess) <= 1e-12
        bound = float(state.smoothing @ solver.problem.diameters)
        bounds.append(np.ldexp(bound, solver.exponent))
        assert solver.nash_conv() <= bounds[-1] + 1e-12
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] < bounds[0] / 2


def test_step_lengths_without_the_heuristic_follow_the_theory():
    """Step k has length 2 / (k + 2); the heuristic halves its first length."""
    fast, slow = (solver_of("kuhn", name) for name in ("egt", "egt(aggressive=false)"))
    for iterations in (1, 9, 50):
        fast.run(iterations)
        slow.run(iterations)
        assert slow.state.smoothing.min() > 0
        expected = 2 / (int(slow.state.iteration) + 2)
        assert float(slow.state.share) == pytest.approx(expected, rel=1e-12)
        halvings = np.log2(0.45 / float(fast.state.share))
        assert halvings == pytest.approx(round(halvings), abs=1e-9)
    assert float(fast.state.share) < 0.45 / 2


def test_deep_trees_are_rejected():
    form = spiel_cr.build_tree(centipede(3000)).sequence_form
    assert form.arrays[0].ancestors
    with pytest.raises(ValueError, match="use pdhg or dcfr"):
        regularisers.smoothed_problem(form, form.arrays, "entropy")


@pytest.mark.slow
def test_egt_converges_on_leduc():
    """The budget counts gradients; each is a product for each player."""
    solver = solver_of("leduc", "egt")
    for gradients, bar in ((1000, 8e-3), (3000, 2.3e-3)):
        while int(solver.state.products) < 2 * gradients:
            solver.run(10)
        assert solver.nash_conv() <= bar


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuhn", "liars_dice_1x3"])
def test_iterated_smoothing_converges_linearly(name):
    """Steps are linear in log(1/NashConv) over more than four decades."""
    solver = solver_of(name, "iterated-smoothing")
    steps, logs = [], []
    for _ in range(400):
        solver.run(25)
        nash_conv = solver.nash_conv()
        if nash_conv < 1e-10:
            break
        steps.append(solver.iterations)
        logs.append(-np.log10(nash_conv))
    assert logs[-1] - logs[0] > 4
    assert np.corrcoef(steps, logs)[0, 1] > 0.97


def test_float32_runs_keep_float32_states():
    form = games.compiled("kuhn").sequence_form
    for algorithm in ("egt", "iterated-smoothing"):
        solver = make_solver(form, config=find(algorithm).config, dtype=np.float32)
        solver.run(50)
        leaves = jax.tree.leaves(solver.state)
        assert {str(leaf.dtype) for leaf in leaves} <= {"float32", "int32"}
        assert 0 <= solver.nash_conv() < 0.05
