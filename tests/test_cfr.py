"""The CFR family: iterate by iteration against other implementations, then figures."""

import functools
import math

import games
import jax
import numpy as np
import pytest
import reference
from made_games import CHANCE, TERMINAL, MadeGame, Node, random_game
from open_spiel.python.algorithms import cfr as openspiel_cfr
from open_spiel.python.algorithms import discounted_cfr, exploitability

from spiel_cr import algorithm, best_response, cfr, sequence_form, solving
from spiel_cr import policy as policy_lib
from spiel_cr import tree as tree_lib

# Doubles in another order of summation. Strategies are quotients of regrets, which
# magnifies rounding somewhat; over 20 iterations 1e-9 is far above it and far below
# the effect of any difference between algorithms.
TOLERANCE = 1e-9
PLAYERS = (0, 1)


def solver_of(form, name, **options):
    return cfr.Solver(form, config=algorithm.parse_algorithm(name), **options)


def average_behaviour(solver, player):
    decisions = solver.form.decisions[player]
    return policy_lib.behaviour_from_reach(decisions, solver.average(player))


def assert_same_policy(compiled, behaviours, table):
    """Behaviours equal an OpenSpiel TabularPolicy at every infoset."""
    for p, infosets in enumerate(compiled.infosets):
        rows = np.array([table.state_lookup[key] for key in infosets.keys])
        owner = infosets.decisions.owner[1:]
        expected = table.action_probability_array[rows[owner], infosets.actions]
        np.testing.assert_allclose(behaviours[p][1:], expected, rtol=0, atol=TOLERANCE)


def simultaneous(game):
    return openspiel_cfr._CFRSolver(
        game,
        alternating_updates=False,
        linear_averaging=False,
        regret_matching_plus=False,
    )


def simultaneous_plus(game):
    return openspiel_cfr._CFRSolver(
        game,
        alternating_updates=False,
        linear_averaging=True,
        regret_matching_plus=True,
    )


PEERS = {
    "cfr": openspiel_cfr.CFRSolver,
    "cfr+": openspiel_cfr.CFRPlusSolver,
    "cfr(alternating=false)": simultaneous,
    "cfr+(alternating=false)": simultaneous_plus,
    "dcfr": discounted_cfr.DCFRSolver,
    "dcfr(alpha=2.5,beta=-1.0,gamma=3.0)": lambda game: discounted_cfr.DCFRSolver(
        game, alpha=2.5, beta=-1.0, gamma=3.0
    ),
    "lcfr": discounted_cfr.LCFRSolver,
}
PEER_ROWS = [(name, peer) for name in ("kuhn", "goofspiel4") for peer in PEERS]
PEER_ROWS += [("leduc", "cfr"), ("leduc", "cfr+"), ("leduc7", "dcfr")]


@pytest.mark.parametrize(("name", "peer"), PEER_ROWS)
def test_every_iterate_is_openspiels(name, peer):
    compiled = games.compiled(name)
    other = PEERS[peer](compiled.game)
    solver = solver_of(compiled.form, peer)
    for _ in range(20):
        other.evaluate_and_update_policy()
        solver.run(1)
        current = [solver.current_behaviour(p) for p in PLAYERS]
        assert_same_policy(compiled, current, other.current_policy())
        average = [average_behaviour(solver, p) for p in PLAYERS]
        assert_same_policy(compiled, average, other.average_policy())
    assert solver.iterations == 20


RECURSIVE = {
    "cfr": {},
    "cfr+": {"beta": None, "gamma": 1.0},
    "lcfr": {"alpha": 1.0, "beta": 1.0, "gamma": 1.0},
    "dcfr": {"alpha": 1.5, "beta": 0.0, "gamma": 2.0},
    "pcfr+": {"beta": None, "gamma": 2.0, "predictive": True},
    "pdcfr+": {"alpha": 2.3, "beta": None, "gamma": 5.0, "predictive": True},
    "pdcfr+(alternating=false)": {
        **{"alpha": 2.3, "beta": None, "gamma": 5.0, "predictive": True},
        "alternating": False,
    },
}
RECURSIVE_ROWS = [("kuhn", name) for name in RECURSIVE]
RECURSIVE_ROWS += [("goofspiel4", "pcfr+"), ("goofspiel4", "pdcfr+")]
RECURSIVE_ROWS += [("princess4", "pdcfr+"), ("leduc7", "pdcfr+")]


