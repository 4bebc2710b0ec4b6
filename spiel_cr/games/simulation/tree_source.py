"""Simulation of many matches on a game tree; states are numbers of histories."""

import numpy as np
import pyspiel

from spiel_cr.common.draws import BELOW_ONE, points
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.games.tree.tree import GameTree


class TreeSource:
    """A `Simulator` of a game tree.

    States of its positions are history numbers, int64 [n]. The first half of a key is
    the acting player's infoset, the second half the player.

    Attributes:
      tree: The game tree.
      game: The game.
      max_actions: Largest number of legal actions of a decision.
      state_bytes: 0, because states are numbers in arrays.
    """

    state_bytes = 0

    def __init__(self, tree: GameTree, *, stratified: bool = True) -> None:
        """Build the arrays of the children of all histories.

        Args:
          tree: The game tree.
          stratified: Whether chance outcomes at one history are stratified; see
            `draws.points`.
        """
        self.tree, self._stratified = tree, stratified
        self.game: pyspiel.Game = tree.game
        histories = tree.histories
        parent = histories.parent
        above = parent[parent >= 0].astype(np.int64)
        self._count = np.bincount(above, minlength=len(parent)).astype(np.int32)
        # Children of one history are adjacent, in the order of actions; parents are in
        # the order of numbers.
        self._first = np.cumsum(self._count, dtype=np.int64) - self._count
        self._first += np.count_nonzero(parent < 0)
        decides = histories.player >= 0
        self.max_actions = int(self._count[decides].max(initial=1))
        self._rows = np.full(len(parent), -1, np.int64)
        chance = np.flatnonzero(histories.player == CHANCE)
        self._rows[chance] = np.arange(len(chance))
        outcomes = 1 + np.flatnonzero(histories.player[parent[1:]] == CHANCE)
        probabilities = histories.chance[outcomes] / histories.chance[parent[outcomes]]
        row = self._rows[parent[outcomes]]
        # Row k's outcomes end between k and k + 1, so that one search finds all.
        total = np.cumsum(probabilities)
        begin = np.concatenate([[0.0], total])[np.searchsorted(row, row)]
        totals = np.bincount(row, probabilities, minlength=len(chance))
        self._ends = row + (total - begin) / totals[row]
        self._outcomes = outcomes
        self._first_outcome = np.searchsorted(row, np.arange(len(chance)))
        self._num_outcomes = np.bincount(row, minlength=len(chance))

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """Return the first decisions; see `Simulator`."""
        return self._positions(np.zeros(count, np.int64), random)

    def step(
        self, states: np.ndarray, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Apply actions; see `Simulator`."""
        return self._positions(self._first[states] + action, random)

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        """Return the key of a state; see `Simulator`."""
        player, infoset = self.tree.infoset_of(state)
        return np.array([infoset, player], np.uint64)

    def close(self) -> None:
        """Do nothing, because no resource is open."""

    def _positions(
        self, histories: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Apply chance outcomes to `histories` in place; return positions."""
        tree = self.tree.histories
        player = tree.player[histories]
        draws = np.flatnonzero(player == CHANCE)
        while len(draws):
            row = self._rows[histories[draws]]
            drawn = points(row, random, stratified=self._stratified)
            point = row + drawn * BELOW_ONE
            place = np.searchsorted(self._ends, point, side="right")
            first = self._first_outcome[row]
            last = first + self._num_outcomes[row] - 1
            after = self._outcomes[np.clip(place, first, last)]
            histories[draws] = after
            acts = tree.player[after]
            player[draws] = acts
            draws = draws[acts == CHANCE]
        key = np.empty((len(histories), 2), np.uint64)
        key[:, 0] = tree.infoset[histories].astype(np.int64).view(np.uint64)
        key[:, 1] = player.astype(np.int64).view(np.uint64)
        count = np.where(player >= 0, self._count[histories], 0).astype(np.int32)
        return Positions(histories, player, key, count, tree.utility[histories])
