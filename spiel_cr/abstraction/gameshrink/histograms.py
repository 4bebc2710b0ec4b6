"""GameShrink's test of which signals to play alike: histograms of wins, ties, losses.

Gilpin & Sandholm 2007, "Lossless abstraction of imperfect information games". Two
signals of the last round are alike if they win, tie and lose against equally many of
the opponent's signals; two of an earlier round are, if the signals that refine them
can be matched with each other, alike with alike. A class then holds the signals that
are alike and whose parents are of one class.

Its classes, and the rows and nonzeros of the linear program that they leave, are those
that the paper reports of Rhode Island Hold'em. The paper's theorem, though, is about
ordered game isomorphisms. Equal histograms are necessary for a lossless abstraction and
not sufficient: `equitable` has an exact test, and says where this one fails.
"""

import numpy as np
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import DealCounts, count
from spiel_cr.abstraction.gameshrink.partition import Partition, number_classes
from spiel_cr.games.public_tree.game import PublicTreeGame


def histogram_partition(
    game: PublicTreeGame, *, counts: DealCounts | None = None
) -> Partition:
    """Partitions the signals by GameShrink's test.

    A histogram has, for each matrix of the round, the share of deals that win and the
    share that lose; draws, and in games of cards all that a fold can tell, are what
    remains. Matrices must not have cancelled wins against losses: two signals compare
    alike in all deals.

    Args:
      game: the game.
      counts: those of the game, if they are at hand.

    Raises:
      InvalidGameError, GameTooLargeError: see `counts.count`.
    """
    counts = counts or count(game)
    labels = []
    for player in range(2):
        kinds = _from_the_last(game, counts, player)
        above = np.zeros(1, np.int32)
        player_labels: list[np.ndarray] = []
        for r, parent in enumerate(game.parents[player]):
            above = number_classes(above[parent], kinds[r])
            player_labels.append(above)
        labels.append(tuple(player_labels))
    return Partition((labels[0], labels[1]))


def _from_the_last(
    game: PublicTreeGame, counts: DealCounts, player: int
) -> list[np.ndarray]:
    """For each round int32 [H], equal where one player's signals are alike."""
    kinds: list[np.ndarray] = []
    for r in reversed(range(game.num_rounds)):
        weight = counts.weights[player][r]
        keys = np.zeros(len(weight), np.int32)
        for payoff_matrix, matrix in zip(
            game.payoff_matrices, counts.payoff_matrices, strict=True
        ):
            if payoff_matrix.round == r:
                for sign in (1, -1):
                    deals = matrix.multiply(matrix * sign > 0).sum(axis=1 - player)
                    keys = number_classes(keys, _ratio(deals, weight))
        if kinds:
            parent = game.parents[player][r + 1]
            heavy = counts.weights[player][r + 1]
            keys = number_classes(keys, _rows_alike(parent, kinds[0], heavy, weight))
        kinds.insert(0, keys)
    return kinds


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Integers that are equal exactly where the fractions are, int64 [n]."""
    shared = np.gcd(numerator, denominator)
    return number_classes(numerator // shared, denominator // shared)


def _rows_alike(
    parent: np.ndarray, kind: np.ndarray, heavy: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Numbers that are equal where equal shares of each kind refine two signals.

    Args:
      parent: int32 [h], the signal that each refining signal refines.
      kind: int32 [h], of refining signals.
      heavy: int64 [h], their weights.
      weight: int64 [H], those of the signals.

    Returns:
      int64 [H].
    """
    shape = (len(weight), 1 + int(kind.max(initial=-1)))
    table = sparse.csr_array((heavy, (parent, kind)), shape=shape)
    table.sum_duplicates()
    row = np.repeat(np.arange(len(weight)), np.diff(table.indptr))
    shared = np.gcd(table.data, weight[row])
    cells = np.stack([table.indices, table.data // shared, weight[row] // shared], 1)
    number_of: dict[bytes, int] = {}
    numbers = [
        number_of.setdefault(cells[begin:end].tobytes(), len(number_of))
        for begin, end in zip(table.indptr[:-1], table.indptr[1:], strict=True)
    ]
    return np.array(numbers)
