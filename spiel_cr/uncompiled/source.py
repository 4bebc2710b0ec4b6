"""Where histories come from, if the game is not compiled: many positions at once.

A `Source` plays many matches side by side, from decision to decision: chance is played
on the way. What its states are is its own business; samplers index them, and no more.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel


class Positions(NamedTuple):
    """Decisions and ends of n matches.

    Attributes:
      states: opaque; `states[index]` with int64 [m] gives m of them.
      player: int8 [n], who acts: 0, 1 or `compilation.tree.TERMINAL`; never chance.
      key: uint64 [n, 2], the key of what the acting player knows (see `keys.py`);
        anything at the end.
      num_actions: int32 [n], legal actions; 0 at the end.
      utility: float64 [n], player 0's at the end, else 0.
    """

    states: Any
    player: np.ndarray
    key: np.ndarray
    num_actions: np.ndarray
    utility: np.ndarray


class Source(Protocol):
    """Plays many matches of one game side by side."""

    @property
    def game(self) -> pyspiel.Game:
        """The game, sequential."""

    @property
    def max_actions(self) -> int:
        """The most legal actions of any decision, or more."""

    @property
    def state_bytes(self) -> int:
        """What the state of a position takes, besides numbers in arrays."""

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """The first decisions of `count` matches; chance has played.

        Args:
          count: how many.
          random: advanced, by what chance draws.
        """

    def step(
        self,
        positions: Positions,
        parent: np.ndarray,
        action: np.ndarray,
        random: np.random.Generator,
    ) -> Positions:
        """Plays one action at each of some positions, and then chance.

        Args:
          positions: from `start` or `step`; it stays as it is.
          parent: int64 [m], indices of decisions in `positions`, which may repeat.
          action: int64 [m], which of the legal actions, in ascending order, counted
            from 0.
          random: advanced, by what chance draws.

        Returns:
          m positions, each the next decision or the end.
        """

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        """uint64 [2], the key of what the player to act knows at a state.

        Args:
          state: a decision of the game.
        """

    def close(self) -> None:
        """Gives back what the source holds (processes, files)."""


class FixedPlayer(Protocol):
    """Draws the actions of a player who does not learn."""

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """int64 [m], an action each, counted among the legal ones, in ascending order.

        Args:
          positions: of the source.
          places: int64 [m], indices of decisions, all of one player.
          random: advanced.
        """
