"""How much memory a game will take: estimates before, the peak after, limits."""

import contextlib
import ctypes
import math
import os
import pathlib
import re
import sys
import time
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError

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
# infoset of its own (strings are not counted here, but `compilation.watch` sees them).
BYTES_PER_HISTORY = 120
# More histories than this are not estimated: nothing could hold them.
IMMENSE = 1e15

# What share of the machine's memory is the default limit, and what it never falls
# under in a fresh process: small games run on small machines.
_SHARE = 0.7
_LEAST_DEFAULT = 1_000_000_000

# The estimate of a skewed tree is uncertain; refuse early only when it is clearly over:
# by the first factor where its passes agree within this relative error, else by the
# second.
_MARGIN, _WIDE_MARGIN, _SURE = 2.0, 10.0, 0.25
# With a smaller relative error than this, no more passes are made.
_CLOSE = 0.05
# Seconds for an estimate, more than enough for one pass through any bundled game.
_SECONDS = 1.0
# Most games are small, and compiled in less time than that: one pass is enough where
# it counts less than this share of what fits, and after so many seconds another share.
# Should a large game look so small, its walk ends at the limit.
_TINY, _SMALL, _SHORT = 0.01, 0.1, 0.1
# Strata of a level, and children of a history, that a pass looks at.
_MOST_STRATA = _MOST_CHILDREN = 32

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
    elif found := re.fullmatch(
        r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(I?)B?\s*", text, re.ASCII | re.IGNORECASE
    ):
        number, unit, binary = found.groups()
        base = 1024 if binary else 1000
        size = float(number) * base ** (" KMGT".index(unit.upper() or " "))
    if isinstance(text, str) and math.isinf(size):
        size = math.nan  # hundreds of digits
    if not size > 0:
        what = "no size" if math.isnan(size) else "too little"
        raise ValueError(
            f"{name}={text!r} is {what}; write a positive number of bytes, or such as "
            f"500MB, 3GB or 2GiB, or none for no limit"
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

    It is 70 % of what the process may have, at least 1 GB. The process may have the
    least of the machine's memory, the memory of its control group, and what is
    available now, what it already holds included. Small games run on any machine:
    what a process holds beyond a fresh one comes on top of the 1 GB. `math.inf` where
    the system does not tell.
    """
    held = held_bytes()
    sizes = []
    with contextlib.suppress(OSError, ValueError):
        text = _MACHINE.read_text()
        total, available = (
            int(re.search(rf"{key}:\s+(\d+)", text)[1]) * 1024  # type: ignore[index]
            for key in ("MemTotal", "MemAvailable")
        )
        sizes += [total, available + held]
    for most, free in _groups():
        sizes += [most, free + held]
    if not sizes and hasattr(os, "sysconf"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if not sizes:
        return math.inf
    least = _LEAST_DEFAULT + max(0, held - BASE_BYTES)
    return max(least, int(_SHARE * min(sizes)))


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
                found = re.search(rf"^{cache_key} (\d+)", caches, re.MULTILINE)
                used -= int(found[1]) if found else 0
                yield most, max(0, most - used)


def estimate_histories(
    game: pyspiel.Game,
    *,
    rollouts: int = 100,
    seed: int = 0,
    seconds: float = _SECONDS,
    room: float = math.inf,
) -> float:
    """Estimates the number of histories without walking the tree.

    Heterogeneous sampling (Chen 1992, "Heuristic sampling: a method for predicting the
    performance of tree searching programs"): level by level, histories with the same
    player and number of actions form a stratum; one of them, drawn by weight, stands
    for all. A pass to the end is unbiased, as Knuth's random rollouts are (1975), with
    less variance where subtrees differ in size and the number of actions tells. Their
    mean is not: what was found so far says when to stop (`room`), and a pass that is
    cut short (`seconds`) counts too little.

    Args:
      game: a sequential game.
      rollouts: passes through the tree, at most; the result is their mean.
      seed: of the passes.
      seconds: begin no further pass, and end the one under way, after this time; what
        that one has counted by then is taken.
      room: the passes end where the mean is clearly more or less than this.

    Returns:
      The estimate; `IMMENSE` or more where a pass has counted so many.
    """
    return _estimate(game, rollouts, seed, seconds, room)[0]


def _estimate(
    game: pyspiel.Game, rollouts: int, seed: int, seconds: float, room: float
) -> tuple[float, float]:
    """As `estimate_histories`, with the standard error (inf after a single pass)."""
    random, began = np.random.default_rng(seed), time.perf_counter()
    deadline = began + seconds
    found: list[float] = []
    mean, error = 0.0, math.inf
    while len(found) < rollouts and (not found or time.perf_counter() < deadline):
        counted, ended = _probe(game, random, deadline)
        if counted >= IMMENSE or (found and not ended):
            # A pass that was cut short counts too little, and counts all the same
            # where it is more than the others.
            return max(counted, mean), error
        found.append(counted)
        mean = sum(found) / len(found)
        if len(found) > 1:
            error = float(np.std(found, ddof=1)) / math.sqrt(len(found))
        # By Markov's inequality, one pass is this much too high once in 10,000 times.
        clear = mean > 1e4 * room
        close = len(found) > 4 and error < _CLOSE * mean and room < math.inf
        share = _SMALL if time.perf_counter() - began > _SHORT else _TINY
        small = mean < share * room < math.inf
        if clear or close or small or not ended:
            break
    return mean, error


def _probe(
    game: pyspiel.Game, random: np.random.Generator, deadline: float
) -> tuple[float, bool]:
    """One pass: how many histories it counts, and whether it came to the end."""
    root = game.new_initial_state()
    counted = 1.0
    # Of each stratum one state that goes on, and how many it stands for.
    level = {} if root.is_terminal() else {(0, 0): (root, 1.0)}
    while level:
        following: dict[tuple[int, int], tuple[pyspiel.State, float]] = {}
        for state, weight in level.values():
            actions = _possible(state)
            counted += weight * len(actions)
            if counted >= IMMENSE or time.perf_counter() > deadline:
                return counted, False
            if len(actions) > _MOST_CHILDREN:
                weight *= len(actions) / _MOST_CHILDREN
                actions = random.choice(actions, _MOST_CHILDREN, replace=False).tolist()
            for action in actions:
                child = state.child(action)
                if child.is_terminal():
                    continue
                player = int(child.current_player())
                stratum = player, len(child.legal_actions())
                if stratum not in following and len(following) >= _MOST_STRATA:
                    stratum = player, -1
                stands, total = following.get(stratum, (child, 0.0))
                total += weight
                if stands is not child and random.random() * total < weight:
                    stands = child
                following[stratum] = stands, total
        level = following
    return counted, True


def _possible(state: pyspiel.State) -> list[int]:
    """Legal actions; at chance nodes the outcomes that have a probability.

    Some games list others too, and stop with an error where one is taken.
    """
    if state.is_chance_node():
        return [action for action, chance in state.chance_outcomes() if chance > 0]
    actions: list[int] = state.legal_actions()
    return actions


def describe_histories(histories: float) -> str:
    """A number of histories in words, such as "about 2.4e+09 histories"."""
    if histories >= IMMENSE:
        return "more than 10^15 histories"
    return f"about {histories:.2g} histories"


# Larger sizes are no estimates any more.
_MOST_SAID = 1e18


def describe_bytes(size: float) -> str:
    """Bytes in words, such as "3.2 GB"."""
    if not size < _MOST_SAID:
        return f"more than {_MOST_SAID / 1e9:,.0f} GB"
    return f"{size / 1e9:.2g} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def describe_limit(limit: Limit, size: float) -> str:
    """A limit in words, and whether the user gave it."""
    text = f"memory_limit is {describe_bytes(size)}"
    return f"{text} (the default on this machine)" if limit is None else text


def too_large(game: object, why: str, limit: Limit, size: float) -> GameTooLargeError:
    """The error to raise for a game over a limit.

    Args:
      game: for the message.
      why: how large it is, a half sentence.
      limit: as the user gave it.
      size: in bytes.
    """
    return GameTooLargeError(
        f"{game} {why}, and {describe_limit(limit, size)}; raise the limit, choose "
        f"smaller game parameters, or do not compile the game: spiel-cr solve with an "
        f"algorithm that samples (os-mccfr, es-mccfr, vr-mccfr), bots with "
        f"max_histories=N on partial trees (spiel-cr play, tournament), or spiel-cr "
        f"best-response, which searches on states"
    )


def room_for(limit: float) -> int:
    """How many histories may be compiled under a limit of so many bytes.

    Raises:
      GameTooLargeError: no game fits.
    """
    if limit <= BASE_BYTES:
        raise GameTooLargeError(
            f"memory_limit={limit:.0f} bytes is too little for any game: OpenSpiel and "
            f"JAX alone take about {describe_bytes(BASE_BYTES)}; raise the limit"
        )
    most = (limit - BASE_BYTES) / BYTES_PER_HISTORY
    return sys.maxsize if math.isinf(most) else int(most)


def check_limit(game: pyspiel.Game, limit: Limit, *, size: float | None = None) -> int:
    """Refuses a game that clearly exceeds a memory limit, before walking it.

    Takes about a second where the game is large or hardly fits, else much less.

    Args:
      game: a sequential game.
      limit: bytes or a size, as users give it.
      size: what `parse_limit` makes of it, where that is known; it takes half a
        millisecond to look at the machine.

    Returns:
      How many histories fit.

    Raises:
      GameTooLargeError: the estimate is over the limit, or no game fits.
      ValueError: the limit is no size.
    """
    size = parse_limit(limit) if size is None else size
    fits = room_for(size)
    if math.isinf(size):
        return fits
    histories, error = _estimate(game, 100, 0, _SECONDS, fits)
    margin = _MARGIN if error <= _SURE * histories else _WIDE_MARGIN
    if histories > margin * fits:
        why = f"has {describe_histories(histories)}"
        if histories < IMMENSE:
            need = BASE_BYTES + histories * BYTES_PER_HISTORY
            why += f", which would take about {describe_bytes(need)} to compile"
        raise too_large(game, why, limit, size)
    return fits


def check_need(
    what: str, need: float, limit: Limit, remedy: str, *, held: float = 0.0
) -> None:
    """Refuses what would take more memory than a limit.

    Args:
      what: is to be done, for the message.
      need: bytes that a fresh process takes for it, as exactly as they can be told.
      limit: of the whole process, as users give it.
      remedy: what takes less, for the message.
      held: bytes that this process holds for something else.

    Raises:
      GameTooLargeError: it needs more.
      ValueError: the limit is no size.
    """
    size = parse_limit(limit)
    if need + held > size:
        besides = f" ({describe_bytes(held)} are held for other things)" if held else ""
        raise GameTooLargeError(
            f"{what} takes about {describe_bytes(need + held)} in all{besides}, and "
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
        found = re.search(r"VmHWM:\s+(\d+)", (_PROCESS / "status").read_text())
        if found is not None:
            return int(found[1]) * 1024
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak if sys.platform == "darwin" else peak * 1024
