"""Simulation of many histories at a time from any history, for lookahead trees.

Pieces of the players' information have numbers, by which histories are distinguished.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from spiel_cr.common import arrays
from spiel_cr.games.opening.batched_rules import VisitedHistories
from spiel_cr.games.simulation.simulator import Listing


class Nodes(NamedTuple):
    """A batch of histories.

    Attributes:
      states: [n, ...], states of the game: objects, or rows of the batched rules.
      action: The action that leads to the history, int32 [n]; -1 at the root.
      player: The acting player, int8 [n].
      label: Number of the acting player's information, equal exactly if the information
        is equal, int32 [n]; it does not change during the life of the simulator. -1 if
        no player acts.
      observation: The same for the player who does not act, int32 [n]; -1 also if the
        game does not provide it.
      factor: Probability of the chance outcome that leads to the history, otherwise 1,
        float64 [n].
      utility: Player 0's utility at terminal histories, otherwise 0, float64 [n].
      num_actions: Number of legal actions, or of outcomes of positive probability,
        int32 [n]; 0 at terminal histories.
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
        """Return some of the histories, by index or mask."""
        return Nodes(*(column[chosen] for column in self))


class Labels(dict[Hashable, int]):
    """Numbers of information, from 0, in the order of first occurrence."""

    def __missing__(self, key: Hashable) -> int:
        return self.setdefault(key, len(self))

    def truncate(self, count: int) -> None:
        """Remove all labels except the first `count`."""
        while len(self) > count:
            self.popitem()

    def of_rows(self, keys: np.ndarray) -> np.ndarray:
        """Return labels of rows [n] or [n, k], or of strings [n], int32 [n]."""
        if keys.dtype == object:
            return np.array([self[text] for text in keys.tolist()], np.int32)
        ranks = arrays.ranks([keys])
        first = np.empty(int(ranks.max()) + 1, np.int64)
        first[ranks[::-1]] = np.arange(len(ranks))[::-1]
        rows = np.ascontiguousarray(keys[first].astype(np.int64))
        numbers = [self[row.tobytes()] for row in rows.reshape(len(first), -1)]
        return np.array(numbers, np.int32)[ranks]


class LabelledSimulator:
    """Simulator of a game from any history, which numbers the players' information.

    Attributes:
      source: Simulator that lists the children of histories.
      observations: Whether the observations of players who do not act have been
        available everywhere so far.
      acting_labels, other_labels: Labels of each player's information at its decisions,
        and at other histories.
    """

    def __init__(self, source: Listing, *, observations: bool) -> None:
        """Initialise the simulator, without any labels.

        Args:
          source: Simulator of the game.
          observations: Whether to compute the observations of players who do not act.
        """
        self.source, self.observations = source, observations
        self.acting_labels = Labels(), Labels()
        self.other_labels = Labels(), Labels()

    @property
    def labels(self) -> tuple[Labels, ...]:
        """All labels in use."""
        return *self.acting_labels, *self.other_labels

    def root(self) -> Nodes:
        """Return the initial history."""
        return self._nodes(*self.source.root(observations=self.observations))

    def children(
        self, states: np.ndarray, player: np.ndarray
    ) -> tuple[Nodes, np.ndarray]:
        """Return the children of non-terminal histories; siblings are adjacent.

        Args:
          states: [n, ...], states of the histories.
          player: Acting players, int8 [n].

        Returns:
          The children, and int64, the index of the parent of each, ascending.
        """
        seen = self.observations
        below, visit = self.source.below(states, player, observations=seen)
        return self._nodes(below, visit), visit.parent

    def _nodes(self, states: np.ndarray, visit: VisitedHistories) -> Nodes:
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
