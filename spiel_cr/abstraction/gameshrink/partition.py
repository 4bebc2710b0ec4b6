"""Abstraction of signals: which are played alike, the smaller game, and the way back.

A partition puts each player's signals of a round into classes. `coarsen` makes the game
in which players are told classes only; `lift` turns its strategies into strategies of
the original game. Whoever lifts loses nothing against another lifted strategy: the
matrices of the smaller game are the sums of the original ones over classes, so both
games pay the same. Against a best response the partition matters; see `equitable`.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import list_entries, num_pairs
from spiel_cr.games.public_tree import hands_by_board, public_nodes
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
)
from spiel_cr.games.public_tree.public_nodes import Reader
from spiel_cr.games.sequence_form.decisions import Payoffs

# Pairs of hands: more are summed board by board, and never listed.
_MANY_PAIRS = 1_000_000

# For each player and round int32 [H], the class of each signal, from 0.
Labels = tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


class Partition(NamedTuple):
    """Which signals of a player are played alike.

    Attributes:
      labels: for each player and round int32 [H], the class of each signal, numbered
        from 0, all in use. Signals of one class refine signals of one class.
    """

    labels: Labels

    def num_classes(self, player: int) -> list[int]:
        """How many classes a player has, by round."""
        return [1 + int(classes.max(initial=-1)) for classes in self.labels[player]]

    def first(self, player: int, round: int) -> np.ndarray:
        """The first signal of each class, int64 [classes]."""
        return np.unique(self.labels[player][round], return_index=True)[1]

    def check(self, game: PublicTreeGame) -> None:
        """Raises ValueError if this is no partition of the game's signals."""
        for player in range(2):
            parents, labels = game.parents[player], self.labels[player]
            sizes = [len(classes) for classes in labels]
            if sizes != game.num_private_states(player):
                raise ValueError(
                    f"partition labels {sizes} signals of "
                    f"player {player} by round; {game.game} has "
                    f"{game.num_private_states(player)}: give one label per signal"
                )
            above = np.zeros(1, np.int32)
            for r, (parent, classes) in enumerate(zip(parents, labels, strict=True)):
                if (np.bincount(classes) == 0).any():
                    raise ValueError(
                        f"partition leaves out a class of player {player} in round "
                        f"{r}; number its classes from 0 without gaps"
                    )
                if (
                    above[parent] != above[parent[self.first(player, r)]][classes]
                ).any():
                    raise ValueError(
                        f"partition has a class of player {player} in round {r} whose "
                        "signals refine signals of several classes; split it, so that "
                        "nobody forgets"
                    )
                above = classes


def number_classes(parent: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Numbers classes: by the class above, then by their first signal.

    Args:
      parent: integers [H], the class that each signal's class refines.
      keys: integers [H]: signals of equal parents and keys are of one class.

    Returns:
      int32 [H].
    """
    order = np.lexsort((keys, parent))
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(parent[order]) != 0) | (np.diff(keys[order]) != 0)
    # The sort is stable: a class begins with its first signal.
    first = order[begins]
    rank = np.empty(len(first), np.int32)
    rank[np.lexsort((first, parent[first]))] = np.arange(len(first), dtype=np.int32)
    number = np.empty(len(order), np.int32)
    number[order] = rank[np.cumsum(begins) - 1]
    return number


def indicator(labels: np.ndarray) -> sparse.csr_array:
    """The matrix int64 [H, classes] that has a 1 where a signal is of a class."""
    signals = np.arange(len(labels))
    ones = np.ones(len(labels), np.int64)
    return sparse.csr_array((ones, (signals, labels)))


def coarsen(game: PublicTreeGame, partition: Partition) -> PublicTreeGame:
    """The game whose players are told the classes of their signals only.

    Args:
      game: the original.
      partition: of its signals.

    Returns:
      The same public tree and stakes; its matrices are the original ones, chances
      included, summed over the classes of both players. So two strategies of this game
      are worth what they are worth when they are lifted.

    Raises:
      ValueError: the partition is none of this game's signals.
    """
    partition.check(game)
    return dataclasses.replace(
        game,
        parents=_class_parents(game, partition),
        payoff_matrices=tuple(
            _summed(matrix, partition) for matrix in game.payoff_matrices
        ),
        reader=_ClassReader(game.reader, partition, game.finder),
    )


def _class_parents(game: PublicTreeGame, partition: Partition) -> Labels:
    """The class that each class refines, for each player and round."""
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
    """A matrix summed over classes."""
    if isinstance(matrix, HandMatrix) and num_pairs(matrix) > _MANY_PAIRS:
        first, second = (classes[matrix.round] for classes in partition.labels)
        return hands_by_board.summed(matrix, (first, second))
    rows, columns, values = list_entries(matrix)
    first, second = (classes[matrix.round] for classes in partition.labels)
    shape = (1 + int(first.max(initial=-1)), 1 + int(second.max(initial=-1)))
    total = sparse.csr_array((values, (first[rows], second[columns])), shape=shape)
    # Where wins and losses cancel, rounding may leave a little of them.
    size = sparse.csr_array((abs(values), (first[rows], second[columns])), shape=shape)
    total.data[abs(total.data) < 1e-12 * size.data] = 0.0
    total.eliminate_zeros()
    entries = total.tocoo()
    return SparseMatrix(
        matrix.round,
        shape,
        Payoffs(
            entries.coords[0].astype(np.int32),
            entries.coords[1].astype(np.int32),
            entries.data,
        ),
    )


def lift(
    game: PublicTreeGame, partition: Partition, behaviour: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """What abstract strategies play in the original game.

    Args:
      game: the original.
      partition: of its signals.
      behaviour: for each player float [S'], the probability of each sequence's last
        action in the game that `coarsen` makes, by logical sequence: the empty one
        first, then by public decision in the order of nodes, by class, by action. Or,
        alike, the strategies in sequence form.

    Returns:
      For each player float [S], the same by logical sequence of the original game.

    Raises:
      ValueError: the partition is none of this game's signals, or the behaviours do not
        fit the smaller game.
    """
    partition.check(game)
    # Only the sizes are asked for.
    smaller = dataclasses.replace(game, parents=_class_parents(game, partition))
    first, second = (
        _lifted(smaller, player, partition, np.asarray(behaviour[player]))
        for player in range(2)
    )
    return first, second


def _lifted(
    smaller: PublicTreeGame, player: int, partition: Partition, behaviour: np.ndarray
) -> np.ndarray:
    """One player's."""
    decisions = smaller.public_decisions[player]
    if behaviour.shape != (decisions.num_sequences,):
        raise ValueError(
            f"behaviour of player {player} has the shape {behaviour.shape}; the game "
            f"of the partition's classes has {decisions.num_sequences} sequences"
        )
    parts = [behaviour[:1]]
    for node in decisions.node:
        labels = partition.labels[player][smaller.betting.round[node]]
        parts.append(decisions.block(behaviour, node)[labels].ravel())
    return np.concatenate(parts)


@dataclasses.dataclass(frozen=True)
class _ClassReader:
    """Reads classes off states; see `Reader`.

    Attributes:
      reader: of the original game.
      partition: its classes.
      finder: of public nodes, which say what round a state is in.
    """

    reader: Reader
    partition: Partition
    finder: public_nodes.Finder

    def signal(self, state: pyspiel.State, player: int) -> int:
        r = self.finder.betting.round[self.finder.of_state(state)]
        signal = self.reader.signal(state, player)
        return int(self.partition.labels[player][r][signal])

    def name(self, player: int, round: int, signal: int) -> str:
        first = self.partition.first(player, round)[signal]
        return self.reader.name(player, round, int(first))
