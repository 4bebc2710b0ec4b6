"""A game played from any of its histories, many at a time, for partial trees.

What players know there gets numbers, by which histories are told apart.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import arrays
from spiel_cr.games.opening.batched_rules import BatchedRules, Visit
from spiel_cr.games.simulation.simulator import Listing


class Nodes(NamedTuple):
    """Some histories.

    Attributes:
      states: [n, ...], of the game: objects, or rows of the batched rules.
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
        """int32 [n], of rows of integers [n] or [n, k], or of strings, objects [n]."""
        if keys.dtype == object:
            return np.array([self[text] for text in keys.tolist()], np.int32)
        ranks = arrays.ranks([keys])
        first = np.empty(int(ranks.max()) + 1, np.int64)
        first[ranks[::-1]] = np.arange(len(ranks))[::-1]
        rows = np.ascontiguousarray(keys[first].astype(np.int64))
        numbers = [self[row.tobytes()] for row in rows.reshape(len(first), -1)]
        return np.array(numbers, np.int32)[ranks]


class LabelledSimulator:
    """A game that is played from any of its histories; information has numbers.

    Attributes:
      source: lists the children of histories.
      observations: whether the observations of players who do not act were found
        everywhere so far.
      acting_labels, other_labels: for each player the labels of its information where
        it acts, and where it does not.
    """

    def __init__(self, source: Listing, *, observations: bool) -> None:
        """Knows no information yet.

        Args:
          source: of the game.
          observations: also look for the observations of players who do not act.
        """
        self.source, self.observations = source, observations
        self.acting_labels = Labels(), Labels()
        self.other_labels = Labels(), Labels()

    @property
    def game(self) -> pyspiel.Game:
        """The sequential game."""
        return self.source.game

    @property
    def rules(self) -> BatchedRules | pyspiel.Game:
        """Whose states `Nodes.states` are: the game's batched rules, or the game."""
        return self.source.rules

    @property
    def labels(self) -> tuple[Labels, ...]:
        """All labels in use."""
        return *self.acting_labels, *self.other_labels

    def root(self) -> Nodes:
        """The start of the game."""
        return self._nodes(*self.source.root(observations=self.observations))

    def children(
        self, states: np.ndarray, player: np.ndarray
    ) -> tuple[Nodes, np.ndarray]:
        """The children of histories that are not terminal, those of one together.

        Args:
          states: [n, ...], of the histories.
          player: int8 [n], who acts.

        Returns:
          The children, and int64, the index of the parent of each, ascending.
        """
        seen = self.observations
        below, visit = self.source.below(states, player, observations=seen)
        return self._nodes(below, visit), visit.parent

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Information-state strings of a player at some histories."""
        return self.source.strings(states, player)

    def _nodes(self, states: np.ndarray, visit: Visit) -> Nodes:
        count, player = len(states), visit.player
        label, observation = np.full((2, count), -1, np.int32)
        for p in range(2):
            information, seen = visit.information[p], visit.observations[p]
            if information is not None:
                label[player == p] = self.acting_labels[p].of_rows(information)
            if seen is not None:
                observation[player == 1 - p] = self.other_labels[p].of_rows(seen)
            elif (player == 1 - p).any():
                self.observations = False
        return Nodes(
            states=states,
            action=visit.action.astype(np.int32),
            player=player,
            label=label,
            observation=observation,
            factor=np.ones(count) if visit.chance is None else visit.chance,
            utility=visit.utility,
            num_actions=self.source.num_actions(states, visit),
        )
