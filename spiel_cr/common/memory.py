"""Memory: available and used memory of the process, and limits in bytes."""

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

# A limit as users write it: bytes, a size like "3GB", "none" or `math.inf`. None
# stands for `default_limit`.
Limit: TypeAlias = int | float | str | None

# Memory of a process after the imports of OpenSpiel and JAX, and the minimum after it
# has also compiled and run a small function.
IMPORTED_BYTES = 250_000_000
BASE_BYTES = 400_000_000
# Peak memory per history while a game tree is built; 40 to 65 bytes remain. Batched
# rules need 75 to 85 bytes, a walk over states 110, and more if nearly every history
# has a separate infoset. Strings are not included, but `estimate.Watch` observes them.
BYTES_PER_HISTORY = 120
# Default limit as a share of the machine's memory, and its minimum in a fresh process,
# so that small games run on small machines.
_SHARE = 0.7
_LEAST_DEFAULT = 1_000_000_000

# Files in which Linux reports its memory, this process, and control groups.
_MACHINE = pathlib.Path("/proc/meminfo")
_PROCESS = pathlib.Path("/proc/self")
_GROUPS = pathlib.Path("/sys/fs/cgroup")
# Limits, use and caches of a control group, by version.
_GROUP_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def parse_size(text: str | float, name: str = "memory_limit") -> float:
    """Return the bytes of 3000000000, "3GB", "500M" or "1.5 GiB" (decimal; i: binary).

    Args:
      text: Size as the user wrote it; "none" and `math.inf` mean no limit.
      name: Name of the argument or option, for messages.

    Raises:
      ValueError: If the text is not a size, or the size is not positive.
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
        size = math.nan  # from a text of hundreds of digits
    if not size > 0:
        problem = "not a size" if math.isnan(size) else "too small"
        raise ValueError(
            f"{name}={text!r} is {problem}; use a positive number of bytes, a "
            f"size such as 500MB, 3GB or 2GiB, or none for no limit"
        )
    return size if math.isinf(size) else int(size)


def parse_limit(limit: Limit) -> float:
    """Return the bytes of a limit, `math.inf` for none, and `default_limit()` for None.

    Raises:
      ValueError: If the limit is not a size.
    """
    return default_limit() if limit is None else parse_size(limit)


def default_limit() -> float:
    """Return the memory limit that applies if the user does not set one, in bytes.

    The limit is 70% of the memory that a fresh process may use, but at least 1 GB, so
    that small games run on every machine. A process may use the minimum of the
    machine's memory, the memory of its control group, and the memory that is available
    now. The result is `math.inf` if the system does not report these sizes.
    """
    # Memory that a fresh process needs is already in use by this one.
    held = min(held_bytes(), BASE_BYTES)
    sizes = [min(most, free + held) for most, free in _sizes()]
    return max(_LEAST_DEFAULT, int(_SHARE * min(sizes))) if sizes else math.inf


def machine_bytes() -> float:
    """Return the maximum memory of any process here; `math.inf` if it is unknown."""
    return min((most for most, _ in _sizes()), default=math.inf)


def _sizes() -> Iterator[tuple[int, int]]:
    """Yield total and free memory of the machine and of its control groups."""
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
    """Yield limit and free memory of each control group that limits the process."""
    try:
        lines = (_PROCESS / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        version, root = (1, _GROUPS / "memory") if controllers else (2, _GROUPS)
        # Control groups are nested. Inside a container, only the root is visible.
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


# Larger estimates are too inaccurate to print.
_LARGEST_ESTIMATE = 1e18


def describe_bytes(size: float) -> str:
    """Return a size in words, such as "3.2 GB"."""
    if not size < _LARGEST_ESTIMATE:
        return f"more than {_LARGEST_ESTIMATE / 1e9:,.0f} GB"
    return f"{size / 1e9:.2g} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def describe_limit(limit: Limit, size: float) -> str:
    """Return a limit in words, with a note if it is the default."""
    text = f"memory_limit is {describe_bytes(size)}"
    return f"{text} (the default on this machine)" if limit is None else text


def too_large(game: object, need: str, limit: Limit, size: float) -> GameTooLargeError:
    """Return the error for a game that exceeds a memory limit.

    Args:
      game: Game, for the message.
      need: Size of the game, a clause such as "needs about 3 GB".
      limit: Limit as the user wrote it.
      size: The limit in bytes.
    """
    return GameTooLargeError(
        f"{one_line(game)} {need}, and {describe_limit(limit, size)}; raise the limit, "
        f"choose smaller game parameters, or use methods without a game tree: "
        f"spiel-cr solve with an algorithm that samples (os-mccfr, es-mccfr, "
        f"vr-mccfr), bots with max_histories=N on lookahead trees (spiel-cr play, "
        f"tournament), or spiel-cr best-response, which searches from states"
    )


def histories_within(limit: float) -> int:
    """Return the number of histories that a game tree may have under a memory limit.

    Args:
      limit: Limit in bytes.

    Raises:
      GameTooLargeError: If the limit is too small for every game.
    """
    if limit <= BASE_BYTES:
        raise GameTooLargeError(
            f"memory_limit={limit:.0f} bytes is too small for any game: OpenSpiel and "
            f"JAX alone need about {describe_bytes(BASE_BYTES)}; raise the limit"
        )
    most = (limit - BASE_BYTES) / BYTES_PER_HISTORY
    return sys.maxsize if math.isinf(most) else int(most)


def check_need(task: str, need: float, limit: Limit, remedy: str) -> None:
    """Raise GameTooLargeError if work needs more memory than a limit.

    Args:
      task: Name of the work that needs the memory, for the message.
      need: Estimated memory in bytes that the work needs in a fresh process.
      limit: Limit as the user wrote it. Other memory of this process does not count.
      remedy: Alternatives that need less memory, for the message.

    Raises:
      GameTooLargeError: If the work needs more.
      ValueError: If the limit is not a size.
    """
    size = parse_limit(limit)
    if need > size:
        raise GameTooLargeError(
            f"{task} needs about {describe_bytes(need)} in total, and "
            f"{describe_limit(limit, size)}; {remedy}, or raise the limit"
        )


def held_bytes() -> int:
    """Return the memory that this process uses now; 0 if it is unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int((_PROCESS / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def trim() -> None:
    """Return freed memory from the C library to the system.

    A compilation leaves some hundred megabytes in the C library, in pieces that are too
    small for large arrays.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_bytes() -> int:
    """Return the peak memory of this process so far; 0 if it is unknown."""
    with contextlib.suppress(OSError):
        # Unlike `ru_maxrss`, this excludes the memory of the parent before exec.
        match = re.search(r"VmHWM:\s+(\d+)", (_PROCESS / "status").read_text())
        if match is not None:
            return int(match[1]) * 1024
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak if sys.platform == "darwin" else peak * 1024
