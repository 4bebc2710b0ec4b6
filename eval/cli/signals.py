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
_ENDED = b"spiel-cr: interrupted\n"


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
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 1:
            raise Interrupted(number)
        _say(_FINISHING)
        end_at_once()

    def unraisable(caught: Any) -> None:
        """Python drops exceptions in destructors, Cython in functions without a value.

        Nobody knows what was left half done there, such as scipy's tables of Sobol
        numbers. So nothing is written any more: files are as they were.
        """
        if isinstance(caught.exc_value, Interrupted):
            _say(_ENDED)
            os._exit(128 + caught.exc_value.number)
        hook(caught)

    sys.unraisablehook = unraisable
    try:
        for number in _NUMBERS:
            _set(number, handle)
        yield
    finally:
        for number, handler in before.items():
            _set(number, handler)
        sys.unraisablehook = hook


def _say(text: bytes) -> None:
    """Not by print: the signal may have come in the middle of one."""
    with contextlib.suppress(OSError):
        os.write(2, text)


def _set(number: int, handler: Any) -> None:
    # None: a handler that Python did not install, and cannot give back.
    if signal.getsignal(number) is not signal.SIG_IGN and handler is not None:
        signal.signal(number, handler)
