"""Interrupts in an iteration: it is completed, or the state before it is saved."""

import signal
import types

import numpy as np
import pytest

from spiel_cr.common import interrupts
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.run import Goal, drive


class CountingSolver(IterativeSolver):
    """A solver that counts and is interrupted in its third iteration."""

    def __init__(self, pace, size):
        self.config = types.SimpleNamespace(name="counting")
        self.pace, self.sums = pace, np.zeros(size)
        self.seen = []

    def _iterate(self):
        self.sums += 1
        if self.iterations == 2:
            signal.raise_signal(signal.SIGINT)
        self.seen.append(self.iterations)
        self.iterations += 1
        self.seconds += self.pace

    def arrays(self):
        return {"sums": self.sums}

    def restore(self, arrays, *, seconds=0.0):
        self.sums = arrays["sums"]
        self.iterations = int(arrays["sums"][0])

    def identity(self):
        return {"kind": "counting"}


@pytest.fixture(autouse=True)
def ctrl_c():
    """Make SIGINT raise KeyboardInterrupt, also in background jobs of shells."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(path, pace, size=3):
    """Drive a run until its interrupt; return it, and its checkpoint's iterations."""
    run = CountingSolver(pace, size)
    keeper = Keeper(path, run.identity(), run, 3600.0) if path is not None else None
    with pytest.raises(KeyboardInterrupt):
        drive(run, Goal(10), keeper, most=10, progress=False)
    if path is None:
        return run, None
    kept = CountingSolver(pace, size)
    Keeper(path, kept.identity(), kept, 3600.0).resume()
    return run, kept.iterations


def test_interrupt_completes_a_short_iteration(tmp_path):
    run, iterations = interrupted(tmp_path / "c.npz", pace=0.01)
    assert (run.seen, iterations) == ([0, 1, 2], 3)


def test_interrupt_abandons_a_long_iteration_and_saves_the_state_before(tmp_path):
    run, iterations = interrupted(tmp_path / "c.npz", pace=2.0)
    assert (run.seen, iterations) == ([0, 1], 2)


def test_states_are_copied_only_if_small_and_iterations_are_long(tmp_path):
    """Half a gigabyte is too large, even if an iteration takes two seconds."""
    run = CountingSolver(pace=0.5, size=3)
    run._last_seconds = 2.0
    assert run._copied() is not None
    run.sums = np.broadcast_to(0.0, 1 << 26)
    assert run._copied() is None
    # A short iteration is completed, so the state before it is not needed.
    run.sums, run._last_seconds = np.zeros(3), 0.4
    assert run._copied() is None


def test_interrupt_without_a_checkpoint_stops_at_once():
    run, _ = interrupted(None, pace=0.01)
    assert run.seen == [0, 1]


def test_other_threads_save_the_state_between_iterations(tmp_path):
    """They also save the state before a long iteration, unless it is saved already."""
    path, saved = tmp_path / "c.npz", []

    class Spy(CountingSolver):
        def _iterate(self):
            saved.append((interrupts.save_results(), path.exists()))
            if self.iterations == 1:
                assert path.exists()
                path.unlink()
            super()._iterate()

    run = Spy(2.0, 3)
    keeper = Keeper(path, run.identity(), run, 3600.0)
    with pytest.raises(KeyboardInterrupt):
        drive(run, Goal(10), keeper, most=10, progress=False)
    # At first there is nothing to save; the state before the second one was saved,
    # and removed here; so was the state before the third one.
    assert saved == [(True, False), (True, True), (True, True)]
    assert interrupts.save_results()
