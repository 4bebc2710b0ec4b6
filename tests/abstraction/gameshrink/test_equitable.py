"""Lossless partitions: they are the coarsest ones that preserve values."""

import collections
import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from game_defs import three_card_hands
from spiel_cr.abstraction import gameshrink
from spiel_cr.games.public_tree.payoff_matrices import BoardHands, HandMatrix
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.tree.tree_builder import build_tree
from tests.abstraction.gameshrink.reference import best_value, random_behaviour
from tests.abstraction.gameshrink.test_partition import (
    SMALL,
    random_partition,
    with_labels,
)
from tests.support import detection, games

SUITED = "python_rhode_island_holdem(num_ranks=4,num_suits=2,max_bets=1)"
# With four suits, private states of one class have different numbers of deals.
FOUR_SUITS = "python_rhode_island_holdem(num_ranks=2,num_suits=4,max_bets=1)"
DICE = "liars_dice(numdice=2,dice_sides=2)"
GAMES = [SUITED, FOUR_SUITS, "python_leduc_poker", "liars_dice(numdice=2,dice_sides=2)"]


def reference(game, deals):
    """Return the numbers of classes by repeated splitting with exact fractions.

    Args:
      game: A game whose first payoff matrix of each round is that of a fold, so its
        entries are the probabilities of deals.
      deals: Number of deals.
    """

    def exact(x):
        return Fraction(round(x * deals), deals)

    weights = [
        [collections.Counter() for _ in range(game.num_rounds)] for _ in range(2)
    ]
    rows = [
        [collections.defaultdict(list) for _ in game.payoff_matrices] for _ in range(2)
    ]
    for k, matrix in enumerate(game.payoff_matrices):
        fold = k == [other.round for other in game.payoff_matrices].index(matrix.round)
        for i, j, entry in zip(*matrix.coordinates(), strict=True):
            for player, (mine, other) in enumerate([(i, j), (j, i)]):
                rows[player][k][mine].append((other, exact(entry)))
                if fold:
                    weights[player][matrix.round][mine] += abs(exact(entry))
    labels = [[[0] * len(p) for p in own] for own in game.parents]
    while True:
        finer = []
        for player, own in enumerate(game.parents):
            above, new = [0], []
            for r, parent in enumerate(own):
                keys = []
                for s in range(len(parent)):
                    sums = collections.Counter()
                    for k, matrix in enumerate(game.payoff_matrices):
                        if matrix.round == r:
                            for other, x in rows[player][k][s]:
                                sums[k, labels[1 - player][r][other]] += x
                    if r + 1 < game.num_rounds:
                        for t in np.flatnonzero(own[r + 1] == s):
                            x = weights[player][r + 1][t]
                            sums["below", labels[player][r + 1][t]] += x
                    share = weights[player][r][s]
                    kind = {key: x / share for key, x in sums.items() if x}
                    mine = labels[player][r][s]
                    keys.append((above[parent[s]], mine, frozenset(kind.items())))
                numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
                above = [numbers[key] for key in keys]
                new.append(above)
            finer.append(new)
        counts = [[len(set(some)) for some in own] for own in finer]
        if counts == [[len(set(some)) for some in own] for own in labels]:
            return counts
        labels = finer


@pytest.mark.parametrize(("string", "deals"), [(SMALL, 360), (FOUR_SUITS, 1680)])
def test_lossless_partition_equals_the_reference(string, deals):
    game = public_tree_game(string)
    partition = gameshrink.lossless_partition(game)
    counts = [partition.num_classes(player) for player in range(2)]
    assert counts == reference(game, deals)
    assert gameshrink.difference(game, partition) is None


@pytest.mark.parametrize("string", GAMES)
def test_lossless_partition_preserves_best_response_values(string):
    """Best-response values in both games are equal for random opponents."""
    game = public_tree_game(string)
    partition = gameshrink.lossless_partition(game)
    smaller = gameshrink.coarsen(game, partition)
    rng = np.random.default_rng(3)
    behaviours = [random_behaviour(smaller, player, rng) for player in range(2)]
    lifted = gameshrink.lift(game, partition, behaviours)
    for player in range(2):
        found = best_value(smaller, player, behaviours[1 - player])
        expected = best_value(game, player, lifted[1 - player])
        assert found == pytest.approx(expected, abs=1e-12)


def test_lossless_partition_merges_equivalent_suits():
    """Private states of the game tree have suits; the classes do not."""
    declared = public_tree_game(FOUR_SUITS)
    game = detection.detect(build_tree(FOUR_SUITS))
    assert game.num_private_states(0) == [8, 56, 336]
    # The weights differ, but the classes are the same.
    weights = [gameshrink.count(some).weights[0][2] for some in (game, declared)]
    assert [len(set(w.tolist())) for w in weights] == [1, 2]
    found, expected = (gameshrink.lossless_partition(some) for some in (game, declared))
    for player in range(2):
        assert found.num_classes(player) == expected.num_classes(player)
    labels = expected.labels[0][2]
    apart = [len(set(weights[1][labels == k].tolist())) for k in range(labels.max())]
    assert max(apart) == 2


