"""What is being done, in lines on stderr, with the time since the process began."""

import sys
import time

_BEGAN = time.monotonic()


def announce(text: str, *, progress: bool = True) -> None:
    """Says what begins now.

    Args:
      text: such as "judging (OpenSpiel)".
      progress: whether anybody wants to know.
    """
    if progress:
        print(
            f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True
        )
