"""The exact test of abstraction: private states that may be merged without loss.

Let a(s) be the share of a private state in its class: its weight divided by the weight
of all private states of the class. A partition is *equitable* if, for both players and
all rounds, for each private state s of a class c,

  1. the entries of each payoff matrix between s and the opponent's private states of a
     class d sum to a(s) times those between all of c and d, and
  2. the private states of each class below c that refine s have the share a(s) of that
     class.

In words: given a class, the private state contains no more information about the
opponent's class, about the winner, or about the player's own next class.

Claim: then the partition is *lossless*. Strategies of the game of classes, lifted, have
the same NashConv in both games, so equilibria lift to equilibria.

Proof: a lifted strategy of the opponent reaches all private states of a class d with
the same probability, so by 1 the value of a leaf at s is a(s) times its value at c in
the game of classes. Going up the public tree, the value of an infoset of s is a(s)
times that of c: at a best response it is a maximum over actions of sums of such values;
where cards are dealt it is, by 2, a sum over the classes e below c of the shares of e
that refine s, which are a(s), times the value of e. Over all private states of a class
of round 0 the shares sum to 1, so a best response has the same value in both games. The
lifted strategies have the same value in both games, since the payoff matrices of
classes are sums. NashConv is the difference.

Among all equitable partitions (for one choice of weights) there is a coarsest, since
two of them have a join, which is equitable too. It is computed by splitting classes
until no class has to be split. Equal histograms of wins, ties and losses are necessary
for a class but not sufficient: `histograms` implements the test that stops there.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import DealCounts, count
from spiel_cr.abstraction.gameshrink.partition import (
    Partition,
    indicator,
    number_classes,
)
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.public_tree.game import PublicTreeGame

_BITS = 64


class UnequalSignals(NamedTuple):
    """Two private states of one class that differ.

    Attributes:
      player: Player of the private states.
      round: Round of both private states.
      signals: Indices of the two private states.
      matrix: Index of the payoff matrix in which they differ; -1: they differ in the
        private states that refine them.
      other: Class of the opponent's private states, or of the player's private states
        of the next round, for which the two differ.
      shares: Sum of entries, or weight, that each of the two private states has with
        that class, divided by the weight of the private state.
    """

    player: int
    round: int
    signals: tuple[int, int]
    matrix: int
    other: int
    shares: tuple[float, float]


def lossless_partition(
    game: PublicTreeGame, counts: DealCounts | None = None
) -> Partition:
    """Compute the coarsest equitable partition, which is lossless.

    All sums are integers modulo 2^64. In each round of splitting, the sums of a private
    state over all classes are compared by one random combination, drawn from a fixed
    seed. The result is then verified by `difference`, which is exact.

    Args:
      game: Game in public-tree form.
      counts: Counts of the game, if they are already computed.

    Raises:
      InvalidGameError: If the probabilities are not multiples of one number; see
        `counts.count`.
      GameTooLargeError: If the integers are too large; see `difference`.
    """
    counts = counts or count(game)
    scales = [
        [_inverse(weight) for weight in counts.weights[player]] for player in range(2)
    ]
    turned = [[matrix, matrix.T.tocsr()] for matrix in counts.payoff_matrices]
    unsigned = [[side.astype(np.uint64) for side in sides] for sides in turned]
    rng = np.random.default_rng(0)
    partition = Partition(
        tuple(  # type: ignore[arg-type]
            tuple(np.zeros(len(parent), np.int32) for parent in parents)
            for parents in game.parents
        )
    )
    while True:
        finer = _split(game, counts, scales, unsigned, partition, rng)
        if all(
            finer.num_classes(player) == partition.num_classes(player)
            for player in range(2)
        ):
            if difference(game, finer, counts) is None:
                return finer
        partition = finer


def difference(
    game: PublicTreeGame, partition: Partition, counts: DealCounts | None = None
) -> UnequalSignals | None:
    """Return a proof that a partition is not equitable, in exact integers.

    Args:
      game: Game in public-tree form.
      partition: Partition of its private states.
      counts: Counts of the game, if they are already computed.

    Returns:
      Two private states of the first class that is not uniform; or None if the
      partition is equitable, hence lossless.

    Raises:
      ValueError: If the partition does not match the private states of the game.
      InvalidGameError: If the probabilities are not multiples of one number; see
        `counts.count`.
      GameTooLargeError: If `counts.count` raises it, or the integers do not fit into 64
        bits.
    """
    partition.check(game)
    counts = counts or count(game)
    for player in range(2):
        for r in range(game.num_rounds):
            sums = []
            if r + 1 < game.num_rounds:
                sums.append((-1, _refining(game, counts, partition, player, r)))
            for k in game.matrices_in(r):
                matrix = counts.payoff_matrices[k]
                matrix = matrix if player == 0 else matrix.T.tocsr()
                other = indicator(partition.labels[1 - player][r])
                sums.append((k, matrix @ other))
            for k, table in sums:
                weight = counts.weights[player][r]
                first = partition.first(player, r)[partition.labels[player][r]]
                unequal = _unequal(table, weight, first)
                if unequal is not None:
                    signals, other_class, shares = unequal
                    return UnequalSignals(player, r, signals, k, other_class, shares)
    return None


def _refining(
    game: PublicTreeGame,
    counts: DealCounts,
    partition: Partition,
    player: int,
    round: int,
) -> sparse.csr_array:
    """Return weights of refining private states, int64 [H, classes below]."""
    parent = game.parents[player][round + 1]
    labels = partition.labels[player][round + 1]
    shape = (len(game.parents[player][round]), 1 + int(labels.max(initial=-1)))
    weight = counts.weights[player][round + 1]
    return sparse.csr_array((weight, (parent, labels)), shape=shape)


def _unequal(
    table: sparse.csr_array, weight: np.ndarray, first: np.ndarray
) -> tuple[tuple[int, int], int, tuple[float, float]] | None:
    """Return the first row that is not proportional to its class's first row.

    Args:
      table: Sums by private state and class, int64 [H, n].
      weight: Weights to which rows should be proportional, int64 [H].
      first: First private state of each private state's class, int64 [H].
    """
    weight = weight // np.gcd.reduce(weight)
    largest = int(abs(table.data).max(initial=0)) * int(weight.max())
    if largest >= 2 ** (_BITS - 2):
        raise GameTooLargeError(
            f"products of counts up to {largest:.3g} do not fit into {_BITS} bits: the "
            "deals are too many or too unequal for an exact test; use the "
            "game without a partition, or a smaller game"
        )
    scaled = table.multiply(weight[first][:, None]).tocsr()
    difference = (scaled - table[first].multiply(weight[:, None]).tocsr()).tocoo()
    rows = difference.coords[0][difference.data != 0]
    if len(rows) == 0:
        return None
    place = np.flatnonzero(difference.data)[np.argmin(rows)]
    row, column = int(difference.coords[0][place]), int(difference.coords[1][place])
    pair = int(first[row]), row
    shares = [float(table[s, column]) / float(weight[s]) for s in pair]
    return pair, column, (shares[0], shares[1])


def _split(
    game: PublicTreeGame,
    counts: DealCounts,
    scales: list[list[np.ndarray]],
    payoff_matrices: list[list[sparse.csr_array]],
    partition: Partition,
    rng: np.random.Generator,
) -> Partition:
    """Split all classes once, by the sums of their private states over all classes.

    Args:
      game: Game in public-tree form.
      counts: Counts of the game.
      scales: Factors by player and round, uint64 [H], see `_inverse`.
      payoff_matrices: Entries of each matrix, uint64 [H0, H1], and of its transpose.
      partition: Current partition.
      rng: Random generator, advanced by the call.
    """
    colours = [
        [
            rng.integers(0, 2**_BITS, 1 + classes.max(initial=-1), np.uint64)[classes]
            for classes in labels
        ]
        for labels in partition.labels
    ]
    result = []
    for player in range(2):
        above = np.zeros(1, np.int32)
        finer: list[np.ndarray] = []
        for r, parent in enumerate(game.parents[player]):
            scale = scales[player][r]
            keys = partition.labels[player][r]
            for k in game.matrices_in(r):
                sums = payoff_matrices[k][player] @ colours[1 - player][r]
                keys = number_classes(keys, (sums * scale).view(np.int64))
            if r + 1 < game.num_rounds:
                weight = counts.weights[player][r + 1].astype(np.uint64)
                sums = np.zeros(len(parent), np.uint64)
                below = weight * colours[player][r + 1]
                np.add.at(sums, game.parents[player][r + 1], below)
                keys = number_classes(keys, (sums * scale).view(np.int64))
            above = number_classes(above[parent], keys)
            finer.append(above)
        result.append(tuple(finer))
    return Partition((result[0], result[1]))


def _inverse(weight: np.ndarray) -> np.ndarray:
    """Return factors that make sums of private states comparable, uint64 [H].

    They are the common multiple of all weights divided by each weight, modulo 2^64.
    """
    weight = weight // np.gcd.reduce(weight)
    values, number = np.unique(weight, return_inverse=True)
    multiple = math.lcm(*values.tolist())
    scales = [multiple // value % 2**_BITS for value in values.tolist()]
    return np.array(scales, np.uint64)[number]
