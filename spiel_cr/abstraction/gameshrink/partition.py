"""Abstraction of private states: partitions, the smaller game, and lifted strategies.

A partition assigns each player's private states of a round to classes. `coarsen` builds
the game in which players observe only classes; `lift` maps its strategies to strategies
of the original game. Against another lifted strategy, lifting loses nothing: the payoff
matrices of the smaller game are the sums of the original ones over classes, so the
values in both games are the same. Against a best response the partition matters; see
`equitable`.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import list_entries, num_pairs
from spiel_cr.games.public_tree import hands_by_board
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
    nonzero_entries,
)
from spiel_cr.games.public_tree.public_nodes import Betting, PrivateStateReader

# Matrices with more pairs of hands are summed board by board instead of listed.
_MANY_PAIRS = 1_000_000

# For each player and round int32 [H], the class of each private state, from 0.
Labels = tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


class Partition(NamedTuple):
    """Classes of private states; the strategy is the same in all of a class.

    Attributes:
      labels: Class of each private state by player and round, int32 [H], numbered from
        0 without gaps. Private states of one class refine private states of one class.
    """

    labels: Labels

    def num_classes(self, player: int) -> list[int]:
        """Return the number of classes of a player, by round."""
        return [1 + int(classes.max(initial=-1)) for classes in self.labels[player]]

    def first(self, player: int, round: int) -> np.ndarray:
        """Return the first private state of each class, int64 [classes]."""
        return np.unique(self.labels[player][round], return_index=True)[1]

    def check(self, game: PublicTreeGame) -> None:
        """Raise ValueError if this is not a partition of the game's private states."""
        for player in range(2):
            parents, labels = game.parents[player], self.labels[player]
            sizes = [len(classes) for classes in labels]
            if sizes != game.num_private_states(player):
                raise ValueError(
                    f"partition.labels[{player}]: {sizes} labels by round, but "
                    f"{game.game} has {game.num_private_states(player)} private states "
                    f"of this player; give one label for each"
                )
            above = np.zeros(1, np.int32)
            for r, (parent, classes) in enumerate(zip(parents, labels, strict=True)):
                if (np.bincount(classes) == 0).any():
                    raise ValueError(
                        f"partition.labels[{player}][{r}]: a number of a class is "
                        f"missing; number the classes from 0 without gaps"
                    )
                if (
                    above[parent] != above[parent[self.first(player, r)]][classes]
                ).any():
                    raise ValueError(
                        f"partition.labels[{player}][{r}]: a class contains private "
                        "states of several classes of the round before; split it to "
                        "keep perfect recall"
                    )
                above = classes


