"""Worker processes that start fresh, ignore signals, and end with their parent.

A worker calls a factory once, and then answers requests: it calls the returned function
with each request. If the function has a method `rest`, the worker calls it after it has
sent an answer, for work that can wait. Requests and answers are pickled and come only
from these processes; files are never unpickled. Signals that a terminal sends to all
processes are left to the process that started the workers. However that process ends,
its workers end too.
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

from spiel_cr.common import messages, plugins
from spiel_cr.common.errors import WorkerFailedError

# Signals that end a command.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Errors about the user's input or about the machine, which are raised unchanged.
_OF_USERS = {"OSError", "MemoryError", "ImportError", "SpielError", "SolverFailedError"}
_OF_USERS |= {"WorkerFailedError"}

# Worker processes that have not been ended.
_running: set[BaseProcess] = set()

# Time in which an idle worker ends by itself. A worker that is killed would leave
# semaphores behind.
FAREWELL_SECONDS = 5.0
# The kernel ends a process that is killed within this time, unless it hangs.
_KILLED_SECONDS = 0.2


class WorkerEndedError(WorkerFailedError):
    """A worker ended before it answered."""


class Worker(NamedTuple):
    """A worker process, and this process's end of the pipe to it."""

    process: BaseProcess
    pipe: Connection

    def send(self, request: Any) -> None:
        """Send a request; if the worker has ended, `receive` reports it."""
        with contextlib.suppress(OSError):
            self.pipe.send(request)

    def receive(self) -> Any:
        """Return the next answer; the first one, before all requests, is None.

        Raises:
          WorkerEndedError: If the process ended.
          Exception: If the worker raised an error, as described in `answered`.
        """
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            # If a process is killed, its end of the pipe is reset.
            self.process.join()
            raise WorkerEndedError(
                f"its process ended with code {self.process.exitcode}; use fewer "
                f"workers if they do not fit into memory, and start them under "
                f"`if __name__ == '__main__':` in a script"
            ) from None
        return result_of(answer)

    def end(self, patience: float = 0.0) -> None:
        """End the worker.

        Args:
          patience: Time in seconds in which an idle worker may end by itself before it
            is killed.
        """
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
    """Start a process that shares no state with this one.

    Args:
      make: Function of a module, which the process calls with all of `setup`.
      setup: Arguments, which must be picklable.
    """
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    # Pickled here, because the worker must import users' modules before it unpickles.
    making = bytes(ForkingPickler.dumps(functools.partial(make, *setup)))
    # Not a daemon, because it may start workers, too.
    process = context.Process(target=_work, args=(worker_end, making))
    # Python's resource tracker is started first, because its start unblocks signals. It
    # inherits the blocked SIGHUP, so closing the terminal does not end it. It ignores
    # the other signals itself.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        resource_tracker.ensure_running()
        # The worker inherits this mask, so no signal ends it before it ignores signals.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        _running.add(process)
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # Otherwise a program that ends early would wait for a worker that ignores signals.
    atexit.register(process.kill)
    # Otherwise the end of the worker would not be noticed.
    worker_end.close()
    return Worker(process, parent_end)


def answered(function: Callable[..., Any], *arguments: Any) -> tuple[bool, Any]:
    """Call a function, and return whether it succeeded, with its value or its error.

    Errors with a message for users are returned unchanged if they can be pickled. Other
    errors become a WorkerFailedError that contains the traceback.
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
            # Some errors can be pickled, but not unpickled.
            again = ForkingPickler.loads(ForkingPickler.dumps(error))
            if passes and type(again) is type(error):
                return False, error
        lines = "".join(traceback.format_exception(error))
        return False, WorkerFailedError(f"a worker failed:\n{lines}")


def result_of(answer: tuple[bool, Any]) -> Any:
    """Return the value of an answer from `answered`, or raise its error."""
    fine, value = answer
    if not fine:
        raise value
    return value


def _work(pipe: Connection, making: bytes) -> None:
    """Answer requests in a worker process until the pipe is closed."""
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
    """Prepare a worker process: ignore signals, and end when the parent ends."""
    # Otherwise the parent might record the end of a worker as a crash.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Only the command writes to stdout, because its last line is the JSON report.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    messages.start_quietly()
    plugins.import_from_environment()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
