"""Values where a tree of a game that is never compiled ends, by the players' ranges.

Such a tree ends at *cuts*: the first decisions after some number of moves. What comes
below a cut is not there, so values depend on what the game says of its histories.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyspiel

from spiel_cr.lookahead.public_states import PublicStates
from spiel_cr.lookahead.set_network import Capacity
from spiel_cr.lookahead.values import RangeValues


class Reader(Protocol):
    """Says what players are told at states of a game."""

    def __call__(
        self, states: np.ndarray, player: int, /, *, strings: bool
    ) -> np.ndarray:
        """float32 [n, G], what a player is told at n states.

        Args:
          states: [n, ...], of a kind that the reader knows.
          player: whose information.
          strings: of information state strings; False: of tensors.

        Raises:
          ValueError: the game has no such tensors.
        """


class Frontier(NamedTuple):
    """Public states at which a tree ends.

    Attributes:
      public: P public states with R histories; `infosets` are mere numbers.
      states: [R, ...], the histories' states.
      acting: int8 [R], who acts at each.
      read: reads such states.
    """

    public: PublicStates
    states: np.ndarray
    acting: np.ndarray
    read: Reader

    def features(
        self, *, strings: bool, columns: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is known at each infoset, as numbers.

        What the game says of one of its histories to the player, then the player's
        seat, and whether it acts.

        Args:
          strings: as of `Reader`.
          columns: int [C], which of the reader's numbers; None: all.

        Returns:
          float32 [J0, F] and [J1, F].

        Raises:
          ValueError: as `Reader`.
        """
        found = []
        for p in range(2):
            place = self.public.place[p]
            roots = np.zeros(len(self.public.infosets[p]), np.int64)
            roots[place[::-1]] = np.arange(len(place))[::-1]
            rows = self.read(self.states[roots], p, strings=strings)
            rows = rows if columns is None else rows[:, columns]
            extra = np.full((len(roots), 2), p, np.float32)
            extra[:, 1] = self.acting[roots] == p
            found.append(np.hstack([rows.astype(np.float32), extra]))
        return found[0], found[1]


@runtime_checkable
class FrontierFunction(Protocol):
    """Values of public states at which trees of a game end."""

    def check_game(self, game: pyspiel.Game) -> None:
        """Refuses a game.

        Raises:
          ValueError: it knows nothing of this game.
        """

    def next_cut(self, moves: int) -> int | None:
        """After how many moves a tree ends that is resolved from after some moves.

        Args:
          moves: from the start of the game, chance included.

        Returns:
          The number of moves; the tree ends at the first decisions after them. None: at
          the end of the game.
        """

    def lay_out_frontier(
        self, frontier: Frontier, capacity: Capacity | None = None
    ) -> RangeValues:
        """Prepares what does not depend on ranges.

        Args:
          frontier: the public states, after a number of moves that `next_cut` gives.
          capacity: shapes to pad to; None: those that are needed.

        Returns:
          Their values, of numpy arrays; nothing is compiled for that. With a capacity
          ranges are as long as it says, zeros last.
        """
