"""Plays a game from any of its histories, many at a time.

A `Simulator` says what comes after histories and what players know there.
`ArraySimulator` plays the game's own rules on arrays of states
(`compilation/vectorised.py`), `StateSimulator` (`state_simulator.py`) plays OpenSpiel's
states.
"""

import abc
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import arrays
from spiel_cr.compilation import vectorised
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.compilation.vectorised import VectorisedGame


class Nodes(NamedTuple):
    """Some histories.

    Attributes:
      states: [n, ...], of the game: objects, or rows of the vectorised game.
      action: int32 [n], the action that leads here; -1 where there is none.
      player: int8 [n], who acts.
      label: int32 [n], a number for the acting player's information, equal exactly
        where the information is; it never changes while the simulator lives. -1:
        nobody decides.
      observation: int32 [n], the same for the player who does not act; -1 also where
        the game does not provide it.
      factor: float64 [n], probability of the chance move that leads here, else 1.
      utility: float64 [n], player 0's at terminals, else 0.
      num_actions: int32 [n], legal actions, or outcomes of positive probability; 0 at
        terminals.
    """

    states: np.ndarray
    action: np.ndarray
    player: np.ndarray
    label: np.ndarray
    observation: np.ndarray
    factor: np.ndarray
    utility: np.ndarray
    num_actions: np.ndarray

    def select(self, chosen: np.ndarray) -> "Nodes":
        """Some of the histories, by index or mask."""
        return Nodes(*(column[chosen] for column in self))


class Labels(dict[Hashable, int]):
    """Numbers for information, from 0 in the order in which it is met."""

    def __missing__(self, key: Hashable) -> int:
        return self.setdefault(key, len(self))

    def forget(self, count: int) -> None:
        """Keeps the first `count` labels."""
        while len(self) > count:
            self.popitem()

    def of_rows(self, keys: np.ndarray) -> np.ndarray:
        """int32 [n], of rows of integers [n] or [n, k]."""
        ranks = arrays.ranks([keys])
        first = np.empty(int(ranks.max()) + 1, np.int64)
        first[ranks[::-1]] = np.arange(len(ranks))[::-1]
        rows = np.ascontiguousarray(keys[first].astype(np.int64))
        numbers = [self[row.tobytes()] for row in rows.reshape(len(first), -1)]
        return np.array(numbers, np.int32)[ranks]


class Simulator(abc.ABC):
    """A game that can be played from any of its histories.

    Attributes:
      game: the sequential game.
      rules: whose states `Nodes.states` are: the vectorised game, or the game itself.
      observations: whether the observations of players who do not act were found
        everywhere so far.
      acting_labels, other_labels: for each player the labels of its information where
        it acts, and where it does not.
    """

    def __init__(self, game: pyspiel.Game, *, observations: bool) -> None:
        """Knows no information yet.

        Args:
          game: a sequential game.
          observations: also look for the observations of players who do not act.
        """
        self.game = game
        self.rules: VectorisedGame | pyspiel.Game = game
        self.observations = observations
        self.acting_labels = Labels(), Labels()
        self.other_labels = Labels(), Labels()

    @property
    def labels(self) -> tuple[Labels, ...]:
        """All labels in use."""
        return *self.acting_labels, *self.other_labels

    @abc.abstractmethod
    def root(self) -> Nodes:
        """The start of the game."""

    @abc.abstractmethod
    def children(
        self, states: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        """The children of histories that are not terminal, those of one together.

        Args:
          states: [n, ...], of the histories.
          player: int8 [n], who acts.
          only: give the children after this action only; legal at all of them.

        Returns:
          The children, and int64, the index of the parent of each, ascending.
        """

    @abc.abstractmethod
    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Information-state strings of a player at some histories."""


class ArraySimulator(Simulator):
    """The game's own rules on arrays."""

    rules: VectorisedGame

    def __init__(
        self, game: pyspiel.Game, rules: VectorisedGame, *, observations: bool
    ) -> None:
        """Knows no information yet.

        Args:
          game: a sequential game.
          rules: its vectorised game.
          observations: also look for the observations of players who do not act.
        """
        super().__init__(game, observations=observations)
        self.rules = rules

    def root(self) -> Nodes:
        states = self.rules.new_initial_states()
        visits = vectorised.visits(
            self.game, self.rules, observations=self.observations
        )
        return self._nodes(states, next(visits))

    def children(
        self, states: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        below, visit = vectorised.below(
            self.game, self.rules, states, player, observations=self.observations
        )
        nodes, parents = self._nodes(below, visit), visit.parent
        if only is None:
            return nodes, parents
        fits = nodes.action == only
        return nodes.select(fits), parents[fits]

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        make = getattr(self.rules, "information_state_strings", None)
        if make is None:
            raise ValueError(
                f"{self.game}: its vectorised game makes no information_state_strings; "
                f"give vectorised=False"
            )
        strings: Sequence[str] = make(states, player)
        return strings

    def _nodes(self, states: np.ndarray, visit: vectorised.Visit) -> Nodes:
        count, player = len(states), visit.player
        label, observation = np.full((2, count), -1, np.int32)
        for p in range(2):
            information, seen = visit.information[p], visit.observations[p]
            if information is not None:
                label[player == p] = self.acting_labels[p].of_rows(information)
            if seen is not None:
                rows = player == 1 - p
                observation[rows] = self.other_labels[p].of_rows(seen)
            elif (player == 1 - p).any():
                self.observations = False
        num_actions = np.zeros(count, np.int32)
        goes_on = player != TERMINAL
        if goes_on.any():
            mask = self.rules.legal_actions_mask(states[goes_on])
            draws = player[goes_on] == CHANCE
            if draws.any():
                odds = self.rules.chance_probabilities(states[goes_on][draws])
                mask = mask.copy()
                mask[draws] &= odds > 0
            num_actions[goes_on] = mask.sum(axis=1)
            if (stuck := goes_on & (num_actions == 0)).any():
                odd = int(np.argmax(stuck))
                raise vectorised.BrokenRulesError(
                    *(self.game, int(visit.parent[odd]), int(visit.action[odd])),
                    f"player {player[odd]} has no legal action, or chance no outcome "
                    f"of positive probability; correct legal_actions_mask or "
                    f"chance_probabilities",
                )
        factor = np.ones(count) if visit.chance is None else visit.chance
        action = visit.action.astype(np.int32)
        return Nodes(
            *(states, action, player, label, observation),
            *(factor, visit.utility, num_actions),
        )
