"""MCCFR solvers through the public interface: contract, options and checkpoints."""

import functools

import jax
import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.jax_utils import spread
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr_config as algorithm
from spiel_cr.solvers.mccfr import branching_walk, mccfr, visited
from tests.support import games
from tests.support.solving import assert_same, solve_with

PLAYERS = (0, 1)
# Small batches suffice, because speed is not tested here.
BATCH = 32
PRESETS = tuple(algorithm.SAMPLED_PRESETS)

# Together with the slow rows, every value of every option; each row is compiled.
VARIANTS = (
    "os-mccfr(batch=33,exploration=0.01,baseline=average,decay=0.3,predictive=true)",
    "es-mccfr(batch=32,alternating=false,gamma=1)",
    "as-mccfr(batch=32,bonus=1,threshold=2)",
)
VARIED = tuple(name for name in PRESETS if any(v.startswith(name) for v in VARIANTS))
ROWS = [("kuhn", variant) for variant in VARIANTS]
# Presets that no variant above uses; the others are among the slow rows.
OTHERS = [("kuhn", f"{name}(batch={BATCH})") for name in PRESETS if name not in VARIED]
# Its baseline and its rule are covered by other rows.
PLAIN = ("kuhn", f"vr-mccfr(batch={BATCH})")
ROWS += [row for row in OTHERS if row != PLAIN]
# A game of another shape: one level and no chance.
ROWS += [("matrix_rps", "evr-mccfr(batch=32)")]
# These take long to compile.
SLOW_ROWS = [
    PLAIN,
    ("kuhn", "os-mccfr(batch=32,explore=balanced)"),
    ("leduc7", "os-mccfr(batch=32)"),
    ("goofspiel4", "os-mccfr(batch=32)"),
    ("goofspiel3_simultaneous", "as-mccfr(batch=32)"),
    *(("hex", f"{name}(batch=32)") for name in ("es-mccfr", "os-mccfr")),
    ("leduc7", "es-mccfr(batch=32)"),
    ("dark_hex", "as-mccfr(batch=32)"),
    ("princess4", "evr-mccfr(batch=32)"),
    ("goofspiel4", "evr-mccfr(batch=32)"),
]
slow = pytest.mark.slow


@functools.cache
def solved(name: str, variant: str, seed: int = 0, iterations: int = 60):
    return spiel_cr.solve(games.compiled(name), variant, iterations, seed=seed)


def differ(result, other) -> bool:
    return any((result.average[p] != other.average[p]).any() for p in PLAYERS)


@pytest.mark.parametrize(
    ("name", "variant"), [*ROWS, *(pytest.param(*row, marks=slow) for row in SLOW_ROWS)]
)
def test_solver_contract(name, variant):
    case, result = games.BY_NAME[name], solved(name, variant)
    for p, infosets in enumerate(result.tree.infosets):
        owner = infosets.decisions.owner[1:]
        for behaviour in (result.average[p], result.current[p]):
            assert behaviour.dtype == np.float64 and behaviour[0] == 1
            assert np.isfinite(behaviour).all() and (behaviour >= 0).all()
            sums = np.bincount(owner, behaviour[1:], len(infosets))
            # Sums of the last iterate have the rounding errors of single precision.
            np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-6)
        sums = np.bincount(owner, result.average[p][1:], len(infosets))
        np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-12)
    batch = find(variant).config.batch
    assert result.trajectories == 2 * 60 * batch
    assert (result.iterations, result.algorithm) == (60, variant)
    reach = reach_of(result.tree.sequence_form, result.average)
    value = best_responses.expected_value(result.tree.sequence_form, reach)
    found = result.nash_conv()
    assert abs(value - case.value) <= found + case.tolerance + 1e-9
    # Sixty iterations of a few trajectories already improve on uniform play.
    assert found < case.uniform or case.uniform == 0
    programs = mccfr.compilations()
    again = spiel_cr.solve(games.compiled(name), variant, 60, seed=0)
    assert_same(again, result)
    other = spiel_cr.solve(games.compiled(name), variant, 60, seed=1)
    assert differ(other, result)
    # The compiled function does not depend on the seed or the number of iterations.
    spiel_cr.solve(games.compiled(name), variant, 7, seed=2)
    assert mccfr.compilations() == programs


def test_compilations_are_counted():
    programs = mccfr.compilations()
    spiel_cr.solve(games.compiled("matrix_rps"), "os-mccfr(batch=3)", 2)
    assert mccfr.compilations() == programs + 1


# Bounds are about four times the results of these seeds when the test was written, to
# allow for other hardware and versions; uniform play has 0.92 (Kuhn) and 4.7 (Leduc).
BOUNDS = [
    ("kuhn", VARIANTS[-1], 600, 0.12),
    ("kuhn", "os-mccfr(batch=1)", 4000, 0.3),
    pytest.param("leduc7", "os-mccfr(batch=32)", 2000, 0.8, marks=slow),
    pytest.param("leduc", "evr-mccfr", 80, 1.0, marks=slow),
]


@pytest.mark.parametrize(("name", "variant", "iterations", "bound"), BOUNDS)
def test_nash_conv_is_below_its_bound(name, variant, iterations, bound):
    """The seed is fixed, so results are the same on every run on one machine."""
    result = solved(name, variant, 0, iterations)
    found = result.nash_conv()
    assert 0 < found < bound
    assert found < games.BY_NAME[name].uniform / 3


def test_exploration_bounds_action_probabilities_from_below():
    result = solved("kuhn", VARIANTS[0])
    for p in PLAYERS:
        assert result.current[p].min() > 0.005 - 1e-6
    assert solved("kuhn", "os-mccfr(batch=32)").current[0].min() < 0.005


