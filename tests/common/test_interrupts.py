"""Signals wait for the end of a step, but for one step only once."""

import os
import signal

import pytest

from spiel_cr.common import interrupts


class Told(BaseException):
    """By a handler."""


@pytest.fixture(autouse=True)
def handlers():
    """SIGTERM raises, SIGHUP is ignored; afterwards all is as before."""

    def tell(number, frame):
        raise Told(number)

    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGTERM, tell)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield tell
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def test_a_signal_waits_for_the_end_of_a_step(handlers):
    done = []
    with pytest.raises(Told), interrupts.Steps() as steps:
        with steps.step():
            send()
            send(signal.SIGHUP)
            done.append(1)
        done.append(2)
    assert done == [1]
    assert signal.getsignal(signal.SIGTERM) is handlers
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_between_steps_it_is_handled_at_once():
    with pytest.raises(Told), interrupts.Steps() as steps:
        with steps.step():
            pass
        send()
        pytest.fail("it went on")


def test_the_second_one_ends_a_step_that_hangs():
    with pytest.raises(Told), interrupts.Steps() as steps, steps.step():
        send()
        send()
        pytest.fail("it went on")


def test_a_step_that_fails_is_followed_by_the_signal():
    with pytest.raises(Told) as caught, interrupts.Steps() as steps, steps.step():
        send()
        raise ValueError("failed")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_handler_that_was_put_there_meanwhile_stays():
    with interrupts.Steps():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
