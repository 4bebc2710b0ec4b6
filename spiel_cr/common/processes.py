"""Worker processes: started fresh, deaf to signals, and never left behind.

A worker takes messages of bytes from a pipe and sends others back. Signals that go to
all processes of a terminal are for the process that started the workers to decide on;
they end with it, however it ends.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from spiel_cr.common import plugins

# What ends a command.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Worker(NamedTuple):
    """A process, and this side's end of the pipe to it."""

    process: BaseProcess
    pipe: Connection


def start(work: Callable[..., None], *arguments: Any) -> Worker:
    """Starts a process that does nothing of what this one has done.

    Args:
      work: a function of a module; called with the other end of the pipe and the
        arguments. It calls `become_worker` first.
      *arguments: numbers and strings.
    """
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
    # Else its start would let through what is held back.
    resource_tracker.ensure_running()
    # The worker inherits that, and so nothing ends it before it ignores signals.
    with _held_back(SIGNALS):
        process.start()
    # Otherwise the end of the worker would not be noticed.
    theirs.close()
    return Worker(process, mine)


def end(worker: Worker) -> None:
    """Ends a worker, whatever it does."""
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def become_worker() -> None:
    """What a worker does first: it ignores signals, and ends with its parent."""
    # Otherwise the parent might take a worker's end for a crash, and write that down.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The last line of stdout is the command's own.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    plugins.import_from_environment()


@contextlib.contextmanager
def _held_back(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Signals wait until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