def assert_same_as_recursion(compiled, tree, solver, other):
    for p, infosets in enumerate(compiled.infosets):
        average = average_behaviour(solver, p)
        current = solver.current_behaviour(p)
        first = infosets.decisions.first_sequence
        for i, key in enumerate(infosets.keys):
            at = slice(first[i], first[i] + infosets.decisions.num_actions[i])
            for mine, theirs in ((current, other.policy), (average, other.average())):
                expected = list(theirs[p, key].values())
                np.testing.assert_allclose(mine[at], expected, atol=TOLERANCE)


@pytest.mark.parametrize(("name", "variant"), RECURSIVE_ROWS)
def test_every_iterate_is_the_recursions(name, variant):
    compiled = games.compiled(name)
    tree = reference.Tree(compiled.game)
    other = reference.CFR(tree, **RECURSIVE[variant])
    solver = solver_of(compiled.form, variant)
    for _ in range(12):
        other.step()
        solver.run(1)
        assert_same_as_recursion(compiled, tree, solver, other)


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_random_games_against_the_recursion(seed):
    """Uneven trees: padded blocks, players who move several times, single actions."""
    game = random_game(seed, turns="by history", max_actions=4, depth=5)
    compiled = tree_lib.compile_game(game)
    tree = reference.Tree(game)
    other = reference.CFR(tree, **RECURSIVE["dcfr"])
    solver = solver_of(compiled.form, "dcfr")
    for _ in range(8):
        other.step()
        solver.run(1)
        assert_same_as_recursion(compiled, tree, solver, other)


def test_the_second_player_may_update_first():
    """Equal to the game with the players swapped."""
    form = games.compiled("goofspiel4_descending").form
    rows, columns, values = form.payoffs
    swapped = sequence_form.build(
        (form.decisions[1], form.decisions[0]),
        sequence_form.sum_payoffs(columns, rows, -values),
    )
    second = solver_of(form, "cfr+", first=1, values=True)
    mirrored = solver_of(swapped, "cfr+", values=True)
    for solver in (second, mirrored):
        solver.run(25)
    for p in PLAYERS:
        for what in ("average", "current", "infoset_values"):
            np.testing.assert_allclose(
                getattr(second, what)(p),
                getattr(mirrored, what)(1 - p),
                atol=TOLERANCE,
            )


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_infoset_values_are_means_over_the_iterates(gamma):
    """The first player's values come with the other's strategies at the same time."""
    compiled = games.compiled("kuhn")
    tree = reference.Tree(compiled.game)
    beta = math.inf if gamma == 0 else None
    other = reference.CFR(tree, beta=beta, gamma=gamma)
    solver = solver_of(compiled.form, "cfr" if gamma == 0 else "cfr+", values=True)
    totals = {key: 0.0 for key in tree.infosets}
    for t in range(1, 8):
        before = dict(other.policy)
        other.step()
        # Player 1 answers what player 0 has just become.
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


def test_infoset_values_must_be_asked_for():
    solver = solver_of(games.compiled("kuhn").form, "cfr")
    with pytest.raises(ValueError, match="values=True"):
        solver.infoset_values(0)


def test_exploration_keeps_every_action_alive():
    compiled = games.compiled("kuhn")
    solver = solver_of(compiled.form, "cfr+(exploration=0.1)")
    for _ in range(5):
        solver.run(40)
        for p in PLAYERS:
            # Two actions: each at least half of 0.1.
            assert solver.current_behaviour(p).min() >= 0.05 - 1e-12
            assert average_behaviour(solver, p).min() >= 0.05 - 1e-12
    plain = solver_of(compiled.form, "cfr+")
    plain.run(200)
    assert plain.current_behaviour(0).min() == 0


def test_float32_stays_close():
    """Epsilon 6e-8; 100 iterations of sums of some 30 terms on leduc: 1e-3 is ample."""
    form = games.compiled("leduc").form
    conv = {}
    for dtype in (np.float32, np.float64):
        solver = solver_of(form, "cfr+", dtype=dtype)
        solver.run(100)
        assert solver.state.weight.dtype == dtype
        reach = (solver.average(0), solver.average(1))
        behaviours = tuple(average_behaviour(solver, p) for p in PLAYERS)
        # Rows sum to one although the arithmetic was single.
        for p in PLAYERS:
            infosets = form.decisions[p]
            sums = np.bincount(infosets.owner[1:], behaviours[p][1:])
            np.testing.assert_allclose(sums, 1, atol=1e-12)
        conv[dtype] = best_response.nash_conv(form, reach)
    assert conv[np.float32] == pytest.approx(conv[np.float64], abs=1e-3)
    assert conv[np.float32] != conv[np.float64]


