"""How much memory a hidden-board game takes, and refusals while it is walked."""

import threading

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError

# At the peak of a process that walks a game and lays it out, for each pair of a
# terminal world and a sequence, and for each sequence; fitted to peaks on CPUs.
_PAIR, _SEQUENCE = 30, 60
# Of a solver beside that: its program, and vectors over sequences of each dtype's size.
PROGRAM, _VECTORS = 0.6e9, 8


def form_bytes(pairs: int, sequences: int) -> float:
    """The peak of a process that makes the form and does nothing else, in bytes."""
    return memory.BASE_BYTES + _PAIR * pairs + _SEQUENCE * sequences


def peak_bytes(pairs: int, sequences: int, itemsize: int) -> float:
    """The peak of a process that makes the form and solves on it.

    Args:
      pairs: of terminal worlds and last sequences, of both players.
      sequences: of both players.
      itemsize: bytes of a number of the arithmetic.
    """
    # The form's arrays are most of what is left when it is made.
    kept = memory.BASE_BYTES + 12 * pairs + 40 * sequences
    solving = kept + PROGRAM + _VECTORS * itemsize * sequences
    return max(form_bytes(pairs, sequences), solving)


class Room:
    """Counts what is met in a walk, and ends it where that is too much."""

    def __init__(self, game: pyspiel.Game, limit: memory.Limit) -> None:
        """Takes a limit of the whole process, as users give it; game: for messages."""
        self._game, self._limit = game, limit
        self._size = memory.parse_limit(limit)
        self._lock = threading.Lock()
        self._pairs = self._sequences = 0

    def take(self, pairs: int, sequences: int) -> None:
        """Adds pairs and sequences to those met so far.

        Raises:
          GameTooLargeError: they take more than the limit, or cannot be numbered.
        """
        with self._lock:
            self._pairs += pairs
            self._sequences += sequences
            need = form_bytes(self._pairs, self._sequences)
        if need > self._size or pairs >= 2**31:
            raise GameTooLargeError(
                f"{self._game}: its form of worlds takes more than "
                f"{memory.describe_bytes(need)}, and "
                f"{memory.describe_limit(self._limit, self._size)}; raise the limit, "
                f"choose a smaller board, or an algorithm that samples (os-mccfr, "
                f"es-mccfr, vr-mccfr)"
            )
