"""Signals: what ends a command, and what it may still write after that.

Ctrl-C, `kill` and a terminal that is closed are one: the command writes what there is
to be kept, and ends. Before the work begins, and after it, there is nothing to keep;
the process then ends at once, without a word and without a traceback.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FINISHING = b"spiel-cr: writing what there is; once more ends it at once\n"
# After this time a signal is sent again whose exception nobody got.
_AGAIN_SECONDS = 0.02


class Interrupted(KeyboardInterrupt):
    """A signal; `number` says which.

    A KeyboardInterrupt, so that whatever cleans up after Ctrl-C does so after all.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_at_once() -> None:
    """From now on signals end the process without a word."""
    for number in _NUMBERS:
        _set(number, signal.SIG_DFL)


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Signals raise `Interrupted` in the block, the first one only.

    The second says that the command is finishing; the third ends the process at once.
    A signal that is ignored (as `nohup` has it) stays so. Outside of the main thread,
    which alone can handle signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    hook = sys.unraisablehook
    count, dropping, over = 0, False, False
    # Whether a signal raised, and whether one that was sent again arrived.
    raised, arrived = threading.Event(), threading.Event()
    senders: list[threading.Thread] = []

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        arrived.set()
        if dropping or over:
            return
        count += 1
        if count == 1:
            raised.set()
            raise Interrupted(number)
        # Not print: the signal may have come in the middle of one.
        with contextlib.suppress(OSError):
            os.write(2, _FINISHING)
        end_at_once()

    def unraisable(caught: Any) -> None:
        """Python drops exceptions in destructors; a signal must not be lost there."""
        nonlocal count, dropping
        if not isinstance(caught.exc_value, Interrupted):
            hook(caught)
            return
        # Here, too, it would be dropped.
        dropping, count = True, 0
        raised.clear()
        number = caught.exc_value.number
        senders.append(threading.Thread(target=send_again, args=(number,), daemon=True))
        senders[-1].start()
        dropping = False

    def send_again(number: int) -> None:
        while not raised.wait(_AGAIN_SECONDS):
            arrived.clear()
            os.kill(os.getpid(), number)
            arrived.wait()

    sys.unraisablehook = unraisable
    try:
        for number in _NUMBERS:
            _set(number, handle)
        yield
    finally:
        over = True
        raised.set()
        for sender in senders:
            sender.join()
        for number, handler in before.items():
            _set(number, handler)
        sys.unraisablehook = hook


def _set(number: int, handler: Any) -> None:
    # None: a handler that Python did not install, and cannot give back.
    if signal.getsignal(number) is not signal.SIG_IGN and handler is not None:
        signal.signal(number, handler)
