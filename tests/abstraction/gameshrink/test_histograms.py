"""GameShrink's published histogram test, and an example in which it is lossy."""

import collections
import dataclasses
import fractions
import itertools

import numpy as np
import pytest

from game_defs import three_card_hands
from spiel_cr.abstraction import gameshrink
from spiel_cr.games.public_tree.payoff_matrices import SparseMatrix
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.sequence_form.decisions import Payoffs
from tests.abstraction.gameshrink.reference import best_value, random_behaviour
from tests.abstraction.gameshrink.test_equitable import FOUR_SUITS, SUITED
from tests.abstraction.gameshrink.test_partition import SMALL

GAME = "python_rhode_island_holdem(num_ranks={},num_suits={},max_bets=1)"


def classes_by_enumeration(num_ranks, num_suits):
    """Count the classes of each round by enumerating cards."""
    strength = three_card_hands.strengths(num_ranks, num_suits)
    cards = range(num_ranks * num_suits)

    def last(own, flop, turn):
        mine = strength[own, flop, turn]
        others = [
            int(np.sign(int(mine) - int(strength[c, flop, turn])))
            for c in cards
            if c not in (own, flop, turn)
        ]
        return tuple(others.count(sign) for sign in (1, 0, -1))

    def histogram(kinds):
        return frozenset(collections.Counter(kinds).items())

    def earlier(own, flop):
        turns = (turn for turn in cards if turn not in (own, flop))
        return histogram(last(own, flop, turn) for turn in turns)

    def first(own):
        return histogram(earlier(own, flop) for flop in cards if flop != own)

    found = [set(), set(), set()]
    for own, flop, turn in itertools.permutations(cards, 3):
        path = (first(own), earlier(own, flop), last(own, flop, turn))
        for r in range(3):
            found[r].add(path[: r + 1])
    return [len(kinds) for kinds in found]


@pytest.mark.parametrize("size", [(3, 2), (2, 3), (4, 1)])
def test_numbers_of_classes_equal_enumeration(size):
    partition = gameshrink.histogram_partition(public_tree_game(GAME.format(*size)))
    assert partition.num_classes(0) == classes_by_enumeration(*size)
    assert partition.num_classes(1) == classes_by_enumeration(*size)


def similar_classes_by_enumeration(num_ranks, num_suits, thresholds):
    """Count the classes of each round if similar hands are merged, exactly."""
    strength = three_card_hands.strengths(num_ranks, num_suits)
    cards = range(num_ranks * num_suits)

    def shares(*known):
        """Return the shares of the opponent's cards that lose and that win."""
        rest = [card for card in cards if card not in known]
        if len(known) == 3:
            own, flop, turn = known
            signs = [
                int(
                    np.sign(
                        int(strength[own, flop, turn]) - int(strength[c, flop, turn])
                    )
                )
                for c in rest
            ]
            return [fractions.Fraction(signs.count(s), len(rest)) for s in (1, -1)]
        parts = [shares(*known, card) for card in rest]
        return [sum(part) / len(rest) for part in zip(*parts, strict=True)]

    classes, counts = {(): 0}, []
    for r, threshold in enumerate(thresholds):
        members = list(itertools.permutations(cards, r + 1))
        points = {member: shares(*member) for member in members}
        # Collect the hands of a new class, starting with one hand.
        found, open_hands = {}, set(members)
        while open_hands:
            number, queue = len(counts) * 10**6 + len(found), [min(open_hands)]
            open_hands -= set(queue)
            while queue:
                hand = queue.pop()
                found[hand] = number
                near = {
                    other
                    for other in open_hands
                    if classes[other[:-1]] == classes[hand[:-1]]
                    and sum(
                        abs(a - b)
                        for a, b in zip(points[hand], points[other], strict=True)
                    )
                    <= threshold
                }
                open_hands -= near
                queue += near
        classes = found
        counts.append(len(set(found.values())))
    return counts