def test_same_bits_twice_however_it_is_chopped():
    form = games.compiled("goofspiel4").form
    runs = []
    for chunks in ((60,), (60,), (1, 2, 57)):
        solver = solver_of(form, "pdcfr+", values=True)
        for chunk in chunks:
            solver.run(chunk)
        runs.append(jax.tree.leaves(solver.state))
    for other in runs[1:]:
        for one, two in zip(runs[0], other, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(two).tobytes()


def test_no_second_compilation():
    """The program depends on shapes and settings only, not on values or counts."""
    compiled = games.compiled("kuhn")
    solving.solve(compiled, "cfr+", 10)
    programs = cfr._run._cache_size()
    solving.solve(compiled, "cfr+", 77)
    solving.solve("kuhn_poker", "cfr+", 10)
    payoffs = compiled.form.payoffs
    louder = payoffs._replace(values=2 * payoffs.values)
    solver_of(sequence_form.build(compiled.form.decisions, louder), "cfr+").run(3)
    assert cfr._run._cache_size() == programs
    # The counter does count.
    solving.solve(compiled, "cfr+(gamma=1.25)", 10)
    assert cfr._run._cache_size() == programs + 1


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_callers_precision_is_unchanged(flag, dtype):
    with jax.enable_x64(flag):
        before = solving.solve(games.compiled("kuhn"), "cfr+", 5, dtype=dtype)
        assert jax.config.jax_enable_x64 is flag
        with pytest.raises(ValueError, match="dtype"):
            solving.solve(games.compiled("kuhn"), "cfr+", 5, dtype=np.float16)
        assert jax.config.jax_enable_x64 is flag
        expected = dtype if flag else np.float32
        assert jax.numpy.zeros(1, np.float64).dtype == (
            np.float64 if flag else np.float32
        ), expected
    # What comes out does not depend on the flag.
    again = solving.solve(games.compiled("kuhn"), "cfr+", 5, dtype=dtype)
    for p in PLAYERS:
        assert before.average[p].dtype == np.float64
        np.testing.assert_array_equal(before.average[p], again.average[p])


@functools.lru_cache(maxsize=None)
def nash_convs(name, variant):
    """After 100 and after 1000 iterations, by OpenSpiel."""
    compiled = games.compiled(name)
    solver = solver_of(compiled.form, variant)
    result = []
    for more in (100, 900):
        solver.run(more)
        table = policy_lib.tabular_policy(
            compiled, [average_behaviour(solver, p) for p in PLAYERS]
        )
        result.append(exploitability.nash_conv(compiled.game, table))
    return result


# Printed figures of other programs for the same schedules (leduc CFR and CFR+ agree
# with OpenSpiel's solvers), with two or three digits: half a last digit, or, where
# only one digit is printed, half of the figure.
@pytest.mark.parametrize(
    ("name", "variant", "early", "late"),
    [
        ("leduc", "cfr", (0.191, 0.0005), (0.0236, 0.00005)),
        ("leduc", "cfr+", (0.0268, 0.00005), (5.1e-4, 5e-6)),
        ("leduc", "dcfr", (0.0156, 0.00005), (3.6e-4, 5e-6)),
        ("leduc", "pcfr+", (0.040, 0.0005), (1.4e-3, 5e-5)),
        ("goofspiel5_descending", "cfr", (0.108, 0.0005), (0.0147, 0.00005)),
        ("goofspiel5_descending", "cfr+", (0.0211, 0.00005), (7.1e-4, 5e-6)),
        ("goofspiel5_descending", "pcfr+", (0.0178, 0.00005), (9e-5, 5e-6)),
        ("goofspiel5_descending", "pdcfr+", (0.019, 0.0005), (1.5e-5, 5e-7)),
        ("goofspiel5", "cfr+", (0.0170, 0.00005), (5.2e-4, 5e-6)),
        ("goofspiel5", "pdcfr+", (0.0086, 0.00005), (1e-6, 5e-7)),
    ],
)
def test_nash_conv_of_reference_runs(name, variant, early, late):
    found = nash_convs(name, variant)
    for nash_conv, (printed, rounding) in zip(found, (early, late), strict=True):
        assert nash_conv == pytest.approx(printed, abs=rounding * 1.02)


@pytest.mark.slow
def test_liars_dice_of_reference_runs():
    compiled = tree_lib.compile_game("liars_dice(numdice=1,dice_sides=6)")
    for variant, printed in (("cfr", (0.0449, 0.0053)), ("cfr+", (0.0098, 2.5e-4))):
        solver = solver_of(compiled.form, variant)
        for more, figure in zip((100, 900), printed, strict=True):
            solver.run(more)
            reach = (solver.average(0), solver.average(1))
            found = best_response.nash_conv(compiled.form, reach)
            assert found == pytest.approx(figure, rel=0.02)


# Every algorithm on every game. Bounds on NashConv after 300 iterations: the range of
# utilities times a figure about twice the worst seen, plain CFR being the slowest.
CONTRACT_GAMES = ("kuhn", "goofspiel4", "princess4", "dark_hex")
SLOW_CONTRACT_GAMES = tuple(
    case.name for case in games.SMALL if case.name not in CONTRACT_GAMES
)
BOUNDS = {
    "cfr": 0.03,
    "cfr+": 0.01,
    "lcfr": 0.01,
    "dcfr": 0.01,
    "pcfr+": 0.01,
    "pdcfr+": 0.01,
}


@pytest.mark.parametrize("variant", algorithm.PRESETS)
@pytest.mark.parametrize(
    "name",
    [
        *CONTRACT_GAMES,
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_CONTRACT_GAMES),
    ],
)
def test_contract(name, variant):
    compiled, case = games.compiled(name), games.BY_NAME[name]
    result = solving.solve(compiled, variant, 300)
    for policy in (result.average_policy(), result.current_policy()):
        table = policy.action_probability_array
        assert np.isfinite(table).all() and (table >= 0).all()
        assert (table[policy.legal_actions_mask == 0] == 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
        assert len(table) == sum(case.infosets)
    found = exploitability.nash_conv(compiled.game, result.average_policy())
    assert -1e-9 <= found <= BOUNDS[variant] * case.utility_range
    reach = best_response.reach_of(compiled.form, result.average)
    value = best_response.expected_value(compiled.form, reach)
    # The value of a profile is within its NashConv of the game's.
    assert abs(value - case.value) <= found + case.tolerance + 1e-9
    assert result.iterations == 300 and result.solves == 1
    assert result.iterations_per_second > 0


def nobody(path):
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    return Node(TERMINAL, utility=float(path[0]))


def only_the_second(path):
    if not path:
        return Node(1, (0, 1, 2), ("a", "b"))
    return Node(TERMINAL, utility=[1.0, -1.0, 0.0][path[0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_players_who_never_act(dtype):
    result = solving.solve(MadeGame(nobody, "nobody"), "cfr+", 5, dtype=dtype)
    assert [list(b) for b in result.average] == [[1.0], [1.0]]
    game = MadeGame(only_the_second, "second")
    result = solving.solve(game, "cfr+", 100, dtype=dtype)
    assert result.average[1][2] > 0.99
    assert result.average_policy().action_probability_array.shape == (1, 16)


def test_worthless_games_stay_uniform():
    """No line of four fits on a 3 x 3 board: all utilities are 0, no payoffs at all."""
    result = solving.solve("connect_four(rows=3,columns=3)", "pdcfr+", 5)
    for p, infosets in enumerate(result.tree.infosets):
        uniform = policy_lib.uniform_behaviour(infosets.decisions)
        np.testing.assert_allclose(result.average[p], uniform, rtol=1e-12)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True, math.nan, None, "many"])
def test_bad_iterations_are_refused(iterations):
    with pytest.raises((ValueError, TypeError), match="iterations"):
        solving.solve("kuhn_poker", "cfr", iterations)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "choose one of cfr"),
        ("CFR", "choose one of cfr"),
        ("cfr(x=1)", "unknown parameter 'x'"),
        ("cfr(", "cannot be read"),
        ("cfr(alpha)", "alpha"),
        ("cfr+(gamma=-1)", "gamma=-1"),
        ("cfr+(gamma=inf)", "gamma=inf"),
        ("dcfr(alpha=much)", "alpha='much' must be a number"),
        ("dcfr(alpha=-inf)", "alpha=-inf"),
        ("dcfr(beta=nan)", "beta=nan"),
        ("cfr(alternating=2)", "alternating=2 must be true or false"),
        ("cfr(exploration=2)", "exploration=2"),
    ],
)
def test_bad_algorithms_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        algorithm.parse_algorithm(name)


def test_algorithm_strings():
    config = algorithm.parse_algorithm("dcfr(alpha=inf,beta=-inf,gamma=3)")
    assert (config.rule.alpha, config.rule.beta) == (math.inf, -math.inf)
    assert config.gamma == 3 and config.alternating
    assert algorithm.parse_algorithm(config) is config
    assert algorithm.parse_algorithm("cfr(beta=-inf,gamma=1)") == (
        algorithm.PRESETS["cfr+"]
    )
    assert not algorithm.parse_algorithm("cfr(alternating=False)").alternating
