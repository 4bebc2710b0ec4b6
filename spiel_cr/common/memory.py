"""Memory: what the process has, holds and may take, and limits in bytes."""

import contextlib
import ctypes
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import TypeAlias

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.messages import one_line

try:
    import resource
except ImportError:  # Windows has no such module.
    resource = None  # type: ignore[assignment]

# A limit as users give it: bytes, a size like "3GB", "none" or `math.inf`; None: the
# default, `default_limit`.
Limit: TypeAlias = int | float | str | None

# What a process holds once OpenSpiel and JAX are imported, and what it holds at least
# when it has compiled and run a small program, too.
IMPORTED_BYTES = 250_000_000
BASE_BYTES = 400_000_000
# What compiling takes for each history at its peak, of which 40 to 65 bytes stay:
# vectorised 75 to 85, by a walk over states 110, more where nearly every history has an
# infoset of its own (strings are not counted here, but `estimate.Watch` sees them).
BYTES_PER_HISTORY = 120
# What share of the machine's memory is the default limit, and what it never falls
# under in a fresh process: small games run on small machines.
_SHARE = 0.7
_LEAST_DEFAULT = 1_000_000_000

# Linux tells here about its memory, control groups, and the process that asks.
_MACHINE = pathlib.Path("/proc/meminfo")
_PROCESS = pathlib.Path("/proc/self")
_GROUPS = pathlib.Path("/sys/fs/cgroup")
# Limits, use and caches of a control group, by version.
_GROUP_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def parse_size(text: str | float, name: str = "memory_limit") -> float:
    """Bytes from 3000000000, "3GB", "500M" or "1.5 GiB" (decimal; i for binary).

    Args:
      text: what the user gave; "none" and `math.inf` are infinity: no limit.
      name: of the argument or option, for messages.

    Raises:
      ValueError: it is no size, or not positive.
    """
    size = math.nan
    if not isinstance(text, str):
        with contextlib.suppress(TypeError, ValueError):
            size = math.nan if isinstance(text, bool) else float(text)
    elif text.strip().lower() == "none":
        return math.inf
    elif match := re.fullmatch(
        r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(I?)B?\s*", text, re.ASCII | re.IGNORECASE
    ):
        number, unit, binary = match.groups()
        base = 1024 if binary else 1000
        size = float(number) * base ** (" KMGT".index(unit.upper() or " "))
    if isinstance(text, str) and math.isinf(size):
        size = math.nan  # hundreds of digits
    if not size > 0:
        problem = "not a size" if math.isnan(size) else "too small"
        raise ValueError(
            f"{name}={text!r} is {problem}; write a positive number of bytes, a "
            f"size such as 500MB, 3GB or 2GiB, or none for no limit"
        )
    return size if math.isinf(size) else int(size)


def parse_limit(limit: Limit) -> float:
    """Bytes of a limit, `math.inf` for none; `default_limit` where it is None.

    Raises:
      ValueError: it is no size.
    """
    return default_limit() if limit is None else parse_size(limit)


def default_limit() -> float:
    """The limit where the user gives none, in bytes.

    It is 70 % of what a fresh process may have, at least 1 GB: small games run on any
    machine. The process may have the least of the machine's memory, the memory of its
    control group, and what is available now. `math.inf` where the system does not tell.
    """
    # What a fresh process holds is there already.
    held = min(held_bytes(), BASE_BYTES)
    sizes = [min(most, free + held) for most, free in _sizes()]
    return max(_LEAST_DEFAULT, int(_SHARE * min(sizes))) if sizes else math.inf


def machine_bytes() -> float:
    """The most that any process may have here; `math.inf` where nobody tells."""
    return min((most for most, _ in _sizes()), default=math.inf)


def _sizes() -> Iterator[tuple[int, int]]:
    """The most, and what is free now, of the machine and of its control groups."""
    sizes = list(_groups())
    with contextlib.suppress(OSError, ValueError):
        text = _MACHINE.read_text()
        total, available = (
            int(re.search(rf"{key}:\s+(\d+)", text)[1]) * 1024  # type: ignore[index]
            for key in ("MemTotal", "MemAvailable")
        )
        sizes.append((total, available))
    if not sizes and hasattr(os, "sysconf"):
        with contextlib.suppress(OSError, ValueError):
            size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            sizes.append((size, size))
    yield from sizes


