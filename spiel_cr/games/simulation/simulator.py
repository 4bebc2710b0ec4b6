"""Parallel simulation of many matches of a game, from decision to decision.

A `Simulator` plays chance between decisions. It has one of three sources: a game tree
(`tree_source`), batched rules (`rules_source`), or OpenSpiel's states (`state_source`;
`workers` simulates these in separate processes). The type of its states depends on the
source; samplers only index them. The last two sources also list the children of
histories; see `Listing`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules, VisitedHistories


class Positions(NamedTuple):
    """Decisions and terminal states of n matches.

    Attributes:
      states: Opaque states; `states[index]` with int64 [m] returns m of them.
      player: The acting player, 0 or 1, or `TERMINAL`, int8 [n]; never chance.
      key: Key of the acting player's information (see `keys.py`), uint64 [n, 2];
        undefined at terminal states.
      num_actions: Number of legal actions, int32 [n]; 0 at terminal states.
      utility: Player 0's utility at terminal states, otherwise 0, float64 [n].
    """

    states: Any
    player: np.ndarray
    key: np.ndarray
    num_actions: np.ndarray
    utility: np.ndarray


class Simulator(Protocol):
    """Parallel simulation of many matches of one game."""

    @property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""

    @property
    def max_actions(self) -> int:
        """Largest number of legal actions of a decision, or an upper bound."""

    @property
    def state_bytes(self) -> int:
        """Size of the state of a position in bytes, without numbers in arrays."""

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """Return the first decisions of matches, after chance.

        Args:
          count: Number of matches.
          random: Random generator for chance.
        """

    def step(
        self, states: Any, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Apply one action at each of some states, and then chance outcomes.

        Args:
          states: States of m decisions, indexed from `Positions.states`; they are not
            modified, and may repeat.
          action: Index of each action among the legal ones in ascending order, int64
            [m].
          random: Random generator for chance.

        Returns:
          m positions, each the next decision or a terminal state.
        """

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        """Return the key of the acting player's information at a state, uint64 [2].

        Args:
          state: Decision of the game.
        """

    def close(self) -> None:
        """Release the resources of the source (processes, files)."""


class Listing(Protocol):
    """Lists of the children of histories, including chance nodes, for lookahead trees.

    States are rows of the batched rules, or OpenSpiel's states, [n, ...].
    """

    @property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""

    @property
    def rules(self) -> BatchedRules | None:
        """Owner of the states: batched rules. None: the states are OpenSpiel's."""

    def root(self, *, observations: bool) -> tuple[np.ndarray, VisitedHistories]:
        """Return the initial history, in the form of `below`."""

    def below(
        self, states: np.ndarray, player: np.ndarray, *, observations: bool
    ) -> tuple[np.ndarray, VisitedHistories]:
        """Return the children of non-terminal histories, in the order of actions.

        Args:
          states: [n, ...], states of the histories.
          player: Acting players, int8 [n].
          observations: Whether to include observations of the player who does not act.

        Returns:
          The children, siblings together, and their properties; `parent` is ascending.
        """

    def num_actions(self, states: np.ndarray, visit: VisitedHistories) -> np.ndarray:
        """Return numbers of legal actions or outcomes, int32 [n]; 0 at the end.

        Raises:
          InvalidGameError: If a history that is not terminal has none.
        """

    @property
    def has_strings(self) -> bool:
        """Whether `strings` is available."""

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Return information-state strings of a player at some histories."""


class FixedPlayer(Protocol):
    """Source of actions of a player that does not learn."""

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """Draw an action for each decision.

        Args:
          positions: Positions of the simulator.
          places: Indices of decisions, all of one player, int64 [m].
          random: Random generator.

        Returns:
          Indices among the legal actions in ascending order, int64 [m].
        """


def play(
    simulator: Simulator,
    count: int,
    random: np.random.Generator,
    act: Callable[[Positions, np.ndarray, np.ndarray], np.ndarray | None],
) -> np.ndarray:
    """Play matches in parallel until they end.

    Args:
      simulator: Simulator of the game.
      count: Number of matches.
      random: Random generator for chance.
      act: Function of positions, int64 [m], the decisions among them, and int64 [m],
        their matches. It returns int64 [m], indices among the legal actions, or None to
        stop all matches.

    Returns:
      Player 0's utility, float64 [count]; 0 in matches that were stopped.
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
