"""Updates of visited infosets against updates of all: the same numbers, no passes."""

import dataclasses
import functools
import re
import signal
import time

import jax
import numpy as np
import pytest

import spiel_cr
from spiel_cr.cfr import config as algorithm
from spiel_cr.mccfr import choice, mccfr, sample_tree, visited
from tests.support import games

PLAYERS = (0, 1)
# With one trajectory or independent draws both walk the same trajectories.
ROWS = [("matrix_rps", "vr-mccfr+(baseline=history)")]
_MORE = [
    ("kuhn", "vr-mccfr+(baseline=history)"),
    ("kuhn", "os-mccfr(batch=5,draws=independent,alternating=false,explore=balanced)"),
]
SLOW_ROWS = [
    ("kuhn", "os-mccfr(batch=1,incremental=true)"),
    ("kuhn", "os-mccfr(batch=1)"),
    ("kuhn", "os-mccfr(batch=1,averaging=sampled)"),
    ("kuhn", "os-mccfr(batch=3,draws=independent,averaging=sampled,gamma=1)"),
    ("kuhn", "vr-mccfr"),
    ("kuhn", "evr-mccfr(batch=1,exploration=0.1)"),
    ("leduc", "evr-mccfr(batch=1)"),
    ("leduc", "os-mccfr(batch=50,draws=independent)"),
    ("goofspiel4", "vr-mccfr"),
    ("goofspiel4", "os-mccfr(batch=20,draws=independent,beta=-inf,gamma=2)"),
    ("hex", "os-mccfr(batch=1)"),
    *_MORE,
    # Every own action is followed.
    ("kuhn", "es-mccfr(batch=1)"),
    ("kuhn", "es-mccfr(batch=1,averaging=sampled)"),
    ("kuhn", "es-mccfr(batch=5,draws=independent,alternating=false)"),
    ("leduc", "es-mccfr(batch=3,draws=independent,averaging=sampled,gamma=1)"),
    ("leduc", "es-mccfr(batch=1,exploration=0.1)"),
    ("goofspiel4", "es-mccfr(batch=20,draws=independent,beta=-inf,gamma=2)"),
    ("goofspiel3_simultaneous", "es-mccfr(batch=1)"),
    ("hex", "es-mccfr(batch=1)"),
]
slow = pytest.mark.slow


def solver_of(name, variant, updates, **options):
    config = dataclasses.replace(algorithm.parse_any(variant), updates=updates)
    options = {"dtype": np.float64, "seed": 3, **options}
    return mccfr.make_solver(games.compiled(name), config=config, **options)


def assert_alike(one, other):
    """Sums in another order: equal up to rounding."""
    for p in PLAYERS:
        for read in ("average_behaviour", "current_behaviour"):
            mine, others = getattr(one, read)(p), getattr(other, read)(p)
            np.testing.assert_allclose(mine, others, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "variant"), ROWS + [pytest.param(*row, marks=slow) for row in SLOW_ROWS]
)
def test_updates_of_visited_infosets_are_those_of_all(name, variant):
    sparse = solver_of(name, variant, "visited")
    dense = solver_of(name, variant, "all")
    assert isinstance(sparse.state, visited.VisitedState)
    for count in (1, 40, 200):
        sparse.run(count)
        dense.run(count)
        assert_alike(sparse, dense)
    start = solver_of(name, variant, "visited").current_behaviour(0)
    assert np.abs(sparse.current_behaviour(0) - start).max() > 0.1


@slow
def test_a_target_that_moves_is_followed_alike():
    """Targeted, weighted, moved: as with updates of all infosets."""
    tree = games.compiled("kuhn")
    mask = (tree.histories.player == 0) & (tree.histories.infoset == 1)
    layout = sample_tree.build(tree, target=mask)
    solvers = [
        solver_of("kuhn", "os-mccfr(batch=1,delta=0.7)", updates, layout=layout)
        for updates in ("visited", "all")
    ]
    for solver in solvers:
        solver.run(50)
        mccfr.aim(solver, tree, np.roll(mask, 1), iteration_weight=2.5)
        mccfr.reseed(solver, 9)
        solver.run(50)
    assert_alike(*solvers)


@pytest.mark.parametrize(
    "variant",
    ["vr-mccfr", pytest.param("es-mccfr(averaging=sampled)", marks=slow)],
)
def test_nothing_large_is_copied(variant):
    """XLA keeps the tables in place: else each iteration would cost the whole game."""
    solver = solver_of("kuhn", variant, "visited")
    depths = len(games.compiled("kuhn").histories.by_depth)
    run = functools.partial(
        mccfr._run_visiting.lower, plan=depths, config=solver.config
    )
    with jax.enable_x64(True):
        text = run(solver.problem, solver.state, np.int32(1)).compile().as_text()
    entries = len(solver.state.regrets)
    assert f"f64[{entries}]" in text
    assert not re.findall(rf"\[{entries}\]\S* copy\(", text)


