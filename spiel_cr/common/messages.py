"""Messages: progress lines on stderr, and short descriptions of users' values.

A command shows progress for its entire run (`listening`). A function that is called
from Python shows progress if its argument `progress` is true; by default it shows bars
after ten seconds if stderr is a terminal.
"""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

_START = time.monotonic()
# The longest text of a value that `short_repr` prints as it is.
_LONGEST_VALUE = 60

# Seconds before a bar that nobody asked for, and between lines in a file or a pipe.
_LATE, _BETWEEN_LINES = 10.0, 30.0

_listens: bool | None = None
_latest = ""


def elapsed() -> float:
    """Return the seconds since this module was imported."""
    return time.monotonic() - _START


@contextlib.contextmanager
def listening(wanted: bool | None = True) -> Iterator[None]:
    """Show all messages, and progress bars of long walks, while a block runs.

    Args:
      wanted: Whether to show them. If false, nothing is shown that is not shown
        already; if None, nothing changes.
    """
    global _listens
    before, _listens = _listens, _listens if wanted is None else _listens or wanted
    try:
        yield
    finally:
        _listens = before


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show no messages during a block with its own progress bar."""
    global _listens
    before, _listens = _listens, False
    try:
        yield
    finally:
        _listens = before


def start_quietly() -> None:
    """Show nothing in a worker process, whose terminal is that of its parent."""
    global _listens
    _listens = False


def is_wanted(progress: bool | None = None) -> bool:
    """Return whether to show progress.

    Args:
      progress: Argument `progress` of the calling function. If None or False, progress
        is shown only inside `listening`.
    """
    return bool(progress or _listens)


class _Lines:
    """A stream on which each state of a progress bar is printed as one line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write a line without the control characters of a terminal."""
        if line := text.replace("\x1b[A", "").strip():
            self._stream.write(f"{line}\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def progress_bar(
    items: Any = None,
    *,
    progress: bool | None = None,
    disable: bool = False,
    **options: Any,
) -> Any:
    """Return a bar of `tqdm` on stderr, or lines if stderr is not a terminal.

    Args:
      items: Items to iterate over, if any.
      progress: Argument `progress` of the calling function. If None, the bar appears
        inside `listening`, and otherwise after ten seconds on a terminal. If False, it
        appears only inside `listening`.
      disable: Whether no bar is shown in any case.
      options: Further arguments of `tqdm`.
    """
    from tqdm import tqdm  # Slow to import.

    shown, is_terminal = is_wanted(progress), sys.stderr.isatty()
    if not is_terminal:
        every = {"mininterval": _BETWEEN_LINES, "maxinterval": _BETWEEN_LINES}
        options |= {"file": _Lines(sys.stderr), **every}
    if not shown and progress is None and _listens is None and is_terminal:
        shown, options["delay"] = True, _LATE
    return tqdm(items, disable=disable or not shown, **options)


def latest() -> str:
    """Return the last message, whether it was shown or not."""
    return _latest


def announce(text: str, *, progress: bool | None = None) -> None:
    """Print a message about the work that starts now, above all progress bars.

    Args:
      text: Message, such as "evaluating (OpenSpiel)".
      progress: Argument `progress` of the calling function, as in `is_wanted`.
    """
    global _latest
    _latest = text
    if not is_wanted(progress):
        return
    line = f"[{elapsed():6.1f} s] {one_line(text)}"
    # If tqdm was not imported, there are no bars. Importing it takes too long.
    bars = sys.modules.get("tqdm")
    if bars is None:
        print(line, file=sys.stderr)
    else:
        bars.tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()


def one_line(text: object) -> str:
    """Escape everything in a text that could break a line or cannot be encoded.

    These are control characters, line separators, lone surrogates and all others that
    `str.isprintable` excludes. Text that consists of printable characters is returned
    unchanged, so that the result can be read and usually be copied back.

    Args:
      text: A string, or an object that is converted with `str`, such as a game.

    Returns:
      Text with escapes as Python writes them, for example a newline as a backslash
      and an n.
    """
    line = str(text)
    if line.isprintable():
        return line
    return "".join(
        letter
        if letter.isprintable()
        else letter.encode("unicode_escape").decode("ascii")
        for letter in line
    )


def number_text(value: float, spec: str = ".6g", rounding: float = 1e-12) -> str:
    """Format a number for people, with 0 for values that are only rounding errors.

    Args:
      value: The number.
      spec: Format, as `format` accepts it, such as "+.6f".
      rounding: Largest size of rounding errors, in the unit of the number.
    """
    text = format(value, spec)
    # Zeros have no sign, such as that of "-0.000".
    is_zero = abs(value) <= rounding or not text.strip("+-0.% ")
    return format(0.0, spec) if is_zero else text


def short_repr(self: Any) -> str:
    """Return the `__repr__` of a dataclass or named tuple that holds arrays.

    Numbers and short texts are printed as they are, arrays by dtype and shape, and
    other objects by their class. Fields that are None or have their default are left
    out.
    """
    parts = []
    for name, default in _fields(self):
        value = getattr(self, name)
        usual = isinstance(value, str | int | float | bool) and value == default
        if value is None or usual or (isinstance(value, tuple) and not value):
            continue
        parts.append(f"{name}={_described(value)}")
    return f"{type(self).__name__}({', '.join(parts)})"


def _fields(record: Any) -> list[tuple[str, Any]]:
    """Return the names of the fields and their defaults."""
    if dataclasses.is_dataclass(record):
        return [
            (field.name, field.default)
            for field in dataclasses.fields(record)
            if field.repr
        ]
    defaults: Mapping[str, Any] = record._field_defaults
    return [(name, defaults.get(name, dataclasses.MISSING)) for name in record._fields]


def _described(value: object) -> str:
    """Return a short description of a value."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple) and len(value) <= 2:
        return f"({', '.join(map(_described, value))})"
    if isinstance(value, tuple | list | dict | set):
        return f"<{len(value)} entries>"
    for text in (repr(value), str(value)):
        if len(text) <= _LONGEST_VALUE and "\n" not in text and " at 0x" not in text:
            return text
    return f"<{type(value).__name__}>"
