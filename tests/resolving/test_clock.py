"""Moves with a time limit, tested with a fake clock that only iterations advance."""

import gc
import time
import types
from typing import NamedTuple

import numpy as np
import pytest

from spiel_cr.resolving import clock
from spiel_cr.solvers.cfr import solver as solver_module


class FakeTime:
    """A replacement for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def perf_counter(self):
        return self.now


class State(NamedTuple):
    players: tuple
    iteration: np.ndarray


@pytest.fixture
def fake(monkeypatch):
    time = FakeTime()
    monkeypatch.setattr(solver_module, "time", time)
    monkeypatch.setattr(clock, "time", time)
    return time


def slow_solver(time, seconds, *, overhead=0.0):
    """Create a solver with a fixed time per iteration and per call.

    Args:
      time: A `FakeTime` that iterations advance.
      seconds: Seconds per iteration, or a function of the state.
      overhead: Seconds per call.

    Returns:
      The solver, and a list of the numbers of iterations of its calls so far.
    """
    chunks = []

    def advance(problem, state, iterations, *, config):
        if iterations:
            chunks.append(iterations)
            time.now += overhead + iterations * (
                seconds(state) if callable(seconds) else seconds
            )
        return State((), np.asarray(state.iteration + iterations))

    config = types.SimpleNamespace(name="slow")
    solver = solver_module.Solver(
        None,
        (),
        State((), np.zeros((), np.int32)),
        solver_module.SolverFunctions(advance, config, np.dtype(np.float64)),
    )
    return solver, chunks


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 3e-3, 0.02, 0.09])
@pytest.mark.parametrize("overhead", [0.0, 2e-3])
def test_run_until_uses_the_time_and_meets_the_deadline(fake, seconds, overhead):
    """The run overshoots by at most the overhead of one call.

    It stops only if fewer than two further iterations fit.
    """
    solver, chunks = slow_solver(fake, seconds, overhead=overhead)
    deadline = fake.now + 0.1
    done = solver.run_until(deadline)
    assert done == sum(chunks) == solver.iterations >= 1
    left = deadline - fake.now
    assert -overhead <= left <= max(2 * (seconds + overhead), 5e-4) + 1e-9
    # No chunk is planned for more than half of the remaining time.
    assert max(chunks) * seconds <= 0.05 + seconds
    if seconds == 1e-6:
        assert len(chunks) < 30


def test_run_until_does_at_least_one_iteration(fake):
    solver, _ = slow_solver(fake, 1e-3)
    assert solver.run_until(fake.now - 5.0) == 1
    assert solver.run_until(fake.now - 5.0) == 1
    assert solver.iterations == 2


def test_run_until_stops_at_the_maximum_number_of_iterations(fake):
    solver, chunks = slow_solver(fake, 1e-6)
    assert solver.run_until(fake.now + 10.0, most=37) == 37
    assert solver.run_until(fake.now + 10.0, most=5) == 5
    assert solver.iterations == sum(chunks) == 42


def test_run_until_adapts_to_slower_iterations(fake):
    """Iterations take twice as long as measured, which half of the time covers."""
    solver, _ = slow_solver(fake, lambda s: 2e-4 if s.iteration < 100 else 4e-4)
    deadline = fake.now + 0.2
    solver.run_until(deadline)
    assert 0 <= deadline - fake.now < 2e-3


def move(watch, fake, solver, *, after=0.0, tail=0.0):
    with watch.move():
        with watch.solve(solver, watch.deadline()):
            fake.now += after
        fake.now += tail


def test_moves_meet_the_deadline_with_a_reserve(fake):
    """15% of the time of a move are kept as a reserve."""
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 1e-3)
    for _ in range(5):
        before = fake.now
        move(watch, fake, solver)
        assert 0.08 < fake.now - before <= 0.085 + 1e-9
    found = watch.statistics
    assert (found.moves, found.solves, found.deadline_misses) == (5, 5, 0)
    assert found.iterations == solver.iterations
    assert 80 < found.max_ms <= 85 + 1e-6


@pytest.mark.parametrize("where", ["after", "tail"])
def test_time_after_iterating_is_learned(fake, where):
    """The first move is late by an unknown delay; later moves reserve time for it."""
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 1e-3)
    spent = []
    for _ in range(4):
        before = fake.now
        move(watch, fake, solver, **{where: 0.04})
        spent.append(fake.now - before)
    assert spent[0] > 0.1
    assert max(spent[1:]) <= 0.085 + 1e-9
    assert watch.statistics.deadline_misses == 1
    # Without further delays, the reserve decays slowly.
    for _ in range(60):
        before = fake.now
        move(watch, fake, solver)
    assert fake.now - before > 0.08


def test_time_of_background_load_is_reserved(fake):
    """Background load delays the end of every solve by the same time."""
    watch = clock.Clock(100.0, None)
    loss, spent = 0.04, []

    def run_until(deadline, *, most):
        fake.now = max(fake.now, deadline) + loss

    solver = types.SimpleNamespace(iterations=0, run_until=run_until)

    def moves(count):
        for _ in range(count):
            before = fake.now
            move(watch, fake, solver)
            spent.append(fake.now - before)

    moves(5)
    assert spent[0] > 0.1 and max(spent[1:]) <= 0.085 + 1e-9
    loss = 2.0
    moves(1)
    loss = 0.0
    moves(1)  # the move still has some time to solve
    assert 0.03 < spent[-1] < 0.04
    moves(200)
    assert 0.08 < spent[-1] <= 0.085 + 1e-9


def test_deadline_misses_are_counted(fake):
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 0.3)
    for k in range(1, 4):
        move(watch, fake, solver)
        assert watch.statistics.deadline_misses == k == watch.statistics.moves
    assert watch.statistics.max_ms == pytest.approx(300.0)
    assert watch.statistics.iterations == 3


def test_solves_of_a_move_share_its_time(fake):
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 1e-4)
    before, times = fake.now, []
    with watch.move():
        for left in (3, 2, 1):
            begun = fake.now
            with watch.solve(solver, watch.deadline(left)):
                pass
            times.append(fake.now - begun)
    assert fake.now - before <= 0.085 + 1e-9
    np.testing.assert_allclose(times, 0.085 / 3, atol=2e-3)
    assert watch.statistics.solves == 3 and watch.statistics.moves == 1


def test_reserved_time_decays_while_nothing_is_solved(fake):
    """The reserve decays even if it leaves no time to solve anything."""
    watch = clock.Clock(10.0, None)
    watch._tail = 0.02
    with watch.move():
        assert watch.deadline() < fake.now
    for _ in range(60):
        with watch.move():
            pass
    with watch.move():
        assert watch.deadline() - fake.now > 0.007


def test_all_iterations_are_done_without_a_time_limit(fake):
    watch = clock.Clock(None, 40)
    solver, _ = slow_solver(fake, 10.0)
    assert watch.deadline() is None
    move(watch, fake, solver)
    assert solver.iterations == watch.statistics.iterations == 40
    assert watch.statistics.deadline_misses == 0
    assert watch.statistics.max_ms == pytest.approx(400_000.0)


@pytest.mark.parametrize(("move_ms", "waits"), [(50.0, True), (None, False)])
def test_garbage_collection_waits_for_the_end_of_the_move(move_ms, waits):
    """With a time limit, garbage collection is postponed because it could take long."""
    searches = []
    gc.callbacks.append(lambda phase, info: searches.append(phase))
    try:
        with pytest.raises(KeyError), clock.Clock(move_ms, 1).move():
            for _ in range(3 * gc.get_threshold()[0]):
                searches.append([searches])  # more containers than are freed
            during = searches.count("start")
            raise KeyError
    finally:
        gc.callbacks.pop()
    assert gc.isenabled() and (during == 0) == waits


def test_garbage_collection_does_not_start_right_after_a_move():
    many = 3 * gc.get_threshold()[0]
    with clock.Clock(50.0, None).move():
        made = [[n] for n in range(many)]
    searches = []
    gc.callbacks.append(lambda phase, info: searches.append(phase))
    try:
        answer = [[n] for n in range(100)]
    finally:
        gc.callbacks.pop()
    assert not searches and len(made) == many and len(answer) == 100


def test_disabled_garbage_collection_stays_disabled():
    gc.disable()
    try:
        with clock.Clock(50.0, None).move():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_solve_stops_at_the_first_of_both_budgets(fake):
    watch = clock.Clock(100.0, 40)
    quick, _ = slow_solver(fake, 1e-5)
    move(watch, fake, quick)
    assert quick.iterations == 40
    slow, _ = slow_solver(fake, 1e-2)
    move(watch, fake, slow)
    assert 1 < slow.iterations < 9
    assert watch.statistics.deadline_misses == 0


def test_restart_resets_statistics_but_keeps_learned_times(fake):
    """Counts restart from zero; the learned time after iterating is kept."""
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 1e-3)
    move(watch, fake, solver, after=0.04)
    old = watch.statistics
    assert old.deadline_misses == 1
    watch.restart_statistics()
    assert watch.statistics == clock.Statistics()
    assert old.deadline_misses == 1
    move(watch, fake, solver, after=0.04)
    assert watch.statistics.moves == 1 and watch.statistics.deadline_misses == 0


@pytest.mark.parametrize(
    ("move_ms", "iterations", "init_ms", "milliseconds"),
    [
        (50, None, None, 500),
        (50, 9, None, None),
        (None, 9, None, None),
        (50, 9, 70, 70),
    ],
)
def test_init_deadline_defaults_to_ten_moves(
    move_ms, iterations, init_ms, milliseconds
):
    begun = time.perf_counter()
    deadline = clock.Clock(move_ms, iterations).init_deadline(init_ms)
    if milliseconds is None:
        assert deadline is None
    else:
        assert 0 <= deadline - begun - milliseconds / 1000 < 1


def test_cost_fits_a_line():
    cost = clock.Cost()
    assert cost.line == (0, 0)
    for count in (1000, 100, 200, 500, 900):
        cost.add(count, 0.1 + 1e-4 * count)
    fixed, each = cost.line
    assert fixed == pytest.approx(0.1) and each == pytest.approx(1e-4)
    for _ in range(100):
        cost.add(10, 0.2)
    # The first measurement is kept, so the cost per unit stays positive.
    assert cost.line[1] > 0
