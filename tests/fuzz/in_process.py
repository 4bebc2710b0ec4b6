"""A command of `spiel-cr` done in this process: all that it writes, and how it ends."""

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

# A command that is still at work, and says so, is interrupted; a silent one hangs. The
# seconds are of the processor, for the machine may have other work; on the wall there
# may be so many times as many.
MAX_SECONDS, _SILENT_SECONDS, _WALL = 60, 20, 6


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
      code: exit code; None: an exception came through, or it hung.
      out, err: all that was written.
      error: the exception that came through, as text.
      seconds: on the wall.
    """

    code: int | None
    out: str
    err: str
    error: str
    seconds: float


class HangsError(BaseException):
    """The command says nothing any more. Nobody may catch it: so it is no Exception."""


@functools.cache
def _written() -> tuple[TextIO, TextIO]:
    """Both streams, as Python opens them where the locale is UTF-8.

    They are opened once: what logs to stderr keeps it.
    """
    return (
        open(1, "w", encoding="utf-8", errors="strict", closefd=False),
        open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False),
    )


@contextlib.contextmanager
def _streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Both streams into files, those of libraries in C++ as well; no input."""
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
    """Ends what says nothing for too long, and interrupts what takes too long."""
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
    """Runs a command in a folder, for a minute at most; words after `spiel-cr`."""
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
