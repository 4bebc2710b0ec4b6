"""A thread that ends an interrupted command whose main thread does not react.

Python runs signal handlers in the main thread, between two of its instructions. A
handler therefore waits while the main thread executes a long function in C, and the
exception that it raises is lost if such a function discards it. `Watchdog` learns of a
signal when it arrives. If the command has not ended after `GRACE_SECONDS`, the watchdog
writes the results that are not yet in a file (`spiel_cr.common.interrupts`), removes
temporary files and lock files, kills worker processes, and ends the process.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from spiel_cr.common import atomic, interrupts, processes

# Time in seconds for an interrupted command to end by itself.
GRACE_SECONDS = 1.0
# The same for commands that normally end by an interrupt.
_ACCEPTED_SECONDS = 5.0
_TICK = 0.1
# Number of signals after which unsaved results are abandoned.
_LAST_SIGNAL = 3
# Time in seconds for a line on stderr; it takes longer only if no program reads it.
_TELLING_SECONDS = 0.3
_WAITING = (
    b"spiel-cr: waiting for the current step, to save its results; interrupt again to "
    b"end without them\n"
)

# The watchdogs that are active.
_watching: "list[Watchdog]" = []


class Watchdog:
    """A thread that watches one command.

    Attributes:
      number: The first signal that arrived. If None, no signal has arrived.
      repeats: Whether the next call of the signal handler was made by the watchdog,
        because the exception of an earlier call was lost.
    """

    def __init__(self, numbers: tuple[int, ...], farewell: Callable[[], None]) -> None:
        """Store the arguments; `watching` starts the thread.

        Args:
          numbers: Signals that end the command.
          farewell: Function that prints the last lines of an interrupted command.
        """
        self._numbers, self._farewell = numbers, farewell
        self.number: int | None = None
        self.repeats = False
        self._raised: KeyboardInterrupt | None = None
        self._left = False
        self._num_repeats = 0
        self._lost_looks = 0
        self._grace = GRACE_SECONDS
        self._code: int | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the block, and after a signal the process until its end."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._watch, args=(read,), daemon=True)
        thread.start()
        _watching.append(self)
        try:
            yield
        finally:
            self._left = True
            _watching.remove(self)
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            # When the pipe is closed, the thread ends unless a signal has arrived.
            os.close(write)

    def note_raised(self, raised: KeyboardInterrupt) -> None:
        """Note the exception that the signal handler raises."""
        self._raised, self.repeats, self._lost_looks = raised, False, 0

    def end_now(self, number: int, frame: FrameType | None) -> None:
        """End the process; signal handler for the time after the block."""
        end(128 + number, self._farewell)

    def accept(self) -> None:
        """Let the command end normally, as if it had not been interrupted."""
        self._grace, self._code = _ACCEPTED_SECONDS, 0
        self._farewell = lambda: None

    def _watch(self, read: int) -> None:
        """Wait for a signal, then for the end of the process; runs in the thread."""
        # If the main thread blocks signals, they must not arrive in this thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._numbers)
        count = 0
        while not count:
            select.select([read], [], [])
            count = self._arrived(read)
            if self._left and not count:
                os.close(read)
                return
        assert self.number is not None
        began, warned = time.monotonic(), False
        while count < _LAST_SIGNAL:
            time.sleep(_TICK)
            count += self._arrived(read)
            if time.monotonic() < began + self._grace:
                continue
            if _saved():
                break
            if not warned:
                warned = say(_WAITING)
            if self._is_lost():
                self._raise_again()
        end(128 + self.number if self._code is None else self._code, self._farewell)

    def _arrived(self, read: int) -> int:
        """Count the signals that arrived since the last call."""
        numbers: list[int] = []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(read, 256):
                numbers += [number for number in data if number in self._numbers]
        if numbers and self.number is None:
            self.number = numbers[0]
        repeated = min(self._num_repeats, len(numbers))
        self._num_repeats -= repeated
        return len(numbers) - repeated

    def _is_lost(self) -> bool:
        """Return whether the raised exception was lost: it does not unwind the stack.

        A single look can be wrong: between two `finally` blocks, Python does not report
        the exception that is being handled.
        """
        if self._raised is None or self._left or interrupts.is_postponed():
            return False
        current = sys._current_exceptions().get(threading.main_thread().ident or 0)
        # The frame holds a triple up to Python 3.11, and the exception from 3.12 on.
        error: Any = current[1] if isinstance(current, tuple) else current
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            if error is self._raised:
                self._lost_looks = 0
                return False
            seen.add(id(error))
            error = error.__context__
        self._lost_looks += 1
        return self._lost_looks > 3

    def _raise_again(self) -> None:
        """Have the main thread call the handler again."""
        assert self.number is not None
        # The default action would leave files behind.
        if callable(signal.getsignal(self.number)):
            self._lost_looks, self.repeats = 0, True
            self._num_repeats += 1
            signal.pthread_kill(threading.main_thread().ident or 0, self.number)


def accept_interrupt() -> None:
    """Declare that an interrupt is the usual end of the command that runs, if any."""
    for watchdog in tuple(_watching):
        watchdog.accept()


def end(code: int, farewell: Callable[[], None] = lambda: None) -> NoReturn:
    """End this process after an interrupt, from any thread.

    Args:
      code: Exit code.
      farewell: Function that prints the last lines.
    """
    processes.kill_all()
    atomic.remove_process_files()

    def tell() -> None:
        with contextlib.suppress(Exception):
            bars = sys.modules.get("tqdm")
            if bars is not None and bars.tqdm._instances:
                print(file=sys.stderr)
            farewell()
            sys.stdout.flush()
            sys.stderr.flush()

    # The main thread may be in the middle of writing to the same stream.
    telling = threading.Thread(target=tell, daemon=True)
    # No thread can be started while the interpreter ends.
    with contextlib.suppress(RuntimeError):
        telling.start()
        telling.join(_TELLING_SECONDS)
    os._exit(code)


def _saved() -> bool:
    """Save all results as far as possible, and return whether all are saved."""
    try:
        return interrupts.save_results()
    except Exception:  # The main thread may be changing the results.
        return False


def say(text: bytes) -> bool:
    """Write to stderr, unless that would block; returns True."""
    with contextlib.suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text)
    return True
