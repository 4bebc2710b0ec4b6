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

With thresholds, similar private states are merged, too, as in the paper's approximate
version (section 6) and in the player GS1 (Gilpin & Sandholm 2006). Nothing bounds the
loss, and the number of classes cannot be chosen: `abstraction.abstract`, which clusters
within a budget, replaced this method in the player GS2.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import DealCounts, count
from spiel_cr.abstraction.gameshrink.partition import Partition, number_classes
from spiel_cr.games.public_tree.game import PublicTreeGame


def histogram_partition(
    game: PublicTreeGame,
    thresholds: Sequence[float] | None = None,
    *,
    counts: DealCounts | None = None,
) -> Partition:
    """Partition the private states by GameShrink's test.

    A histogram contains, for each payoff matrix of the round, the share of deals that
    win and the share that lose. Ties, and in card games the compatible hands at folds,
    are the remainder. Wins and losses must not cancel in the entries of a matrix: the
    comparison of two private states must have the same result in all deals.

    Args:
      game: Game in public-tree form.
      thresholds: Largest difference of two merged private states in each round, at
        least 0. The difference is the sum, over wins and losses of each payoff matrix
        of this and later rounds, of the differences of their shares of deals, averaged
        over the deals to come. (The paper sums over a cheapest matching of the deals to
        come instead, which is never less than this average.) Chains of similar private
        states form one class. If None, only equivalent private states are merged, as
        with thresholds of 0 in the last round.
      counts: Counts of the game, if they are already computed.

    Raises:
      ValueError: If there is not one threshold of at least 0 for each round.
      InvalidGameError: If the probabilities are not multiples of one number; see
        `counts.count`.
      GameTooLargeError: If the integers are too large; see `counts.count`.

    Example:
      >>> import game_defs
      >>> from spiel_cr.games.public_tree import public_tree_game
      >>> game = public_tree_game("python_leduc_poker(num_ranks=13)")
      >>> histogram_partition(game).num_classes(0)
      [13, 37]
      >>> histogram_partition(game, [0, 0.3]).num_classes(0)
      [13, 23]
    """
    limits = [0.0] * game.num_rounds if thresholds is None else list(thresholds)
    if len(limits) != game.num_rounds or not all(limit >= 0 for limit in limits):
        shown = "-".join(f"{limit:g}" for limit in limits)
        raise ValueError(
            f"thresholds={shown}: {game.game} has {game.num_rounds} rounds; give "
            f"one number of at least 0 for each"
        )
    counts = counts or count(game)
    labels = []
    for player in range(2):
        kinds, outcomes = _from_the_last(game, counts, player)
        above = np.zeros(1, np.int32)
        player_labels: list[np.ndarray] = []
        for r, parent in enumerate(game.parents[player]):
            kind = kinds[r]
            if limits[r] > 0:
                kind = _merge_similar(above[parent], kind, outcomes[r], limits[r])
            above = number_classes(above[parent], kind)
            player_labels.append(above)
        labels.append(tuple(player_labels))
    return Partition((labels[0], labels[1]))


def _from_the_last(
    game: PublicTreeGame, counts: DealCounts, player: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Compare one player's private states, from the last round to the first.

    Returns:
      By round, kinds of private states, int32 [H], equal for equivalent ones; and
      shares of deals that win and that lose, by payoff matrix of this and all later
      rounds, float64 [H, n].
    """
    kinds: list[np.ndarray] = []
    outcomes: list[np.ndarray] = []
    for r in reversed(range(game.num_rounds)):
        weight = counts.weights[player][r]
        keys = np.zeros(len(weight), np.int32)
        shares = []
        for k, sign in itertools.product(game.matrices_in(r), (1, -1)):
            matrix = counts.payoff_matrices[k]
            deals = matrix.multiply(matrix * sign > 0).sum(axis=1 - player)
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
        # Without payoffs from this round on there are no shares.
        outcomes.insert(0, np.array(shares).reshape(len(shares), len(weight)).T)
    return kinds, outcomes


def _merge_similar(
    above: np.ndarray, kind: np.ndarray, outcomes: np.ndarray, threshold: float
) -> np.ndarray:
    """Return new kinds, int32 [H], equal for equivalent or similar private states.

    Args:
      above: Class of the parent of each private state, int32 [H]; only private states
        with parents in one class are merged.
      kind: Kind of each private state, int32 [H].
      outcomes: Shares to compare, float64 [H, n].
      threshold: Largest sum of differences of similar private states.
    """
    if outcomes.shape[1] == 0:
        return kind
    from scipy import spatial  # Slow to import.
    from scipy.sparse import csgraph

    labels = number_classes(above, kind)
    first = np.unique(labels, return_index=True)[1]
    merged = np.empty(len(first), np.int32)
    # Rounding errors must not separate private states exactly at the threshold.
    radius = threshold * (1 + 1e-9)
    for group in np.unique(above):
        members = np.flatnonzero(above[first] == group)
        points = spatial.KDTree(outcomes[first[members]])
        pairs = points.query_pairs(radius, p=1, output_type="ndarray").T
        links = np.ones(pairs.shape[1], bool)
        graph = sparse.coo_array((links, tuple(pairs)), shape=(len(members),) * 2)
        merged[members] = csgraph.connected_components(graph, directed=False)[1]
    return merged[labels]


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