def _groups() -> Iterator[tuple[int, int]]:
    """The most, and what is free now, of each control group that limits the process."""
    try:
        lines = (_PROCESS / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        version, root = (1, _GROUPS / "memory") if controllers else (2, _GROUPS)
        # Groups lie in each other; inside of a container, only the root can be seen.
        inner = pathlib.PurePosixPath(path.lstrip("/"))
        for folder in (inner, *inner.parents):
            most_file, used_file, cache_key = _GROUP_FILES[version]
            with contextlib.suppress(OSError, ValueError):
                most = int((root / folder / most_file).read_text())
                used = int((root / folder / used_file).read_text())
                caches = (root / folder / "memory.stat").read_text()
                cache_match = re.search(rf"^{cache_key} (\d+)", caches, re.MULTILINE)
                used -= int(cache_match[1]) if cache_match else 0
                yield most, max(0, most - used)


# Larger sizes are no estimates any more.
_LARGEST_ESTIMATE = 1e18


def describe_bytes(size: float) -> str:
    """Bytes in words, such as "3.2 GB"."""
    if not size < _LARGEST_ESTIMATE:
        return f"more than {_LARGEST_ESTIMATE / 1e9:,.0f} GB"
    return f"{size / 1e9:.2g} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def describe_limit(limit: Limit, size: float) -> str:
    """A limit in words, and whether the user gave it."""
    text = f"memory_limit is {describe_bytes(size)}"
    return f"{text} (the default on this machine)" if limit is None else text


def too_large(game: object, need: str, limit: Limit, size: float) -> GameTooLargeError:
    """The error to raise for a game over a limit.

    Args:
      game: for the message.
      need: how large it is, a half sentence.
      limit: as the user gave it.
      size: in bytes.
    """
    return GameTooLargeError(
        f"{one_line(game)} {need}, and {describe_limit(limit, size)}; raise the limit, "
        f"choose smaller game parameters, or do not compile the game: spiel-cr solve "
        f"with an "
        f"algorithm that samples (os-mccfr, es-mccfr, vr-mccfr), bots with "
        f"max_histories=N on lookahead trees (spiel-cr play, tournament), or spiel-cr "
        f"best-response, which searches on states"
    )


def histories_within(limit: float) -> int:
    """How many histories may be compiled under a limit of so many bytes.

    Raises:
      GameTooLargeError: no game fits.
    """
    if limit <= BASE_BYTES:
        raise GameTooLargeError(
            f"memory_limit={limit:.0f} bytes is too small for any game: OpenSpiel and "
            f"JAX alone need about {describe_bytes(BASE_BYTES)}; raise the limit"
        )
    most = (limit - BASE_BYTES) / BYTES_PER_HISTORY
    return sys.maxsize if math.isinf(most) else int(most)


def check_need(task: str, need: float, limit: Limit, remedy: str) -> None:
    """Refuses what would take more memory than a limit.

    Args:
      task: Name of the work that needs the memory, for the message.
      need: bytes that a fresh process takes for it, as exactly as they can be told.
      limit: as users give it; what this process holds for other things does not count.
      remedy: what takes less, for the message.

    Raises:
      GameTooLargeError: it needs more.
      ValueError: the limit is no size.
    """
    size = parse_limit(limit)
    if need > size:
        raise GameTooLargeError(
            f"{task} needs about {describe_bytes(need)} in total, and "
            f"{describe_limit(limit, size)}; {remedy}, or raise the limit"
        )


def held_bytes() -> int:
    """The memory that this process holds now; 0 where that is unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int((_PROCESS / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def trim() -> None:
    """Gives back to the system what was freed, where the C library keeps it.

    Compiling a program leaves some hundred megabytes so, in pieces that no large array
    fits into.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_bytes() -> int:
    """The most memory this process has held so far; 0 where that is unknown."""
    with contextlib.suppress(OSError):
        # Unlike `ru_maxrss` this leaves out what the parent held before exec.
        match = re.search(r"VmHWM:\s+(\d+)", (_PROCESS / "status").read_text())
        if match is not None:
            return int(match[1]) * 1024
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak if sys.platform == "darwin" else peak * 1024
