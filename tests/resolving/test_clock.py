"""Thinking against the clock, by a clock that moves only when an iteration is done."""

import gc
import time
import types
from typing import NamedTuple

import numpy as np
import pytest

from spiel_cr.resolving import clock
from spiel_cr.solvers.cfr import solver as solver_module


class FakeTime:
    """Stands in for the module `time`."""

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
    """A solver whose iterations take `seconds` each, `overhead` for each call.

    Returns:
      The solver, and the chunks it has done so far.
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
def test_run_until_keeps_the_deadline_and_uses_the_time(fake, seconds, overhead):
    """It overshoots by no more than a call costs besides its iterations.

    And it stops only when less than two iterations would fit.
    """
    solver, chunks = slow_solver(fake, seconds, overhead=overhead)
    deadline = fake.now + 0.1
    done = solver.run_until(deadline)
    assert done == sum(chunks) == solver.iterations >= 1
    left = deadline - fake.now
    assert -overhead <= left <= max(2 * (seconds + overhead), 5e-4) + 1e-9
    # Chunks never grow to more than half of what is left.
    assert max(chunks) * seconds <= 0.05 + seconds
    if seconds == 1e-6:
        assert len(chunks) < 30


def test_at_least_one_iteration_is_done(fake):
    solver, _ = slow_solver(fake, 1e-3)
    assert solver.run_until(fake.now - 5.0) == 1
    assert solver.run_until(fake.now - 5.0) == 1
    assert solver.iterations == 2


def test_run_until_stops_at_the_most_iterations(fake):
    solver, chunks = slow_solver(fake, 1e-6)
    assert solver.run_until(fake.now + 10.0, most=37) == 37
    assert solver.run_until(fake.now + 10.0, most=5) == 5
    assert solver.iterations == sum(chunks) == 42


def test_iterations_that_become_slower_are_noticed(fake):
    """A chunk takes at most twice as long as planned, so half the time is enough."""
    solver, _ = slow_solver(fake, lambda s: 2e-4 if s.iteration < 100 else 4e-4)
    deadline = fake.now + 0.2
    solver.run_until(deadline)
    assert 0 <= deadline - fake.now < 2e-3


# Moves.


def move(watch, fake, solver, *, after=0.0, tail=0.0):
    with watch.move():
        with watch.solve(solver, watch.deadline()):
            fake.now += after
        fake.now += tail


def test_moves_in_time(fake):
    """Fifteen per cent of a move's time are never planned for."""
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
def test_what_comes_after_iterating_is_learned(fake, where):
    """The first move is late by what nobody knew of; the next ones leave time."""
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
    # It is forgotten slowly where it was an exception.
    for _ in range(60):
        before = fake.now
        move(watch, fake, solver)
    assert fake.now - before > 0.08


def test_what_other_work_takes_is_kept_free(fake):
    """Beside it, a solve ends later than it was asked to, whenever that is."""
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
    moves(1)  # it still thinks a while
    assert 0.03 < spent[-1] < 0.04
    moves(200)
    assert 0.08 < spent[-1] <= 0.085 + 1e-9


def test_late_moves_are_counted(fake):
    watch = clock.Clock(100.0, None)
    solver, _ = slow_solver(fake, 0.3)
    for k in range(1, 4):
        move(watch, fake, solver)
        assert watch.statistics.deadline_misses == k == watch.statistics.moves
    assert watch.statistics.max_ms == pytest.approx(300.0)
    assert watch.statistics.iterations == 3


def test_several_solves_share_a_move(fake):
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


def test_what_one_answer_took_after_its_solve_is_forgotten_by_and_by(fake):
    """Even where it left no time to solve anything since."""
    watch = clock.Clock(10.0, None)
    watch._tail = 0.02
    with watch.move():
        assert watch.deadline() < fake.now
    for _ in range(60):
        with watch.move():
            pass
    with watch.move():
        assert watch.deadline() - fake.now > 0.007


def test_without_a_clock_all_iterations_are_done(fake):
    watch = clock.Clock(None, 40)
    solver, _ = slow_solver(fake, 10.0)
    assert watch.deadline() is None
    move(watch, fake, solver)
    assert solver.iterations == watch.statistics.iterations == 40
    assert watch.statistics.deadline_misses == 0
    assert watch.statistics.max_ms == pytest.approx(400_000.0)


@pytest.mark.parametrize(("move_ms", "waits"), [(50.0, True), (None, False)])
def test_garbage_waits_for_the_answer(move_ms, waits):
    """Under a clock; a search through all objects would make the answer late."""
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


def test_no_search_for_garbage_begins_right_after_the_answer():
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


def test_who_needs_no_search_for_garbage_gets_none():
    gc.disable()
    try:
        with clock.Clock(50.0, None).move():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_both_budgets_whichever_ends_first(fake):
    watch = clock.Clock(100.0, 40)
    quick, _ = slow_solver(fake, 1e-5)
    move(watch, fake, quick)
    assert quick.iterations == 40
    slow, _ = slow_solver(fake, 1e-2)
    move(watch, fake, slow)
    assert 1 < slow.iterations < 9
    assert watch.statistics.deadline_misses == 0


def test_statistics_restart(fake):
    """What was recorded is gone; what a solve takes besides iterating is not."""
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
def test_time_before_the_first_move(move_ms, iterations, init_ms, milliseconds):
    begun = time.perf_counter()
    deadline = clock.Clock(move_ms, iterations).init_deadline(init_ms)
    if milliseconds is None:
        assert deadline is None
    else:
        assert 0 <= deadline - begun - milliseconds / 1000 < 1


def test_costs_are_lines():
    cost = clock.Cost()
    assert cost.line == (0, 0)
    for count in (1000, 100, 200, 500, 900):
        cost.add(count, 0.1 + 1e-4 * count)
    fixed, each = cost.line
    assert fixed == pytest.approx(0.1) and each == pytest.approx(1e-4)
    for _ in range(100):
        cost.add(10, 0.2)
    # The first measurement stays, so that a history cannot seem free.
    assert cost.line[1] > 0
