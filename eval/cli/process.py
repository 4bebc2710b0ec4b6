"""The process of `spiel-cr`: its three streams and its exit code."""

import contextlib
import gc
import io
import os
import select
import sys
from typing import Any, TextIO

from spiel_cr.common.messages import announce

from ..common import help_pages

# Exit code as in shells: 128 plus the number of the signal SIGPIPE.
_BROKEN_PIPE = 141
# Exit codes for SIGHUP, SIGINT and SIGTERM.
_INTERRUPTED = (129, 130, 143)


def main() -> None:
    """Run the command line, and end the process."""
    _open_streams()
    out, err = Forgiving(sys.stdout), Forgiving(sys.stderr)
    sys.stdout, sys.stderr = out.text(), err.text()
    sys.unraisablehook = _without_unfinished_bars
    code = 0
    try:
        page = help_pages.help_page(sys.argv[1:])
        if page is not None:
            print(page, end="")
        else:
            # The import takes one or two seconds. Help pages need no message.
            if sys.argv[1:] and not sys.argv[1].startswith("-"):
                announce("importing JAX and OpenSpiel", progress=True)
            # Modules are not garbage, and searching them takes a quarter of the time.
            gc.disable()
            from . import main as commands

            gc.freeze()
            gc.enable()
            commands.main(owns_process=True)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if not stop.code else 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):  # The stream is closed.
            stream.flush()
    if isinstance(out.error, BrokenPipeError):
        code = code or _BROKEN_PIPE
    elif out.error is not None:
        print(f"spiel-cr: error: stdout: {out.error.strerror}", file=sys.stderr)
        code = code or 1
    if code in _INTERRUPTED:
        # Running threads and the shutdown of Python may take long.
        from . import watchdog

        watchdog.end(code)
    sys.exit(code)


def _without_unfinished_bars(raised: Any) -> None:
    """Ignore the error of a progress bar whose construction was interrupted.

    Its `__del__` reads attributes that its `__init__` had not set yet.
    """
    name = getattr(raised.object, "__qualname__", "")
    if name != "tqdm.__del__" or not isinstance(raised.exc_value, AttributeError):
        sys.__unraisablehook__(raised)


def _open_streams() -> None:
    """Replace closed streams, so that the next opened file does not become stdout."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


class Forgiving(io.RawIOBase):
    """A stream that ignores failures to write, so that the command continues.

    Writing fails, for example, if `... | head` closes the pipe early, the disk is full
    or the terminal is closed.

    Attributes:
      error: First error, after which nothing more is written. If None, no error
        occurred.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.error: OSError | None = None
        # It would be closed, with its layers, after the last reference is deleted.
        self._stream = stream
        # Without a buffer (python -u) there is no second layer.
        self._raw = getattr(stream.buffer, "raw", stream.buffer)

    def text(self) -> TextIO:
        """Return the text stream that replaces the original one."""
        stream = self._stream
        return io.TextIOWrapper(
            io.BufferedWriter(self),
            encoding=stream.encoding,
            # Characters that the encoding does not have must not end the command.
            errors="backslashreplace",
            line_buffering=getattr(stream, "line_buffering", False),
            write_through=getattr(stream, "write_through", False),
        )

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                while (count := self._raw.write(data)) is None:
                    # A non-blocking pipe may be full.
                    select.select([], [self._raw], [])
                return count
            except OSError as error:
                self.error = error
        return len(data)
