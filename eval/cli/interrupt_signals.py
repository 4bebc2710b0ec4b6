"""Signals that end a command, and the files that it still writes.

Ctrl-C, `kill` and closing the terminal have the same effect: the command writes the
results that must not be lost, and ends. Before and after the work, no such results
exist; the process then ends immediately, without a message or a traceback.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from spiel_cr.common import interrupts

from . import watchdog

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FINISHING = b"spiel-cr: writing what there is; once more ends it at once\n"


class Interrupted(KeyboardInterrupt):
    """A signal that arrived.

    It is a KeyboardInterrupt, so that code which cleans up after Ctrl-C does so after
    all signals.

    Attributes:
      number: Number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_at_once() -> None:
    """Make signals end the process without a message from now on."""
    for number in _NUMBERS:
        _set(number, signal.SIG_DFL)


@contextlib.contextmanager
def interrupting(farewell: Callable[[], None] | None = None) -> Iterator[None]:
    """Make the first signal in the block raise `Interrupted`.

    The second signal prints that the command is finishing; the third one ends the
    process immediately. A signal that is ignored (as under `nohup`) stays ignored.
    Python handles signals only in the main thread, so in other threads nothing changes.

    Args:
      farewell: Function that prints the last lines of an interrupted command. With it,
        a watchdog ends the process if the block does not end soon after a signal. If
        None, the process belongs to another program, and no watchdog is started.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    hook = sys.unraisablehook
    guard = watchdog.Watchdog(_NUMBERS, farewell) if farewell is not None else None
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        if guard is None or not guard.repeats:
            count += 1
        if count == 1:
            raised = Interrupted(number)
            if guard is not None:
                guard.note_raised(raised)
            raise raised
        watchdog.say(_FINISHING)
        end_at_once()

    def unraisable(caught: Any) -> None:
        """End the process if an interrupt was raised where Python discards exceptions.

        These places are destructors, and functions of Cython without a return value.
        Their work may be incomplete, for example scipy's tables of Sobol numbers, so
        only results of completed steps are written.
        """
        if isinstance(caught.exc_value, Interrupted):
            with contextlib.suppress(Exception):
                interrupts.save_results()
            watchdog.end(128 + caught.exc_value.number, farewell or _say_interrupted)
        hook(caught)

    sys.unraisablehook = unraisable
    try:
        with guard.watching() if guard is not None else contextlib.nullcontext():
            for number in _NUMBERS:
                _set(number, handle)
            yield
    finally:
        for number, handler in before.items():
            # After an interrupt, a further signal must not leave files behind.
            ends = guard is not None and guard.number is not None
            _set(number, guard.end_now if guard is not None and ends else handler)
        sys.unraisablehook = hook


def _say_interrupted() -> None:
    print("spiel-cr: interrupted", file=sys.stderr)


def _set(number: int, handler: Any) -> None:
    # None stands for a handler that Python did not install and cannot restore.
    if signal.getsignal(number) is not signal.SIG_IGN and handler is not None:
        signal.signal(number, handler)
