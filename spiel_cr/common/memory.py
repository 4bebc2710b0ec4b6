"""How much memory a game will take: estimates before, the peak after, limits."""

import contextlib
import pathlib
import re
import sys

import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError

try:
    import resource
except ImportError:  # Windows has no such module.
    resource = None  # type: ignore[assignment]


# Peak memory of a process that compiles and solves a game: OpenSpiel and JAX with a
# compiled program, then so much a history. Measured with CFR+ in float64: 100 bytes
# where many of them share few infosets (python_ii_goofspiel, 6 cards), 360 where
# nearly every terminal has its own payoff (scotland yard); rounded up. Compiling alone
# takes about 75 bytes of these vectorised, of which 40 to 80 stay (`tree.nbytes`).
BASE_BYTES = 400_000_000
BYTES_PER_HISTORY = 400

# Linux tells here about the process that asks.
_STATUS = "/proc/self/status"
# The estimate of a skewed tree is uncertain; refuse early only when it is clearly over.
_MARGIN = 2.0


def parse_size(text: str | float) -> int:
    """Bytes from 3000000000, "3GB", "500M" or "1.5 GiB" (decimal; i for binary).

    Raises:
      ValueError: the text is no size.
    """
    if not isinstance(text, str):
        return int(text)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(I?)B?\s*", text.upper())
    try:
        if match is None:
            raise ValueError(text)
        number, unit, binary = match.groups()
        base = 1024 if binary else 1000
        return int(float(number) * base ** (" KMGT".index(unit or " ")))
    except (ValueError, OverflowError):
        raise ValueError(
            f"memory_limit={text!r} is no size; write a number of bytes, or such as "
            f"500MB, 3GB or 2GiB"
        ) from None


def estimate_histories(
    game: pyspiel.Game, *, rollouts: int = 200, seed: int = 0
) -> float:
    """Estimates the number of histories without walking the tree.

    Averages, over random rollouts, the sum of the products of branching factors on the
    way: unbiased (Knuth 1975, "Estimating the efficiency of backtrack programs"), but
    often low on skewed trees, where few rollouts see the bushy part.

    Args:
      game: a sequential game.
      rollouts: how many.
      seed: of the rollouts.
    """
    random = np.random.default_rng(seed)
    total = 0.0
    for _ in range(rollouts):
        state, product = game.new_initial_state(), 1.0
        total += product
        while not state.is_terminal():
            actions = state.legal_actions()
            product *= len(actions)
            total += product
            state.apply_action(actions[int(random.integers(len(actions)))])
    return total / rollouts


def estimate_bytes(game: pyspiel.Game) -> float:
    """Memory that compiling and solving a game will take, in bytes; inf if immense.

    From `estimate_histories`, so it is often low on skewed trees.
    """
    return BASE_BYTES + estimate_histories(game) * BYTES_PER_HISTORY


def check_limit(game: pyspiel.Game, limit: int) -> int:
    """Refuses a game that clearly exceeds a memory limit, before walking it.

    Args:
      game: a sequential game.
      limit: bytes.

    Returns:
      How many histories fit.

    Raises:
      GameTooLargeError: the estimate is over the limit.
      ValueError: no game fits.
    """
    if limit <= BASE_BYTES:
        raise ValueError(
            f"memory_limit={limit / 1e9:.2g} GB is too little for any game: OpenSpiel "
            f"and JAX alone take about {BASE_BYTES / 1e9:.2g} GB"
        )
    need = estimate_bytes(game)
    if need - BASE_BYTES > _MARGIN * (limit - BASE_BYTES):
        histories = (need - BASE_BYTES) / BYTES_PER_HISTORY
        raise GameTooLargeError(
            f"{game} has about {histories:.2g} histories, which would take about "
            f"{need / 1e9:.2g} GB, and memory_limit is {limit / 1e9:.2g} GB; raise the "
            f"limit or choose smaller game parameters"
        )
    return (limit - BASE_BYTES) // BYTES_PER_HISTORY


def peak_bytes() -> int:
    """The most memory this process has held so far; 0 where that is unknown."""
    with contextlib.suppress(OSError):
        # Unlike `ru_maxrss` this leaves out what the parent held before exec.
        found = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(_STATUS).read_text())
        if found is not None:
            return int(found[1]) * 1024
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak if sys.platform == "darwin" else peak * 1024
