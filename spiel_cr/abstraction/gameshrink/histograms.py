"""GameShrink's test of private states: histograms of wins, ties and losses.

Gilpin & Sandholm 2007, "Lossless abstraction of imperfect information games". Two
private states of the last round are equivalent if they win, tie and lose against
equally many of the opponent's private states. Two private states of an earlier round
are equivalent if those that refine them can be matched one to one with equivalent ones.
A class consists of equivalent private states with parents in one class.

Its classes, and the rows and nonzeros of the resulting linear program, are those
that the paper reports for Rhode Island Hold'em. The paper's theorem, however, is about
ordered game isomorphisms. Equal histograms are necessary for a lossless abstraction but
not sufficient: `equitable` implements an exact test, and explains the difference.
"""

import numpy as np
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import DealCounts, count
from spiel_cr.abstraction.gameshrink.partition import Partition, number_classes
from spiel_cr.games.public_tree.game import PublicTreeGame


def histogram_partition(
    game: PublicTreeGame, *, counts: DealCounts | None = None
) -> Partition:
    """Partition the private states by GameShrink's test.

    A histogram contains, for each payoff matrix of the round, the share of deals that
    win and the share that lose. Ties, and in card games the compatible hands at folds,
    are the remainder. Wins and losses must not cancel in the entries of a matrix: the
    comparison of two private states must have the same result in all deals.

    Args:
      game: Game in public-tree form.
      counts: Counts of the game, if they are already computed.

    Raises:
      InvalidGameError: If the probabilities are not multiples of one number; see
        `counts.count`.
      GameTooLargeError: If the integers are too large; see `counts.count`.
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
    """Return kinds by round, int32 [H]: equal for equivalent private states."""
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
    """Return integers that are equal exactly if the fractions are equal, int64 [n]."""
    shared = np.gcd(numerator, denominator)
    return number_classes(numerator // shared, denominator // shared)


def _rows_alike(
    parent: np.ndarray, kind: np.ndarray, heavy: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Number private states by the shares of each kind among those that refine them.

    Args:
      parent: Private state that each refining one refines, int32 [h].
      kind: Kind of each refining private state, int32 [h].
      heavy: Weights of the refining private states, int64 [h].
      weight: Weights of the refined private states, int64 [H].

    Returns:
      Numbers that are equal exactly if the shares are equal, int64 [H].
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
