"""What states of a simulator say to players, as numbers; for value networks."""

import functools
import zlib
from collections.abc import Sequence

import numpy as np

from spiel_cr.partial.simulator import ArraySimulator, Simulator

# Of characters of information state strings.
_PLACES = 2048


class StateReader:
    """Reads the states of a simulator; see `lookahead.frontier.Reader`."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def __call__(
        self, states: np.ndarray, player: int, /, *, strings: bool
    ) -> np.ndarray:
        """float32 [n, G]; see `Reader`."""
        simulator = self._simulator
        if strings:
            return hashed(simulator.strings(states, player))
        read = getattr(simulator.rules, "information_state_tensor", None)
        if isinstance(simulator, ArraySimulator):
            if read is None:
                raise ValueError(
                    f"{simulator.game}: its vectorised game makes no "
                    f"information_state_tensor; read its strings"
                )
            return np.asarray(read(states, player), np.float32)
        if not simulator.game.get_type().provides_information_state_tensor:
            raise ValueError(
                f"{simulator.game}: it has no information_state_tensor; read its "
                f"strings"
            )
        rows = [state.information_state_tensor(player) for state in states]
        return np.array(rows, np.float32)


def hashed(strings: Sequence[str]) -> np.ndarray:
    """float32 [n, 2048], how many characters of each string fall on each place."""
    found = np.zeros((len(strings), _PLACES), np.float32)
    for row, string in zip(found, strings, strict=True):
        for position, character in enumerate(string):
            row[_place(position, character)] += 1
    return found


@functools.lru_cache(1 << 14)
def _place(position: int, character: str) -> int:
    return zlib.crc32(f"{position}:{character}".encode()) % _PLACES
