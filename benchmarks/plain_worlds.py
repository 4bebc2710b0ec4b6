"""The yardstick of hidden boards: PCFR+ in plain C on the same pairs, built by `cc`.

See worlds.c. Only benchmarks and their test use this.
"""

import ctypes
import pathlib

import numpy as np

from benchmarks.c_reference import build_library, fields, structure
from spiel_cr.games.worlds.game import WorldGame
from spiel_cr.policies import conversions

_SOURCE = pathlib.Path(__file__).with_name("worlds.c")
_REALS = {"float32": "float", "float64": "double"}
_ARRAYS = "parent first actions row world payoff strategy regret reach average value"


class _Side(ctypes.Structure):
    """`struct side` of worlds.c."""

    _fields_ = fields(_ARRAYS)


class PlainWorlds:
    """PCFR+ with alternating updates and averages by t², one thread.

    Attributes:
      iterations: done so far.
    """

    def __init__(self, game: WorldGame, dtype: str) -> None:
        """Compiles the C code and takes the game's pairs.

        Args:
          game: of hidden boards.
          dtype: "float32" or "float64".

        Raises:
          RuntimeError: there is no C compiler, or it failed.
        """
        self._library = build_library(_SOURCE, f"-DREAL={_REALS[dtype]}")
        self.iterations = 0
        self._arrays = [_arrays(game, player, dtype) for player in range(2)]
        self._sides = (_Side * 2)(*(structure(_Side, a) for a in self._arrays))
        self._at = np.zeros(len(game.utility), dtype)

    def run(self, iterations: int) -> None:
        """Iterates."""
        at = ctypes.c_void_p(self._at.ctypes.data)
        counts = ctypes.c_long(self.iterations), ctypes.c_long(iterations)
        self._library.pcfr_plus(self._sides, at, len(self._at), *counts)
        self.iterations += iterations

    def average(self, player: int) -> np.ndarray:
        """float [S], the average strategy in sequence form, by logical sequence."""
        return self._arrays[player]["average"]


def _arrays(game: WorldGame, player: int, dtype: str) -> dict[str, np.ndarray]:
    """One player's arrays, by the names of `struct side`."""
    side, sign = game.sides[player], 1 - 2 * player
    own, count = side.decisions, side.decisions.num_sequences
    strategy = conversions.uniform_behaviour(own)
    integers = {
        "parent": own.parent,
        "first": own.first_sequence,
        "actions": own.num_actions,
        "row": side.incidence.starts,
        "world": side.incidence.worlds,
    }
    numbers = {
        "payoff": sign * game.utility,
        "strategy": strategy,
        "reach": conversions.reach_from_behaviour(own, strategy),
    }
    return {
        **{name: np.ascontiguousarray(x, np.intc) for name, x in integers.items()},
        **{name: np.array(x, dtype) for name, x in numbers.items()},
        **{name: np.zeros(count, dtype) for name in ("regret", "average", "value")},
    }
