"""Worker processes: started fresh, deaf to signals, and never left behind.

A worker makes something once, and then answers requests: what `make` returns is called
with each; what can wait until an answer is there, its method `rest` does, if it has
one. Requests and answers are pickled, and come from these processes alone; nothing is
ever unpickled from a file. Signals that go to all processes of a terminal are for the
process that started the workers to decide on; they end with it, however it ends.
"""

import atexit
import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from spiel_cr.common import plugins
from spiel_cr.common.errors import WorkerFailedError

# What ends a command.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Errors about what the user gave, or about the machine: they pass as they are.
_OF_USERS = {"OSError", "MemoryError", "ImportError", "SpielError", "SolverFailedError"}
_OF_USERS |= {"WorkerFailedError"}

# Worker processes that have not been ended.
_running: set[BaseProcess] = set()

# A worker that is no longer needed ends by itself within this time: who is killed
# leaves semaphores behind.
FAREWELL_SECONDS = 5.0
# The kernel ends a process that is killed within this time, unless it hangs.
_KILLED_SECONDS = 0.2


class WorkerEndedError(WorkerFailedError):
    """A worker ended before it answered."""


class Worker(NamedTuple):
    """A process, and this side's end of the pipe to it."""

    process: BaseProcess
    pipe: Connection

    def send(self, request: Any) -> None:
        """Sends a request; whether the worker still lives, its answer will tell."""
        with contextlib.suppress(OSError):
            self.pipe.send(request)

    def receive(self) -> Any:
        """The next answer; the first one, before all requests, is None.

        Raises:
          WorkerEndedError: the process ended.
          Exception: whatever went wrong there, see `answered`.
        """
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            # A process that is killed resets its end of the pipe.
            self.process.join()
            raise WorkerEndedError(
                f"its process ended with code {self.process.exitcode}; use fewer "
                f"workers if they do not fit into memory, and start them under "
                f"`if __name__ == '__main__':` in a script"
            ) from None
        return result_of(answer)

    def end(self, patience: float = 0.0) -> None:
        """Ends the worker; an idle one has some seconds to do so itself."""
        self.pipe.close()
        if patience:
            self.process.join(patience)
        self.process.kill()
        self.process.join()
        _running.discard(self.process)


def kill_all() -> None:
    """Kill the worker processes of this process, which is about to end itself."""
    running = tuple(_running)
    # Some may not have been started, and another thread may be waiting for others.
    errors = OSError, ValueError, AssertionError, AttributeError
    for process in running:
        with contextlib.suppress(*errors):
            process.kill()
    for process in running:
        with contextlib.suppress(*errors):
            process.join(_KILLED_SECONDS)


def start(make: Callable[..., Callable[[Any], Any]], setup: Sequence[Any]) -> Worker:
    """Starts a process that does nothing of what this one has done.

    Args:
      make: a function of a module; called there with all of `setup`.
      setup: what can be pickled.
    """
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    # In bytes, so that users' modules are there when it is read.
    making = bytes(ForkingPickler.dumps(functools.partial(make, *setup)))
    # No daemon: it may have workers, too.
    process = context.Process(target=_work, args=(worker_end, making))
    # Python's process that keeps track of semaphores is started first: its start would
    # let through what is held back. It inherits what is, so a terminal that is closed
    # does not end it; it ignores the other signals itself.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        resource_tracker.ensure_running()
        # The worker inherits that, and so nothing ends it before it ignores signals.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        _running.add(process)
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # Else a program that ends in its midst would wait for one that hears no signals.
    atexit.register(process.kill)
    # Otherwise the end of the worker would not be noticed.
    worker_end.close()
    return Worker(process, parent_end)


def answered(function: Callable[..., Any], *arguments: Any) -> tuple[bool, Any]:
    """What a function returns, or an error that any process can raise.

    Errors that are for people stay what they are; else a WorkerFailedError has the
    lines of their traceback.
    """
    try:
        return True, function(*arguments)
    except BaseException as caught:
        faults = (diagnosis(caught) for diagnosis in plugins.diagnoses)
        error = next((fault for fault in faults if fault is not None), caught)
        if not isinstance(error, Exception):
            raise
        kinds = {kind.__name__ for kind in type(error).__mro__}
        passes = bool(kinds & _OF_USERS) or (
            isinstance(error, ValueError)
            and (error is not caught or plugins.is_deliberate(error))
        )
        with contextlib.suppress(Exception):
            # Some errors can be pickled, but not made again.
            again = ForkingPickler.loads(ForkingPickler.dumps(error))
            if passes and type(again) is type(error):
                return False, error
        lines = "".join(traceback.format_exception(error))
        return False, WorkerFailedError(f"a worker failed:\n{lines}")


def result_of(answer: tuple[bool, Any]) -> Any:
    """What `answered` returned, or raises its error."""
    fine, value = answer
    if not fine:
        raise value
    return value


def _work(pipe: Connection, making: bytes) -> None:
    """A worker: requests come in, answers go out, until nobody asks any more."""
    _become_worker()
    answer: Any = answered(lambda: ForkingPickler.loads(making)())
    fine, do = answer
    if fine:
        answer = fine, None
    while True:
        with contextlib.suppress(OSError):
            pipe.send(answer)
        getattr(do, "rest", int)()
        try:
            request = pipe.recv()
        except (EOFError, OSError):
            return
        answer = answered(do, request)


def _become_worker() -> None:
    """What a worker does first: it ignores signals, and ends with its parent."""
    # Otherwise the parent might take a worker's end for a crash, and write that down.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The last line of stdout is the command's own.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    plugins.import_from_environment()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