def test_difference_detects_any_two_merged_classes():
    """Merging any two classes with the same parent changes the game."""
    game = public_tree_game(SMALL)
    partition = gameshrink.lossless_partition(game)
    labels = partition.labels[0][2]
    above = partition.labels[0][1][game.parents[0][2]]
    merged = 0
    for one in range(1, partition.num_classes(0)[2]):
        other = one - 1
        if above[labels == one][0] != above[labels == other][0]:
            continue
        fewer = with_labels(
            partition, 0, 2, np.where(labels >= one, labels - 1, labels)
        )
        found = gameshrink.difference(game, fewer)
        assert found is not None and found.shares[0] != found.shares[1]
        if found.player == 0 and found.round == 2:
            signals = sorted(labels[list(found.signals)].tolist())
            assert signals == [other, one] and found.matrix in (2, 3)
        merged += 1
    assert merged > 10


def test_difference_detects_random_partitions():
    game = public_tree_game(SMALL)
    partition = random_partition(game, np.random.default_rng(0))
    found = gameshrink.difference(game, partition)
    assert found is not None and found.round == 0 and found.player == 0
    labels = partition.labels[0][0]
    assert labels[found.signals[0]] == labels[found.signals[1]]


def test_difference_considers_refinements_in_later_rounds():
    """Two classes have equal matrices in this round, but different later cards."""
    game = public_tree_game(SMALL)
    partition = gameshrink.lossless_partition(game)
    labels = partition.labels[0][0]
    assert len(set(labels.tolist())) == 3  # ranks
    below = partition.labels[0][1].copy()
    one = with_labels(partition, 0, 0, np.minimum(labels, 1))
    found = gameshrink.difference(game, one)
    assert found is not None and (found.player, found.round) == (0, 0)
    assert found.matrix == -1 and below[found.other] >= 0


def full_deck_game(num_ranks, num_suits):
    """Return Rhode Island Hold'em without merged suits, and its game string."""
    string = f"python_rhode_island_holdem(num_ranks={num_ranks},num_suits={num_suits})"
    strength = three_card_hands.strengths(num_ranks, num_suits)
    size = num_ranks * num_suits
    flops = np.argwhere(~np.eye(size, dtype=bool))
    turns = np.argwhere(strength >= 0)
    number = np.zeros((size, size), np.int32)
    number[tuple(flops.T)] = np.arange(len(flops))
    boards = [np.zeros(size, int), flops[:, 1], turns[:, 1] * size + turns[:, 2]]
    cards = [np.arange(size), flops[:, 0], turns[:, 0]]
    parents = (np.zeros(size, np.int32), cards[1].astype(np.int32))
    parents = (*parents, number[turns[:, 0], turns[:, 1]])
    strengths = [np.zeros(size), np.zeros(len(flops)), strength[tuple(turns.T)]]
    payoff_matrices = []
    for r, showdown in ((0, False), (1, False), (2, False), (2, True)):
        weight = math.perm(size, r + 2) ** -0.5
        hands = BoardHands(
            np.arange(len(cards[r]), dtype=np.int32),
            boards[r].astype(np.int32),
            cards[r].astype(np.int8)[:, None],
            strengths[r].astype(np.int32),
            np.full(len(cards[r]), weight),
        )
        shape = (len(cards[r]), len(cards[r]))
        payoff_matrices.append(HandMatrix(r, shape, (hands, hands), showdown))
    # Partitions do not depend on the public tree and the stakes.
    return dataclasses.replace(
        detection.detect(games.compiled("kuhn")),
        parents=(parents, parents),
        payoff_matrices=tuple(payoff_matrices),
    ), string


@pytest.mark.parametrize(
    "size", [(4, 2), pytest.param((13, 4), marks=pytest.mark.slow)]
)
def test_full_deck_has_as_many_classes_as_the_declared_form(size):
    """Merging suits beforehand does not change the numbers of classes."""
    game, string = full_deck_game(*size)
    counts, declared = gameshrink.count(game), public_tree_game(string)
    assert game.num_private_states(0) > declared.num_private_states(0)
    found = gameshrink.lossless_partition(game, counts)
    expected = gameshrink.lossless_partition(declared)
    assert found.num_classes(0) == expected.num_classes(0)
    found = gameshrink.histogram_partition(game, counts=counts)
    expected = gameshrink.histogram_partition(declared)
    assert found.num_classes(1) == expected.num_classes(1)
