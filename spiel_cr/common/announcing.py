"""What is being done, in lines on stderr, with the time since the process began.

A command listens for as long as it runs (`listening`). A function that is called from
Python says something only where its argument `progress` asks for it.
"""

import contextlib
import sys
import time
from collections.abc import Iterator

from spiel_cr.common.one_line import one_line

_BEGAN = time.monotonic()

_listens = False
_latest = ""


def elapsed() -> float:
    """Seconds since the process began."""
    return time.monotonic() - _BEGAN


@contextlib.contextmanager
def listening(wanted: bool = True) -> Iterator[None]:
    """Whatever is announced in the block is shown, and so are bars of long walks.

    Args:
      wanted: false: it is shown where it was before the block, and nowhere else.
    """
    global _listens
    before, _listens = _listens, _listens or wanted
    try:
        yield
    finally:
        _listens = before


def is_wanted(progress: bool | None = None) -> bool:
    """Whether progress is to be shown.

    Args:
      progress: what the caller was asked for; None or False: shown to a command only.
    """
    return bool(progress) or _listens


def latest() -> str:
    """What was announced last, shown or not."""
    return _latest


def announce(text: str, *, progress: bool | None = None) -> None:
    """Says what begins now, above the bars that are shown.

    Args:
      text: such as "judging (OpenSpiel)".
      progress: as of `is_wanted`.
    """
    global _latest
    _latest = text
    if not is_wanted(progress):
        return
    line = f"[{elapsed():6.1f} s] {one_line(text)}"
    # Without it there are no bars. Importing it for a line would delay the first one.
    bars = sys.modules.get("tqdm")
    if bars is None:
        print(line, file=sys.stderr)
    else:
        bars.tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()