def test_a_state_that_was_handed_out_stays():
    """Though the program writes into what it is given."""
    solver = solver_of("matrix_rps", "vr-mccfr", "visited")
    solver.run(3)
    held = solver.state
    before = jax.tree.map(np.array, held)
    solver.run(5)
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.array, held))
    later = solver.average_behaviour(0)
    solver.state = held
    assert solver.iterations == 3
    solver.run(5)
    np.testing.assert_array_equal(solver.average_behaviour(0), later)


@pytest.mark.parametrize("high, low", [(2**25, 0), (2**24, 2**24 - 2), (2**40, 0)])
def test_sums_do_not_stop_in_single_precision(high, low):
    """2^25 + 1 + 1 + ... in float32, where 2^25 + 1 is 2^25; nor later."""
    single = jax.numpy.float32
    sums = visited.Sums(single(high), single(low))
    for _ in range(100):
        sums = visited.increased(sums, single(1))
    assert float(sums.high) + float(sums.low) == high + low + 100


def test_an_interrupt_leaves_a_state(monkeypatch):
    """It comes when the old state is consumed and the new one is not yet there."""
    solver = solver_of("kuhn", "os-mccfr(batch=1)", "visited")
    solver.run(3)
    program = solver._program

    def interrupted(*args, **options):
        after = program(*args, **options)
        signal.raise_signal(signal.SIGINT)
        return after

    solver._program = interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.run(1)
    finally:
        signal.signal(signal.SIGINT, before)
    solver._program = program
    assert solver.iterations == 4
    solver.run(2)
    other = solver_of("kuhn", "os-mccfr(batch=1)", "visited")
    other.run(6)
    for one, same in zip(
        *map(jax.tree.leaves, (solver.state, other.state)), strict=True
    ):
        np.testing.assert_array_equal(one, same)


def test_iterations_are_counted_to_an_end():
    solver = solver_of("kuhn", "os-mccfr(batch=1)", "visited")
    most = np.int32(2**31 - 3)
    solver.state = solver.state._replace(iteration=jax.numpy.asarray(most))
    with pytest.raises(ValueError, match="iterations=3 after 2147483645: .* larger ba"):
        solver.run(3)
    assert solver.run_until(time.perf_counter() + 60) == 2
    assert solver.run_until(time.perf_counter() + 60) == 0
    assert solver.iterations == 2**31 - 1


@slow
@pytest.mark.parametrize("name", ["vr-mccfr", "es-mccfr"])
def test_checkpoints(tmp_path, name):
    """The same bits as in one go; the file says which updates were made."""
    path, options = tmp_path / "checkpoint", {"seed": 4}
    tree, variant = games.compiled("kuhn"), f"{name}(batch=1)"
    dense = f"{name}(batch=1,updates=all)"
    expected = spiel_cr.solve(tree, variant, 60, **options)
    for iterations in (30, 60):
        result = spiel_cr.solve(
            tree, variant, iterations, checkpoint_path=path, **options
        )
    for p in PLAYERS:
        np.testing.assert_array_equal(result.average[p], expected.average[p])
    with pytest.raises(ValueError, match="is a checkpoint with config"):
        spiel_cr.solve(tree, dense, 60, checkpoint_path=path, **options)


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("as-mccfr", "scheme=average"),
        ("es-mccfr(baseline=history)", "scheme=external and a baseline"),
        ("es-mccfr(incremental=true)", "scheme=external and incremental=true"),
        ("os-mccfr(alpha=1.5)", "alpha"),
        ("os-mccfr(beta=0)", "beta"),
        ("os-mccfr(predictive=true)", "predictive"),
        ("os-mccfr(gamma=6)", "gamma above 5"),
        ("os-mccfr(baseline=oracle)", "baseline=oracle"),
    ],
)
def test_what_cannot_be_sparse_is_refused(variant, reason):
    with pytest.raises(ValueError, match=rf"{reason}.*; give updates=all"):
        solver_of("kuhn", variant, "visited")


def test_the_solver_chooses_by_size():
    def chosen(variant, entries, **options):
        return choice.updates_of(algorithm.parse_any(variant), entries, **options)

    assert chosen("os-mccfr(batch=1)", 10) == "visited"
    assert chosen("os-mccfr(batch=64)", 1000) == "all"
    assert chosen("os-mccfr(batch=64)", 10_000) == "visited"
    assert chosen("os-mccfr(batch=64)", 10_000, buckets=True) == "all"
    assert chosen("os-mccfr(updates=all)", 10**6) == "all"
    assert chosen("es-mccfr(batch=64)", 600) == "all"
    assert chosen("es-mccfr(batch=64)", 1000) == "visited"
    assert chosen("es-mccfr(batch=64)", 1000, targets=True) == "all"
    assert chosen("es-mccfr(baseline=average)", 10**6) == "all"
    assert chosen("as-mccfr", 10**6) == "all"
    solver = solver_of("matrix_rps", "vr-mccfr", "auto")
    assert solver.config.updates == "visited"
