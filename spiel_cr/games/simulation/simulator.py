"""Many matches of a game side by side, from decision to decision; chance plays between.

A `Simulator` has one of three sources: a compiled tree (`tree_source`), a game's rules
on arrays (`rules_source`), or OpenSpiel's states (`state_source`; `workers` steps these
in processes of their own). What its states are is its own business; samplers index
them, and no more. The last two also list the children of histories, see `Listing`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules, Visit


class Positions(NamedTuple):
    """Decisions and ends of n matches.

    Attributes:
      states: opaque; `states[index]` with int64 [m] gives m of them.
      player: int8 [n], who acts: 0, 1 or `TERMINAL`; never chance.
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


class Simulator(Protocol):
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
        self, states: Any, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Plays one action at each of some states, and then chance.

        Args:
          states: m of decisions, indexed from `Positions.states`; they stay as they
            are, and may repeat.
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


class Listing(Protocol):
    """Lists the children of histories, chance's moves included, for partial trees.

    Its states are bare: rows of the rules, or OpenSpiel's states, [n, ...].
    """

    @property
    def game(self) -> pyspiel.Game:
        """The game, sequential."""

    @property
    def rules(self) -> BatchedRules | pyspiel.Game:
        """Whose states they are: the game's batched rules, or the game."""

    def root(self, *, observations: bool) -> tuple[np.ndarray, Visit]:
        """The start of the game; as `below`."""

    def below(
        self, states: np.ndarray, player: np.ndarray, *, observations: bool
    ) -> tuple[np.ndarray, Visit]:
        """The children of histories that go on, those of each in the order of actions.

        Args:
          states: [n, ...], of the histories.
          player: int8 [n], who acts.
          observations: also what the player who does not act has observed.

        Returns:
          The children, and what is to be known of them; `parent` is ascending.
        """

    def num_actions(self, states: np.ndarray, visit: Visit) -> np.ndarray:
        """int32 [n], legal actions, or outcomes of positive probability; 0 at ends.

        Raises:
          InvalidGameError: there are none where the game goes on.
        """

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Information-state strings of a player at some histories."""


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


def play(
    simulator: Simulator,
    count: int,
    random: np.random.Generator,
    act: Callable[[Positions, np.ndarray, np.ndarray], np.ndarray | None],
) -> np.ndarray:
    """Plays matches side by side to their ends; the one such loop over a simulator.

    Args:
      simulator: of the game.
      count: of matches.
      random: advanced, by what chance draws.
      act: called with positions, int64 [m], the decisions among them, and int64 [m],
        whose matches these are; gives int64 [m], actions counted among the legal ones.
        None: all stop here.

    Returns:
      float64 [count], player 0's utility; 0 in matches that were stopped.
    """
    positions = simulator.start(count, random)
    match, utility = np.arange(count), np.zeros(count)
    while True:
        over = positions.player == TERMINAL
        utility[match[over]] = positions.utility[over]
        live = np.flatnonzero(~over)
        match = match[live]
        action = act(positions, live, match) if len(live) else None
        if action is None:
            return utility
        positions = simulator.step(positions.states[live], action, random)
