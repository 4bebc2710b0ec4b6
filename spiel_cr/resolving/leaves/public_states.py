"""The public states at which a lookahead may end, in plain arrays.

A public state is a set of histories that both players can tell from all others: a
connected component of histories, where two are joined that either player cannot tell
apart. `resolving.lookahead` finds them.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cr.common.arrays import ranges


@dataclasses.dataclass(frozen=True)
class PublicStates:
    """P public states, sorted; what they hold is sorted by state, too.

    Attributes:
      player: i, the player whose turn it is in all of them.
      numbers: int32 [P], the subgames of i's decomposition that begin there, ascending.
      infosets: by player int32 [J0], int32 [J1], what the player knows there: of i
        infosets of the game, of its opponent augmented infosets of the decomposition.
      state: by player int32 [J0], int32 [J1], the state of each, an index from 0 to
        P - 1.
      history: int64 [R], the histories.
      place: int32 [2, R], index into `infosets` of what each player knows there.
      chance: float64 [R], probability of the chance moves on the way.
    """

    player: int
    numbers: np.ndarray
    infosets: tuple[np.ndarray, np.ndarray]
    state: tuple[np.ndarray, np.ndarray]
    history: np.ndarray
    place: np.ndarray
    chance: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def root_state(self) -> np.ndarray:
        """int32 [R], the state of each history."""
        return self.state[0][self.place[0]]

    def bounds(self, player: int) -> np.ndarray:
        """int64 [P + 1], where each state's infosets of a player begin."""
        return np.searchsorted(self.state[player], np.arange(len(self) + 1))

    def select(self, numbers: Sequence[int] | np.ndarray) -> "PublicStates":
        """Some of the states, by their numbers; in ascending order.

        Raises:
          KeyError: a number is not there.
        """
        numbers = np.unique(numbers)
        if missing := np.setdiff1d(numbers, self.numbers).tolist():
            raise KeyError(f"numbers: {missing} are no public states of these")
        kept = np.searchsorted(self.numbers, numbers)
        infosets, state, renumbered = [], [], []
        for player in range(2):
            bounds = self.bounds(player)
            counts = bounds[kept + 1] - bounds[kept]
            mine = ranges(bounds[kept], counts)
            infosets.append(self.infosets[player][mine])
            state.append(np.repeat(np.arange(len(kept), dtype=np.int32), counts))
            places = np.full(len(self.infosets[player]), -1, np.int32)
            places[mine] = np.arange(len(mine), dtype=np.int32)
            renumbered.append(places)
        roots = np.flatnonzero(np.isin(self.root_state, kept))
        place = [renumbered[p][self.place[p, roots]] for p in range(2)]
        return PublicStates(
            player=self.player,
            numbers=self.numbers[kept],
            infosets=(infosets[0], infosets[1]),
            state=(state[0], state[1]),
            history=self.history[roots],
            place=np.stack(place),
            chance=self.chance[roots],
        )
