"""Signals during a step wait for its end, except a second signal."""

import os
import signal

import pytest

from spiel_cr.common import interrupts


class SignalReceived(BaseException):
    """Raised by the signal handler of these tests."""


@pytest.fixture(autouse=True)
def handlers():
    """Install handlers: SIGTERM raises, and SIGHUP is ignored; restore them later."""

    def raise_signal(number, frame):
        raise SignalReceived(number)

    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGTERM, raise_signal)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield raise_signal
    for number, handler in before.items():
        signal.signal(number, handler)


def send_signal(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def test_signals_wait_for_the_end_of_a_step(handlers):
    done = []
    with pytest.raises(SignalReceived), interrupts.Steps() as steps:
        with steps.step():
            send_signal()
            send_signal(signal.SIGHUP)
            done.append(1)
        done.append(2)
    assert done == [1]
    assert signal.getsignal(signal.SIGTERM) is handlers
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_signals_between_steps_are_handled_immediately():
    with pytest.raises(SignalReceived), interrupts.Steps() as steps:
        with steps.step():
            pass
        send_signal()
        pytest.fail("the step continued")


def test_second_signal_interrupts_the_step():
    with pytest.raises(SignalReceived), interrupts.Steps() as steps, steps.step():
        send_signal()
        send_signal()
        pytest.fail("the step continued")


def test_signal_is_raised_after_a_failed_step():
    with (
        pytest.raises(SignalReceived) as caught,
        interrupts.Steps() as steps,
        steps.step(),
    ):
        send_signal()
        raise ValueError("failed")
    assert isinstance(caught.value.__context__, ValueError)


def test_handlers_installed_during_steps_are_kept():
    with interrupts.Steps():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
