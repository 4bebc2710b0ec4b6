"""Infosets at which a policy is queried, as arrays and as states."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pyspiel

from spiel_cr.common.arrays import ranges
from spiel_cr.games.opening.batched_rules import BatchedRules


@dataclasses.dataclass(frozen=True)
class QueryBatch:
    """One history of each of n infosets of a player.

    Attributes:
      player: The acting player.
      num_actions: int [n], the number of legal actions at each infoset.
      first_sequence: int [n], the sequence of the first action of each infoset.
      actions: int [m], OpenSpiel's legal actions at all infosets, one infoset after the
        other.
      states: Returns the states at the histories, in order, which must not be changed.
      rules: The game's batched rules, if policies may be queried by them.
      rows: Returns the states at the histories as an array of `rules`.
      original: The batch of the same infosets whose answers this batch repeats at other
        histories; None: the infosets are queried for the first time.
    """

    player: int
    num_actions: np.ndarray
    first_sequence: np.ndarray
    actions: np.ndarray
    states: Callable[[], Iterator[pyspiel.State]]
    rules: BatchedRules | None = None
    rows: Callable[[], np.ndarray] | None = None
    original: "QueryBatch | None" = None

    def __len__(self) -> int:
        return len(self.num_actions)

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """int64 [m], the place in the batch of each action's infoset."""
        return np.repeat(np.arange(len(self)), self.num_actions)

    @functools.cached_property
    def sequences(self) -> np.ndarray:
        """int64 [m], the logical sequence that each of the actions ends."""
        return ranges(self.first_sequence, self.num_actions)

    def state(self, place: int) -> pyspiel.State:
        """Return the state of the infoset at a place of the batch."""
        return next(itertools.islice(self.states(), place, None))
