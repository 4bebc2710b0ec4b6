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

from collections.abc import Sequence

import numpy as np
from scipy import sparse, spatial
from scipy.sparse import csgraph

from spiel_cr.abstraction.gameshrink.counts import Counts, count
from spiel_cr.abstraction.gameshrink.partition import Partition, number_classes
from spiel_cr.games.signals.game import SignalGame


def histogram_partition(
    game: SignalGame,
    thresholds: Sequence[float] | None = None,
    *,
    counts: Counts | None = None,
) -> Partition:
    """Partitions the signals by GameShrink's test.

    A histogram has, for each kernel of the round, the share of deals that win and the
    share that lose; draws, and in games of cards all that a fold can tell, are what
    remains. Kernels must not have cancelled wins against losses: two signals compare
    alike in all deals.

    Args:
      game: the game.
      thresholds: for each round at least 0. Two signals whose parents are of one class
        are also merged if the shares of deals that win and lose in all later play,
        averaged over the deals to come, differ by no more than this in sum; chains of
        such signals are merged whole. That loses something. The paper's approximation
        merges below a threshold too; it takes the cheapest matching of refining signals
        where this averages over them. None: none are merged so.
      counts: those of the game, if they are at hand.

    Raises:
      ValueError: there is not one threshold of at least 0 for each round.
      InvalidGameError, GameTooLargeError: see `counts.count`.
    """
    rounds = game.num_rounds
    merging = [0.0] * rounds if thresholds is None else [float(x) for x in thresholds]
    if len(merging) != rounds or not all(x >= 0 for x in merging):
        raise ValueError(
            f"thresholds {merging} are not {rounds} numbers of at least 0; give one "
            f"for each round of {game.game}"
        )
    counts = counts or count(game)
    labels = []
    for player in range(2):
        kinds, outcomes = _from_the_last(game, counts, player)
        above = np.zeros(1, np.int32)
        own: list[np.ndarray] = []
        for r, parent in enumerate(game.parents[player]):
            kind = kinds[r]
            if merging[r] > 0:
                kind = _merged(above[parent], kind, outcomes[r], merging[r])
            above = number_classes(above[parent], kind)
            own.append(above)
        labels.append(tuple(own))
    return Partition((labels[0], labels[1]))


def _from_the_last(
    game: SignalGame, counts: Counts, player: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """One player's histograms, from the last round up.

    Returns:
      For each round int32 [H], equal where the signals are alike; and float [H, n], the
      shares of deals that win and lose, by kernel, of this and all later rounds.
    """
    kinds: list[np.ndarray] = []
    outcomes: list[np.ndarray] = []
    for r in reversed(range(game.num_rounds)):
        weight = counts.weights[player][r]
        keys = np.zeros(len(weight), np.int32)
        shares = []
        for kernel, whole in zip(game.kernels, counts.kernels, strict=True):
            if kernel.round == r:
                for sign in (1, -1):
                    deals = whole.multiply(whole * sign > 0).sum(axis=1 - player)
                    keys = number_classes(keys, _ratio(deals, weight))
                    shares.append(deals / weight)
        if kinds:
            parent = game.parents[player][r + 1]
            heavy = counts.weights[player][r + 1]
            keys = number_classes(keys, _rows_alike(parent, kinds[0], heavy, weight))
            total = np.bincount(parent, heavy, len(weight))
            shares += [
                np.bincount(parent, heavy * later, len(weight)) / total
                for later in outcomes[0].T
            ]
        kinds.insert(0, keys)
        # There are none where nothing is paid from this round on.
        outcomes.insert(0, np.array(shares, float).reshape(len(shares), len(weight)).T)
    return kinds, outcomes


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
    found: dict[bytes, int] = {}
    numbers = [
        found.setdefault(cells[begin:end].tobytes(), len(found))
        for begin, end in zip(table.indptr[:-1], table.indptr[1:], strict=True)
    ]
    return np.array(numbers)


def _merged(
    above: np.ndarray, kind: np.ndarray, outcomes: np.ndarray, threshold: float
) -> np.ndarray:
    """Numbers signals anew, those under one class alike that are within a threshold.

    Args:
      above: int32 [H], class of the parent.
      kind: int32 [H], equal where signals are alike.
      outcomes: float [H, n], what is compared.
      threshold: most that outcomes may differ by, summed.

    Returns:
      int32 [H].
    """
    if outcomes.shape[1] == 0:
        return np.zeros(len(above), np.int32)
    number = number_classes(above, kind)
    first = np.unique(number, return_index=True)[1]
    result = np.empty(len(first), np.int32)
    # Within rounding, what is just at the threshold is merged.
    radius = threshold * (1 + 1e-9)
    for group in np.unique(above):
        members = np.flatnonzero(above[first] == group)
        near = spatial.KDTree(outcomes[first[members]]).sparse_distance_matrix(
            spatial.KDTree(outcomes[first[members]]), radius, p=1
        )
        pairs = near.tocoo()
        links = np.ones(len(pairs.row), bool)
        graph = sparse.coo_array((links, (pairs.row, pairs.col)), shape=near.shape)
        result[members] = csgraph.connected_components(graph, directed=False)[1]
    return result[number]
