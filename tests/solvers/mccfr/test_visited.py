"""Updates of visited infosets only, compared with updates of all infosets."""

import functools
import re
import signal
import time

import jax
import numpy as np
import pytest

from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.mccfr import choice, mccfr, visited, walk
from tests.support import games

PLAYERS = (0, 1)
# With batches of one, both solvers sample the same trajectories.
ROWS = [("matrix_rps", "vr-mccfr+")]
SLOW_ROWS = [
    ("kuhn", "os-mccfr(batch=1)"),
    ("kuhn", "os-mccfr(batch=1,alternating=false,explore=balanced)"),
    ("kuhn", "vr-mccfr"),
    ("kuhn", "vr-mccfr+"),
    ("kuhn", "evr-mccfr(batch=1,exploration=0.1)"),
    ("leduc", "evr-mccfr(batch=1)"),
    ("goofspiel4", "vr-mccfr"),
    ("goofspiel4", "os-mccfr(batch=1,beta=-inf,gamma=2)"),
    ("hex", "os-mccfr(batch=1)"),
]
slow = pytest.mark.slow


def solver_of(name, variant, visits=None, **options):
    """Return a solver; `visits` selects the kind of updates, whatever the size."""
    config = find(variant).config
    options = {"dtype": np.float64, "seed": 3, **options}
    with pytest.MonkeyPatch.context() as patch:
        if visits is not None:
            patch.setattr(choice, "visits_only", lambda *_, **__: visits)
        return mccfr.make_solver(games.compiled(name), config=config, **options)


def assert_close(one, other):
    """Assert that strategies of two solvers are equal up to rounding."""
    for p in PLAYERS:
        for read in ("average_behaviour", "current_behaviour"):
            mine, others = getattr(one, read)(p), getattr(other, read)(p)
            np.testing.assert_allclose(mine, others, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "variant"), ROWS + [pytest.param(*row, marks=slow) for row in SLOW_ROWS]
)
def test_updates_of_visited_infosets_equal_updates_of_all(name, variant):
    sparse = solver_of(name, variant, True)
    dense = solver_of(name, variant, False)
    assert isinstance(sparse.state, visited.VisitedState)
    for count in (1, 40, 200):
        sparse.run(count)
        dense.run(count)
        assert_close(sparse, dense)
    start = solver_of(name, variant, True).current_behaviour(0)
    assert np.abs(sparse.current_behaviour(0) - start).max() > 0.1


def test_targeting_all_histories_equals_no_target():
    """A target that excludes histories, in contrast, changes the results."""
    tree = games.compiled("kuhn")
    everything = np.ones(len(tree.histories), bool)
    mask = (tree.histories.player == 0) & (tree.histories.infoset == 1)
    free, aimed = (
        solver_of("kuhn", "os-mccfr(batch=1,delta=0.7)", target=target)
        for target in (None, mask)
    )
    mccfr.aim(aimed, tree, everything)
    for solver in (free, aimed):
        mccfr.reseed(solver, 9)
        solver.run(50)
    assert_close(free, aimed)
    mccfr.aim(aimed, tree, mask)
    for solver in (free, aimed):
        solver.run(50)
    assert np.abs(aimed.average(0) - free.average(0)).max() > 1e-3


@pytest.mark.parametrize(
    "variant",
    [
        "vr-mccfr",
        *(pytest.param(name, marks=slow) for name in ("es-mccfr", "as-mccfr")),
    ],
)
def test_iterations_do_not_copy_the_tables(variant):
    """Otherwise the cost of an iteration would grow with the size of the game."""
    solver = solver_of("kuhn", variant, True)
    depths = len(games.compiled("kuhn").histories.by_depth)
    run = functools.partial(
        mccfr._runs[True].lower, depths=depths, config=solver.config
    )
    with jax.enable_x64(True):
        text = run(solver.problem, solver.state, np.int32(1)).compile().as_text()
    entries = len(solver.state.regrets)
    assert f"f64[{entries}]" in text
    assert not re.findall(rf"\[{entries}\]\S* copy\(", text)


def test_states_returned_earlier_do_not_change():
    """The compiled function updates its arguments in place."""
    solver = solver_of("matrix_rps", "vr-mccfr", True)
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
def test_double_sums_do_not_lose_small_terms(high, low):
    """In plain float32, 2^25 + 1 equals 2^25."""
    single = jax.numpy.float32
    sums = walk.DoubleSums(single(high), single(low))
    for _ in range(100):
        sums = visited.increased(sums, single(1))
    assert float(sums.high) + float(sums.low) == high + low + 100


def test_interrupt_leaves_a_valid_state(monkeypatch):
    """It arrives after the old state is consumed and before the new one is stored."""
    solver = solver_of("kuhn", "os-mccfr(batch=1)", True)
    solver.run(3)
    program = solver._functions

    def interrupted(*args, **options):
        after = program.advance(*args, **options)
        signal.raise_signal(signal.SIGINT)
        return after

    solver._functions = program._replace(advance=interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.run(1)
    finally:
        signal.signal(signal.SIGINT, before)
    solver._functions = program
    assert solver.iterations == 4
    solver.run(2)
    other = solver_of("kuhn", "os-mccfr(batch=1)", True)
    other.run(6)
    for one, same in zip(
        *map(jax.tree.leaves, (solver.state, other.state)), strict=True
    ):
        np.testing.assert_array_equal(one, same)


def test_iterations_are_limited_to_int32():
    solver = solver_of("kuhn", "os-mccfr(batch=1)", True)
    most = np.int32(2**31 - 3)
    solver.state = solver.state._replace(iteration=jax.numpy.asarray(most))
    with pytest.raises(ValueError, match="iterations=3 after 2147483645: .* larger ba"):
        solver.run(3)
    assert solver.run_until(time.perf_counter() + 60) == 2
    assert solver.run_until(time.perf_counter() + 60) == 0
    assert solver.iterations == 2**31 - 1


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        (
            "as-mccfr(predictive=true)",
            "scheme=average cannot be combined with predictive",
        ),
        ("es-mccfr(baseline=average)", "scheme=external .* with a baseline"),
        ("es-mccfr(alpha=1.5)", "scheme=external .* with alpha"),
        ("es-mccfr(beta=0,gamma=6)", "scheme=external .* with beta=0.0, gamma above 5"),
        ("os-mccfr(averaging=sampled)", "averaging=sampled requires a simulator"),
        ("os-mccfr(incremental=true)", "incremental=true requires a simulator"),
    ],
)
def test_rejects_settings_that_cannot_be_combined(variant, reason):
    with pytest.raises(ValueError, match=rf"{reason}.*; remove"):
        solver_of("kuhn", variant)


def test_kind_of_updates_depends_on_size_and_settings():
    def visits(variant, entries, **options):
        return choice.visits_only(find(variant).config, entries, **options)

    assert visits("os-mccfr(batch=1)", 10)
    assert not visits("os-mccfr(batch=64)", 1000)
    assert visits("os-mccfr(batch=64)", 10_000)
    assert not visits("os-mccfr(batch=64)", 10_000, buckets=True)
    assert not visits("os-mccfr(batch=1,predictive=true)", 10**6)
    assert visits("os-mccfr(batch=64)", 10, targets=True)
    assert visits("es-mccfr(batch=64)", 10)
    assert visits("as-mccfr", 10)
    with pytest.raises(ValueError, match="external cannot be combined with a target"):
        visits("es-mccfr", 10, targets=True)
    solver = solver_of("matrix_rps", "vr-mccfr")
    assert isinstance(solver.state, visited.VisitedState)
