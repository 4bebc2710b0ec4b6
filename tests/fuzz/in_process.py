"""Runs of `spiel-cr` commands in this process, with their output and exit code."""

import contextlib
import functools
import os
import pathlib
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple, TextIO

from spiel_cr.eval.cli import main

# A command that works longer is interrupted; one that prints nothing for too long
# hangs. Limits are in seconds of CPU time, because the machine may have other work.
# Limits of wall-clock time are larger by the factor `_WALL`.
MAX_SECONDS, _SILENT_SECONDS, _WALL = 60, 20, 6


class Outcome(NamedTuple):
    """Outcome of a command.

    Attributes:
      code: Exit code; None if an exception was not handled, or the command hung.
      out: Everything written to stdout.
      err: Everything written to stderr.
      error: The exception that was not handled, as text.
      seconds: Wall-clock time.
    """

    code: int | None
    out: str
    err: str
    error: str
    seconds: float


class HangsError(BaseException):
    """A hang; not an `Exception`, so that commands do not catch it."""


@functools.cache
def _written() -> tuple[TextIO, TextIO]:
    """Return stdout and stderr, opened as Python does in a UTF-8 locale.

    They are opened only once, because loggers keep a reference to stderr.
    """
    return (
        open(1, "w", encoding="utf-8", errors="strict", closefd=False),
        open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False),
    )


@contextlib.contextmanager
def _streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Redirect stdout and stderr to files, also for C++ libraries; close stdin."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(os.devnull) as nothing,
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        python = sys.stdin, sys.stdout, sys.stderr
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin = nothing
        sys.stdout, sys.stderr = _written()
        try:
            yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr = python
            for number, old in enumerate(saved, 1):
                os.dup2(old, number)
                os.close(old)


@contextlib.contextmanager
def _watched(err: IO[bytes]) -> Iterator[None]:
    """Raise if a command prints nothing for too long, or interrupt a long one."""
    began = said = time.time(), time.process_time()

    def passed(since: tuple[float, float], most: float) -> bool:
        wall, processor = since
        late = time.time() - wall > _WALL * most
        return late or time.process_time() - processor > most

    def look(number: int, frame: object) -> None:
        nonlocal said
        written = os.fstat(err.fileno()).st_mtime
        if written > said[0]:
            said = written, time.process_time()
        if passed(said, _SILENT_SECONDS):
            raise HangsError(f"nothing is said for {_SILENT_SECONDS} s")
        if passed(began, MAX_SECONDS):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(words: Sequence[str], folder: pathlib.Path) -> Outcome:
    """Run a command, given without `spiel-cr`, in a folder for a limited time."""
    code: int | None = None
    error, started = "", time.perf_counter()
    with _streams() as (out, err), contextlib.chdir(folder):
        try:
            with _watched(err):
                main._run(main._parse(["spiel-cr", *words]))
            sys.stdout.flush()
            code = 0
        except SystemExit as stopped:
            known = isinstance(stopped.code, int)
            code = int(stopped.code) if known else int(bool(stopped.code))
        except (Exception, HangsError):
            error = traceback.format_exc()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    seconds = time.perf_counter() - started
    return Outcome(code, texts[0], texts[1], error, seconds)
