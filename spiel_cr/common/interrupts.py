"""Interrupts: steps that a signal must not split, and results not yet saved to a file.

This module does not install new signal handlers. It postpones the handlers that the
host program has installed, and it lists the results that a command has to save before
it may end.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from spiel_cr.common import processes

# A function for each block whose results are not yet in a file; see `saving`.
_savers: list[Callable[[], bool]] = []
# Signals that wait for the end of a step.
_postponed: set[int] = set()


@contextlib.contextmanager
def saving(save: Callable[[], bool]) -> Iterator[None]:
    """Declare that the block holds results that an interrupt must not lose.

    Args:
      save: Function that writes these results to their file, from any thread. It
        returns True if nothing is left to write, and False if only the main thread can
        write them, at a later time.
    """
    _savers.append(save)
    try:
        yield
    finally:
        _savers.remove(save)


def save_results() -> bool:
    """Write all results that the current blocks of `saving` hold.

    Returns:
      Whether the process may end without losing results.
    """
    return all([save() for save in tuple(_savers)])


def is_postponed() -> bool:
    """Return whether a signal waits for the end of a step."""
    return bool(_postponed)


class Steps:
    """Context manager that postpones the handling of Ctrl-C and similar signals.

    The first signal that arrives within a step is handled at the end of the step. A
    second signal in the same step is handled immediately, so that a step that hangs can
    be interrupted. Signals without a handler in Python (ignored signals, and signals
    that end the process) are left alone. Python handles signals only in the main
    thread, so in other threads nothing changes.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._within = False
        self._waiting: int | None = None

    def __enter__(self) -> "Steps":
        if threading.current_thread() is threading.main_thread():
            for number in processes.SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        # Handlers of this class that remain installed call the earlier handlers.
        for number, handler in self._before.items():
            # A handler that the block installed stays, such as one that ends the
            # process immediately.
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Run the block as one step, and handle a postponed signal at its end.

        The signal is also handled if the block raises an exception.
        """
        self._within = True
        try:
            yield
        finally:
            self._within = False
            number, self._waiting = self._waiting, None
            _postponed.clear()
            if number is not None:
                self._before[number](number, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._within and self._waiting is None:
            self._waiting = number
            _postponed.add(number)
            return
        self._waiting = None
        _postponed.clear()
        self._before[number](number, frame)
