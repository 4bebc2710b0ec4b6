"""Estimate of the memory of a phantom game, and the check during its enumeration."""

import threading

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError

# Bytes at the peak of a process that builds the form of a game, for each pair of a
# terminal world and a sequence, and for each sequence; fitted to peaks on CPUs.
_PAIR, _SEQUENCE = 30, 60
# Additional memory of a solver: compiled functions, and vectors over sequences.
PROGRAM, _VECTORS = 0.6e9, 8


def form_bytes(pairs: int, sequences: int) -> float:
    """Return the peak memory in bytes of a process that only builds the form."""
    return memory.BASE_BYTES + _PAIR * pairs + _SEQUENCE * sequences


def peak_bytes(pairs: int, sequences: int, itemsize: int) -> float:
    """Return the peak memory of a process that builds the form and solves the game.

    Args:
      pairs: Number of pairs of a terminal world and a last sequence, of both players.
      sequences: Number of sequences of both players.
      itemsize: Size of a floating-point number in bytes.
    """
    # After the construction, the form's arrays are most of the memory.
    kept = memory.BASE_BYTES + 12 * pairs + 40 * sequences
    solving = kept + PROGRAM + _VECTORS * itemsize * sequences
    return max(form_bytes(pairs, sequences), solving)


class MemoryCounter:
    """Counter of pairs and sequences, which raises an error above the memory limit."""

    def __init__(self, game: pyspiel.Game, limit: memory.Limit) -> None:
        """Parse the memory limit of the whole process; `game` is for messages."""
        self._game, self._limit = game, limit
        self._size = memory.parse_limit(limit)
        self._lock = threading.Lock()
        self._pairs = self._sequences = 0

    def take(self, pairs: int, sequences: int) -> None:
        """Add numbers of pairs and sequences to the totals, and check the limit.

        Args:
          pairs: Number of pairs of a terminal world and a sequence.
          sequences: Number of sequences.

        Raises:
          GameTooLargeError: If they need more memory than the limit, or cannot be
            numbered.
        """
        with self._lock:
            self._pairs += pairs
            self._sequences += sequences
            need = form_bytes(self._pairs, self._sequences)
        if need > self._size or pairs >= 2**31:
            raise GameTooLargeError(
                f"{self._game}: its phantom form needs more than "
                f"{memory.describe_bytes(need)}, and "
                f"{memory.describe_limit(self._limit, self._size)}; raise the limit, "
                f"choose a smaller board, or an algorithm that samples (os-mccfr, "
                f"es-mccfr, vr-mccfr)"
            )
