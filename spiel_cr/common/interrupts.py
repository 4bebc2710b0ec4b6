"""Signals that end a command wait until a step of work is whole."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from spiel_cr.common import processes


class Steps:
    """In its block, what Ctrl-C and the like do is done between steps.

    The first signal that comes within a step is handled at the step's end; another one
    in the same step is handled at once, so that nobody waits for a step that hangs.
    Signals whose handler is not Python's (ignored ones, those that end the process) are
    left alone. Outside of the main thread, which alone can handle signals, nothing
    changes.
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
        # A handler of ours that is left behind hands on what comes.
        for number, handler in self._before.items():
            # What was put there meanwhile stays, such as one that ends at once.
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """A step; at its end, also where it fails, the signal that came is handled."""
        self._within = True
        try:
            yield
        finally:
            self._within = False
            number, self._waiting = self._waiting, None
            if number is not None:
                self._before[number](number, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._within and self._waiting is None:
            self._waiting = number
            return
        self._waiting = None
        self._before[number](number, frame)