def test_checkpoint_rejects_a_run_with_other_settings(tmp_path):
    variant, path = "evr-mccfr(batch=32)", tmp_path / "checkpoint"
    compiled = games.compiled("matrix_rps")
    solve_with(compiled, variant, 30, checkpoint_path=path, seed=4)
    content = path.read_bytes()
    for other in ({"seed": 5}, {"dtype": "float64"}, {"algorithm": "os-mccfr"}):
        given = {"algorithm": variant, "seed": 4} | other
        what = next(iter(other))
        with pytest.raises(ValueError, match=f"is a checkpoint with {what}"):
            solve_with(compiled, iterations=60, checkpoint_path=path, **given)
    assert path.read_bytes() == content


@pytest.mark.parametrize("flag", [False, True])
def test_default_dtype_is_float32_whatever_the_jax_flag(flag):
    """Runs do not change the caller's flag, and do not depend on it."""
    compiled, variant = games.compiled("kuhn"), "evr-mccfr(batch=32)"
    with jax.enable_x64(flag):
        single = spiel_cr.solve(compiled, variant, 60)
        double = spiel_cr.solve(compiled, variant, 60, dtype="float64")
        assert jax.config.jax_enable_x64 is flag
        assert jax.numpy.zeros(1).dtype == (np.float64 if flag else np.float32)
    assert_same(single, solved("kuhn", variant))
    assert differ(single, double)
    # The draws are the same; regret matching may magnify rounding errors.
    assert double.nash_conv() == pytest.approx(single.nash_conv(), abs=0.05)
    solver = mccfr.make_solver(compiled, config=find(variant).config)
    assert solver.dtype == np.float32
    assert solver.state.weight.dtype == np.float32


def test_parses_algorithm_strings():
    config = find(
        "evr-mccfr(epsilon=0.5,baseline=average,decay=0.25,batch=7,"
        "averaging=sampled,explore=uniform,incremental=true,delta=0.5,alpha=1.5)"
    ).config
    assert isinstance(config, algorithm.MCCFRConfig)
    assert (config.epsilon, config.baseline, config.decay) == (0.5, "average", 0.25)
    assert (config.batch, config.averaging) == (7, "sampled")
    assert (config.explore, config.incremental, config.delta) == ("uniform", True, 0.5)
    assert config.rule.alpha == 1.5 and config.rule.beta == -np.inf
    assert find(config).config is config


def test_average_strategy_sampling_skips_actions():
    """With the preset's bonus, which is the paper's, short runs follow all actions."""
    external, average = "es-mccfr(batch=32)", "as-mccfr(batch=32)"
    assert not differ(solved("kuhn", external), solved("kuhn", average))
    assert differ(solved("kuhn", external), solved("kuhn", VARIANTS[-1]))


def test_probabilities_of_average_strategy_sampling():
    """They equal equation 7 of Gibson et al. (2012) on numbers computed by hand.

    rho(a) = max(epsilon, min(1, (beta + tau s(a)) / (beta + sum s))), here with beta 2,
    tau 3 and epsilon 0.3. Three actions with s = (6, 1, 3) have the sum 10, which gives
    (2 + 18) / 12, which is more than 1, 5 / 12 and 11 / 12. Two actions with
    s = (0, 18) give 2 / 20, which is less than epsilon, and 56 / 20, which is more
    than 1.
    """
    config = algorithm.MCCFRConfig(
        *("as", algorithm.SAMPLED_PRESETS["as-mccfr"].rule),
        **{"scheme": "average", "epsilon": 0.3, "threshold": 3.0, "bonus": 2.0},
    )
    for sums, expected in (
        ([6.0, 1.0, 3.0], [1, 5 / 12, 11 / 12]),
        ([0.0, 18.0], [0.3, 1]),
    ):
        found = [branching_walk.likelihood(config, s, sum(sums)) for s in sums]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_average_strategy_sampling_uses_the_sums_of_reaches():
    """The sum of the empty sequence is the number of past iterations."""
    compiled = games.compiled("kuhn")
    config = find("as-mccfr(batch=32)").config
    solver = mccfr.make_solver(compiled, config=config)
    solver.run(9)
    for p in PLAYERS:
        # The tenth iteration credits the empty sequences first.
        t = jax.numpy.float32(10)
        average = visited._credit(solver.problem, solver.state.average, 1.0)
        state = solver.state._replace(average=average)
        past = visited._past(solver.problem, config, state, jax.numpy.int32(p), t)
        assert float(past.start * past.unit) == pytest.approx(9)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_points_are_spread_evenly(batch):
    """Each of 2^k intervals has one of the first 2^k points of every coordinate."""
    points = spread(6, batch)
    assert points.shape == (6, batch)
    assert (points >= 0).all() and (points < 1).all()
    whole = 1 << (batch.bit_length() - 1)
    places = np.sort((points[:, :whole] * whole).astype(int), axis=1)
    np.testing.assert_array_equal(places, np.tile(np.arange(whole), (6, 1)))


def test_vmapped_seeds_equal_single_runs():
    config = find(f"os-mccfr(batch={BATCH})").config
    problem, depths = mccfr.problem_of(games.compiled("matrix_rps"), config)
    start = mccfr.init(problem, depths, config, seed=0)
    step = functools.partial(mccfr.step, depths=depths, config=config)
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(0), 3))
    states = jax.vmap(lambda key: start._replace(key=key))(keys)
    several, alone = jax.jit(jax.vmap(step, in_axes=(None, 0))), jax.jit(step)
    last = start._replace(key=keys[2])
    for _ in range(3):
        states, last = several(problem, states), alone(problem, last)
    found = np.asarray(states.players[1].average)
    np.testing.assert_array_equal(found[2], last.players[1].average)
    assert (found[0] != found[2]).any()