def number_classes(parent: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Number classes by the class above, then by their first private state.

    Args:
      parent: Class that each private state's class refines, integers [H].
      keys: Keys of the private states, integers [H]. Private states with equal parents
        and keys have the same class.

    Returns:
      Class of each private state, int32 [H].
    """
    order = np.lexsort((keys, parent))
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(parent[order]) != 0) | (np.diff(keys[order]) != 0)
    # The sort is stable: a class begins with its first private state.
    first = order[begins]
    rank = np.empty(len(first), np.int32)
    rank[np.lexsort((first, parent[first]))] = np.arange(len(first), dtype=np.int32)
    number = np.empty(len(order), np.int32)
    number[order] = rank[np.cumsum(begins) - 1]
    return number


def indicator(labels: np.ndarray) -> sparse.csr_array:
    """Return the matrix of private states in classes, int64 [H, classes]."""
    signals = np.arange(len(labels))
    ones = np.ones(len(labels), np.int64)
    return sparse.csr_array((ones, (signals, labels)))


def coarsen(game: PublicTreeGame, partition: Partition) -> PublicTreeGame:
    """Return the game in which players observe only the classes of private states.

    Args:
      game: Original game.
      partition: Partition of its private states.

    Returns:
      A game with the same public tree and stakes. Its payoff matrices are the original
      ones, chance probabilities included, summed over the classes of both players. Two
      strategies of this game therefore have the same value as the lifted strategies.

    Raises:
      ValueError: If the partition does not match the private states of the game.
    """
    partition.check(game)
    return dataclasses.replace(
        game,
        parents=_class_parents(game, partition),
        payoff_matrices=tuple(
            _summed(matrix, partition) for matrix in game.payoff_matrices
        ),
        reader=_ClassReader(game.reader, partition, game.betting),
    )


def _class_parents(game: PublicTreeGame, partition: Partition) -> Labels:
    """Return the class that each class refines, for each player and round."""
    parents: list[tuple[np.ndarray, ...]] = []
    for player in range(2):
        above = np.zeros(1, np.int32)
        class_parents = []
        for r, parent in enumerate(game.parents[player]):
            class_parents.append(above[parent[partition.first(player, r)]])
            above = partition.labels[player][r]
        parents.append(tuple(class_parents))
    return parents[0], parents[1]


def _summed(matrix: PayoffMatrix, partition: Partition) -> SparseMatrix:
    """Return a payoff matrix summed over classes."""
    if isinstance(matrix, HandMatrix) and num_pairs(matrix) > _MANY_PAIRS:
        first, second = (classes[matrix.round] for classes in partition.labels)
        return hands_by_board.summed(matrix, (first, second))
    rows, columns, values = list_entries(matrix)
    first, second = (classes[matrix.round] for classes in partition.labels)
    shape = (1 + int(first.max(initial=-1)), 1 + int(second.max(initial=-1)))
    total = sparse.csr_array((values, (first[rows], second[columns])), shape=shape)
    # If wins and losses cancel, rounding may leave small entries; they are removed.
    size = sparse.csr_array((abs(values), (first[rows], second[columns])), shape=shape)
    total.data[abs(total.data) < 1e-12 * size.data] = 0.0
    return SparseMatrix(matrix.round, shape, nonzero_entries(total))


def lift(
    game: PublicTreeGame, partition: Partition, behaviour: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Map strategies of the abstract game to the original game.

    Args:
      game: Original game.
      partition: Partition of its private states.
      behaviour: Probabilities of each player, float [S'], of each sequence's last
        action in the game that `coarsen` returns, by logical sequence: the empty one
        first, then by public decision in the order of nodes, by class, by action.
        Strategies in sequence form are mapped in the same way.

    Returns:
      For each player float [S], the same by logical sequence of the original game.

    Raises:
      ValueError: If the partition does not match the private states of the game, or the
        behaviours do not match the smaller game.
    """
    partition.check(game)
    # Only the sizes of this game are used, so its matrices are not summed.
    smaller = dataclasses.replace(game, parents=_class_parents(game, partition))
    first, second = (
        _lifted(smaller, player, partition, np.asarray(behaviour[player]))
        for player in range(2)
    )
    return first, second


def _lifted(
    smaller: PublicTreeGame, player: int, partition: Partition, behaviour: np.ndarray
) -> np.ndarray:
    """Map the strategy of one player to the original game."""
    decisions = smaller.public_decisions[player]
    if behaviour.shape != (decisions.num_sequences,):
        raise ValueError(
            f"behaviour of player {player} has the shape {behaviour.shape}; use one "
            f"number for each of the {decisions.num_sequences} sequences of the "
            f"abstract game"
        )
    parts = [behaviour[:1]]
    for node in decisions.node:
        labels = partition.labels[player][smaller.betting.round[node]]
        parts.append(decisions.block(behaviour, node)[labels].ravel())
    return np.concatenate(parts)


@dataclasses.dataclass(frozen=True)
class _ClassReader:
    """Reader of classes of private states, see `PrivateStateReader`.

    Attributes:
      reader: Reader of the original game.
      partition: Classes of its private states.
      betting: The public tree, which determines the round of a state.
    """

    reader: PrivateStateReader
    partition: Partition
    betting: Betting

    def private_state(self, state: pyspiel.State, player: int) -> int:
        r = self.betting.round[self.betting.node_of(state)]
        signal = self.reader.private_state(state, player)
        return int(self.partition.labels[player][r][signal])

    def name(self, player: int, round: int, signal: int) -> str:
        first = self.partition.first(player, round)[signal]
        return self.reader.name(player, round, int(first))
