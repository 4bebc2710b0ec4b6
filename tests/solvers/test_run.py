"""Interrupts within an iteration: it is finished, or the state before it is kept."""

import signal
import types

import numpy as np
import pytest

from spiel_cr.common import interrupts
from spiel_cr.solvers.checkpoint import Keeper
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.run import Goal, drive


class CountingSolver(IterativeSolver):
    """Counts; Ctrl-C arrives in the middle of its third iteration."""

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
    """It raises KeyboardInterrupt, also in background jobs of shells."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(path, pace, size=3):
    """Drive a run until it is interrupted; returns what it was, and its checkpoint."""
    run = CountingSolver(pace, size)
    keeper = Keeper(path, run.identity(), run, 3600.0) if path is not None else None
    with pytest.raises(KeyboardInterrupt):
        drive(run, Goal(10), keeper, most=10, progress=False)
    if path is None:
        return run, None
    kept = CountingSolver(pace, size)
    Keeper(path, kept.identity(), kept, 3600.0).resume()
    return run, kept.iterations


def test_a_short_iteration_is_finished(tmp_path):
    run, iterations = interrupted(tmp_path / "c.npz", pace=0.01)
    assert (run.seen, iterations) == ([0, 1, 2], 3)


def test_a_long_one_is_abandoned_and_the_state_before_it_is_kept(tmp_path):
    run, iterations = interrupted(tmp_path / "c.npz", pace=2.0)
    assert (run.seen, iterations) == ([0, 1], 2)


def test_a_state_that_is_too_large_is_not_copied(tmp_path):
    """Of half a gigabyte before an iteration of two seconds."""
    run = CountingSolver(pace=0.5, size=3)
    run._last_seconds = 2.0
    assert run._copied() is not None
    run.sums = np.broadcast_to(0.0, 1 << 26)
    assert run._copied() is None
    # Nor if the iteration is short.
    run.sums, run._last_seconds = np.zeros(3), 0.4
    assert run._copied() is None


def test_without_a_checkpoint_nothing_is_finished():
    run, _ = interrupted(None, pace=0.01)
    assert run.seen == [0, 1]


def test_other_threads_save_the_state_between_iterations(tmp_path):
    """And the one before a long iteration, but not one that was saved."""
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
