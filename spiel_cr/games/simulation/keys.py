"""Keys of 128 bits of the players' information, for table lookups.

Two infosets of one table have equal keys with a probability of about n^2 / 2^129: about
10^-21 for 10^9 infosets. Therefore tables do not store the information for comparison.
Keys are the same in every process and on every machine.
"""

import hashlib
from collections.abc import Iterable

import numpy as np

# Odd numbers whose bits look random: fractions of the golden ratio, and of pi.
_STEP = np.array([0x9E3779B97F4A7C15, 0x243F6A8885A308D3], np.uint64)
# The finishing multipliers of splitmix64 (Steele, Lea & Flood 2014), and another pair
# of the same kind (Stafford's mix 13 and mix 1).
_MULTIPLY = (
    (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)),
    (np.uint64(0x7FB5D329728EA185), np.uint64(0x81DADEF4BC2DD44D)),
)
_SHIFTS = ((30, 27, 31), (31, 27, 33))
_BYTES = 16


def of_rows(rows: np.ndarray, player: int) -> np.ndarray:
    """Return the keys of information that is given as rows of integers.

    Args:
      rows: Information of the player, int64 [n, k]; equal rows are the same
        information.
      player: The player, 0 or 1.

    Returns:
      uint64 [n, 2].
    """
    rows = np.ascontiguousarray(rows, np.int64).view(np.uint64)
    count, width = rows.shape
    keys = np.empty((count, 2), np.uint64)
    for half in range(2):
        start = np.full(1, 2 * width + player, np.uint64) * _STEP[half]
        mixed = np.repeat(_mix(start, half), count)
        for column in rows.T:
            mixed ^= column
            mixed += _STEP[half]
            mixed = _mix(mixed, half)
        keys[:, half] = mixed
    return keys


def of_bytes(texts: Iterable[bytes], player: int) -> np.ndarray:
    """Return the keys of information that is given as bytes, such as encoded strings.

    Args:
      texts: Bytes of n pieces of information; equal bytes are the same information.
      player: The player, 0 or 1.

    Returns:
      uint64 [n, 2].
    """
    person = b"player 1" if player else b"player 0"
    digests = [
        hashlib.blake2b(text, digest_size=_BYTES, person=person).digest()
        for text in texts
    ]
    keys = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
    return keys.astype(np.uint64)


def _mix(numbers: np.ndarray, half: int) -> np.ndarray:
    """Return a permutation in which each bit affects all bits, uint64 [n]."""
    first, second, third = _SHIFTS[half]
    numbers = (numbers ^ numbers >> first) * _MULTIPLY[half][0]
    numbers = (numbers ^ numbers >> second) * _MULTIPLY[half][1]
    return numbers ^ numbers >> third