@pytest.mark.parametrize(
    ("size", "thresholds"),
    [
        ((3, 2), ("1/99", "1/99", "2/3")),
        ((3, 2), ("1/20", "1/4", "1/3")),
        ((4, 1), ("1/99", "1", "2")),
        ((4, 2), ("1/100", "1/8", "2/5")),
    ],
)
def test_numbers_of_similar_classes_equal_enumeration(size, thresholds):
    """Chains of hands whose distance is at most the threshold are merged."""
    exact = [fractions.Fraction(threshold) for threshold in thresholds]
    game = public_tree_game(GAME.format(*size))
    partition = gameshrink.histogram_partition(game, [float(x) for x in exact])
    partition.check(game)
    counts = similar_classes_by_enumeration(*size, exact)
    assert partition.num_classes(0) == partition.num_classes(1) == counts
    assert counts != gameshrink.histogram_partition(game).num_classes(0)


def test_thresholds_range_from_equality_to_one_class():
    game = public_tree_game(SUITED)
    exact = gameshrink.histogram_partition(game)
    zero = gameshrink.histogram_partition(game, [0, 0, 0])
    for player in range(2):
        for a, b in zip(exact.labels[player], zero.labels[player], strict=True):
            np.testing.assert_array_equal(a, b)
    merged = gameshrink.histogram_partition(game, [9, 9, 9])
    assert merged.num_classes(0) == merged.num_classes(1) == [1, 1, 1]


@pytest.mark.parametrize("thresholds", [[0, 0], [0, 0, -1], [0, 0, float("nan")]])
def test_rejects_invalid_thresholds(thresholds):
    with pytest.raises(ValueError, match="has 3 rounds; give one number of at least 0"):
        gameshrink.histogram_partition(public_tree_game(SMALL), thresholds)


@pytest.mark.parametrize("string", [SUITED, FOUR_SUITS])
def test_lossless_classes_have_equal_histograms(string):
    game = public_tree_game(string)
    wide = gameshrink.histogram_partition(game)
    fine = gameshrink.lossless_partition(game)
    for player in range(2):
        for coarse, labels in zip(
            wide.labels[player], fine.labels[player], strict=True
        ):
            pairs = set(zip(labels.tolist(), coarse.tolist(), strict=True))
            assert len(pairs) == 1 + labels.max()


def test_equal_histograms_are_not_sufficient_for_losslessness():
    """The opponent profits from distinguishing two flops with equal histograms."""
    game = public_tree_game(SUITED)
    partition = gameshrink.histogram_partition(game)
    found = gameshrink.difference(game, partition)
    assert found is not None and found.round == 1
    names = [game.reader.name(found.player, 1, s) for s in found.signals]
    own, flops = zip(*(name.split(" | ") for name in names), strict=True)
    assert own[0] == own[1] and flops[0] != flops[1]
    smaller = gameshrink.coarsen(game, partition)
    behaviours = [
        random_behaviour(smaller, player, np.random.default_rng(4))
        for player in range(2)
    ]
    lifted = gameshrink.lift(game, partition, behaviours)
    for player in range(2):
        in_classes = best_value(smaller, player, behaviours[1 - player])
        assert best_value(game, player, lifted[1 - player]) > in_classes + 0.01


@pytest.mark.parametrize("thresholds", [None, [0, 0, 0.5]])
def test_rounds_without_payoffs_keep_the_classes_of_their_parents(thresholds):
    """The last round has no payoff matrices, so it does not split classes."""
    game = public_tree_game(SMALL)
    kept = game.betting.round[game.terms.leaf] < 2
    first, middle = game.payoff_matrices[:2]
    rows, columns, values = middle.coordinates()
    signed = Payoffs(rows, columns, np.where(rows % 2, -values, values))
    short = dataclasses.replace(
        game,
        payoff_matrices=(first, SparseMatrix(middle.round, middle.shape, signed)),
        terms=type(game.terms)(*(term[kept] for term in game.terms)),
    )
    short.check()
    partition = gameshrink.histogram_partition(short, thresholds)
    partition.check(short)
    for player in range(2):
        _, before, last = partition.num_classes(player)
        assert 1 < before == last
