"""A simulation of a full disk."""

import contextlib
import resource
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def file_size(most: int) -> Iterator[None]:
    """Limit the size of files that this process writes to `most` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
