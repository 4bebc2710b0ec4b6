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
    """A batch of infosets of one player, with one history of each of the n infosets.

    Attributes:
      player: The acting player.
      num_actions: Number of legal actions at each infoset, int [n].
      first_sequence: Sequence of the first action of each infoset, int [n].
      actions: OpenSpiel's legal actions at all infosets, one infoset after the other,
        int [m].
      states: Function that yields the states at the histories, in order. They must not
        be changed.
      rules: The game's batched rules, if policies may be queried with them.
      rows: Function that returns the states at the histories as an array of `rules`.
      original: Batch of the same infosets whose answers this batch repeats at other
        histories. None if the infosets are queried for the first time.
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
        """Position in the batch of each action's infoset, int64 [m]."""
        return np.repeat(np.arange(len(self)), self.num_actions)

    @functools.cached_property
    def sequences(self) -> np.ndarray:
        """Logical sequence that ends with each action, int64 [m]."""
        return ranges(self.first_sequence, self.num_actions)

    def state(self, place: int) -> pyspiel.State:
        """Return the state of the infoset at a position in the batch."""
        return next(itertools.islice(self.states(), place, None))
