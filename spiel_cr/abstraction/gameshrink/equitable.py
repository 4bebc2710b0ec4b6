"""The exact test of abstraction: which signals may be played alike at no loss.

Let a(s) be a signal's share of its class: its weight over that of all signals of the
class. A partition is *equitable* if, for both players and all rounds, for each signal s
of a class c,

  1. the entries of each matrix between s and the opponent's signals of a class d sum to
     a(s) times those between all of c and d, and
  2. the signals of each class below c that refine s have the share a(s) of that class.

In words: given a class, the signal says nothing more about the opponent's class, about
who wins, or about the own class to come.

Claim: then the partition is *lossless*. Strategies of the game of classes, lifted, have
the same NashConv in both games, so equilibria lift to equilibria.

Proof: a lifted strategy of the opponent reaches all signals of a class d alike, so by 1
a leaf is worth a(s) times as much at s as at c in the game of classes. Going up the
public tree, an infoset of s is worth a(s) times that of c: at a best response a maximum
over actions of sums of such values; where cards are dealt, by 2, a sum over the classes
e below c of the shares of e that refine s, which are a(s), times the value of e. Over
all signals of a class of round 0 the shares sum to 1, so a best response wins the same
in both games. The lifted strategies themselves are worth the same in both, since the
matrices of classes are sums. NashConv is the difference.

Of all equitable partitions (for one choice of weights) there is a coarsest, since two
of them have a join, which is equitable too. It is found by splitting classes until none
need be split. Equal histograms of wins, ties and losses are necessary for a class, and
not sufficient: `histograms` has the test that stops there.
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
    """Two signals of one class that differ.

    Attributes:
      player: whose.
      round: of both.
      signals: the two.
      matrix: number of the matrix that tells them apart; -1: the signals that refine
        them do.
      other: the class of the opponent's signals, or of the own signals of the next
        round, that meets both differently.
      shares: what each of the two signals has with that class, in proportion to the
        signal's own weight.
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
    """The coarsest partition that is equitable, hence lossless.

    All sums are integers modulo 2^64. Those of a signal over all classes are told apart
    by one random combination in each round of splitting, drawn from a fixed seed; the
    result is then held to `difference`, which is exact.

    Args:
      game: the game.
      counts: those of the game, if they are at hand.

    Raises:
      InvalidGameError: see `counts.count`.
      GameTooLargeError: see `difference`.
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
    """Says why a partition is not equitable, in exact integers.

    Args:
      game: the game.
      partition: of its signals.
      counts: those of the game, if they are at hand.

    Returns:
      Two signals that its first class of several kinds holds, or None: the partition is
      equitable, hence lossless.

    Raises:
      ValueError: the partition is none of this game's signals.
      InvalidGameError: see `counts.count`.
      GameTooLargeError: see there, or the integers do not fit into 64 bits.
    """
    partition.check(game)
    counts = counts or count(game)
    for player in range(2):
        for r in range(game.num_rounds):
            sums = []
            if r + 1 < game.num_rounds:
                sums.append((-1, _refining(game, counts, partition, player, r)))
            for k, payoff_matrix in enumerate(game.payoff_matrices):
                if payoff_matrix.round == r:
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
    """Weights of the signals that refine each signal, int64 [H, classes below]."""
    parent = game.parents[player][round + 1]
    labels = partition.labels[player][round + 1]
    shape = (len(game.parents[player][round]), 1 + int(labels.max(initial=-1)))
    weight = counts.weights[player][round + 1]
    return sparse.csr_array((weight, (parent, labels)), shape=shape)


def _unequal(
    table: sparse.csr_array, weight: np.ndarray, first: np.ndarray
) -> tuple[tuple[int, int], int, tuple[float, float]] | None:
    """The first row that is not in proportion to that of its class's first signal.

    Args:
      table: int64 [H, n].
      weight: int64 [H], what rows are in proportion to.
      first: int64 [H], the first signal of each signal's class.
    """
    weight = weight // np.gcd.reduce(weight)
    largest = int(abs(table.data).max(initial=0)) * int(weight.max())
    if largest >= 2 ** (_BITS - 2):
        raise GameTooLargeError(
            f"products of counts up to {largest:.3g} do not fit into {_BITS} bits: the "
            "deals are too many or too unequal to be held to an exact test; use the "
            "game without a partition, or partition the signals of a smaller one"
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
    """Splits all classes once, by what their signals have with all classes.

    Args:
      game: the game.
      counts: of the game.
      scales: for each player and round uint64 [H], see `_inverse`.
      payoff_matrices: for each matrix uint64 [H0, H1] and its transpose.
      partition: so far.
      rng: consumed.
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
            for k, payoff_matrix in enumerate(game.payoff_matrices):
                if payoff_matrix.round == r:
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
    """What makes sums comparable: the common multiple of all weights over each.

    Modulo 2^64: uint64 [H].
    """
    weight = weight // np.gcd.reduce(weight)
    values, number = np.unique(weight, return_inverse=True)
    multiple = math.lcm(*values.tolist())
    scales = [multiple // value % 2**_BITS for value in values.tolist()]
    return np.array(scales, np.uint64)[number]
