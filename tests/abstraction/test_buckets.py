"""Abstractions of small games into buckets within a budget."""

import dataclasses

import numpy as np
import pytest

import game_defs  # noqa: F401
import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.abstraction.methods import METHODS, Features
from spiel_cr.abstraction.outcomes import outcomes
from spiel_cr.common.checks import read_budget
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses, conversions
from tests.support.solving import solve_with

LEDUC = "python_leduc_poker(num_ranks=6)"
SMALL = "python_rhode_island_holdem(num_ranks=4,num_suits=2,max_bets=1)"
METHODS_TRIED = (
    "win-probability",
    "potential-aware",
    "potential-aware(distance=earth-movers,bins=5)",
    "potential-aware(distance=l2)",
)


@pytest.fixture(scope="module")
def leduc():
    return public_tree_game(LEDUC)


@pytest.fixture(scope="module")
def small():
    return public_tree_game(SMALL)


def nash_conv(game, behaviour):
    form = game.sequence_form
    reach = [
        conversions.reach_from_behaviour(own, mine)
        for own, mine in zip(form.decisions, behaviour, strict=True)
    ]
    return best_responses.nash_conv(form, reach)


def test_strengths_in_leduc_equal_win_probabilities(leduc):
    """Strengths are wins minus losses against a uniformly random card."""
    found = outcomes(leduc, 0)
    assert found.weights[0] == pytest.approx(np.full(6, 1 / 6))
    assert all(own.sum() == pytest.approx(1) for own in found.weights)
    for private_state, strength in enumerate(found.strengths[:, 0]):
        cards = leduc.reader.name(0, 1, private_state).replace("|", " ").split()
        hand, board = map(int, cards)
        assert strength == pytest.approx(_leduc_strength(hand, board, 6))


def _leduc_strength(hand, board, ranks):
    """Return mean wins minus losses over all cards of the opponent."""
    deck = [rank for rank in range(ranks) for _ in range(2)]
    deck.remove(hand)
    deck.remove(board)

    def power(card):
        return ranks + card if card == board else card

    wins = sum(np.sign(power(hand) - power(other)) for other in deck)
    return wins / len(deck)


@pytest.mark.parametrize(
    "method",
    [*METHODS_TRIED[:-1], pytest.param(METHODS_TRIED[-1], marks=pytest.mark.slow)],
)
def test_buckets_respect_the_budget_and_are_reproducible(small, method):
    found = buckets.abstract(small, (3, 6, 12), method)
    found.partition.check(small)
    for player in range(2):
        counts = found.partition.num_classes(player)
        assert all(a <= b for a, b in zip(counts, (3, 6, 12), strict=True))
        assert counts[:2] == [3, 6]
    again = buckets.abstract(small, (3, 6, 12), method)
    for one, other in zip(
        found.partition.labels[0], again.partition.labels[0], strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_methods_give_different_buckets(small):
    labels = [
        np.concatenate(
            buckets.abstract(small, (4, 7, 12), method).partition.labels[0]
        ).tolist()
        for method in METHODS_TRIED
    ]
    assert len({tuple(own) for own in labels}) >= 4


def test_cumulative_points_are_cumulative_sums_of_histograms(leduc):
    """Cumulative shares measure the distance between strengths."""
    points = {}
    for distance in ("l2", "cumulative"):
        method = read_settings(f"potential-aware(distance={distance})", METHODS)
        rng = np.random.default_rng(0)
        features = Features(leduc.parents[0], outcomes(leduc, 0), method, rng)
        features.look_ahead(0, np.arange(6))
        points[distance] = features.points(0, np.arange(6))
    assert points["l2"].sum(axis=1) == pytest.approx(1)
    sums = points["l2"].cumsum(axis=1)
    below = 1 - 1e-9
    shares = points["cumulative"]
    inside = (sums < below).any(axis=0)
    np.testing.assert_allclose(shares[:, inside], sums[:, inside], atol=1e-12)
    assert inside.sum() > 1


def test_large_budgets_give_one_bucket_per_win_probability(leduc):
    """Private states share a bucket only if they have equal win probabilities."""
    found = buckets.abstract(leduc, (6, 36), "win-probability")
    strength = outcomes(leduc, 0).strengths[:, 0]
    labels = found.partition.labels[0]
    keys = list(zip(leduc.parents[0][1].tolist(), strength.round(9), strict=True))
    assert found.costs[0] == pytest.approx((0, 0), abs=1e-12)
    assert len(set(keys)) == found.partition.num_classes(0)[1]
    assert len(set(zip(keys, labels[1].tolist(), strict=True))) == len(set(keys))


@pytest.mark.slow
def test_solving_with_buckets_equals_solving_the_coarsened_game(leduc):
    """`solve(buckets=...)` and the lifted solution give equal strategies."""
    found = buckets.abstract(leduc, (3, 9), "potential-aware")
    small = gameshrink.coarsen(leduc, found.partition)
    lifted = gameshrink.lift(
        leduc, found.partition, spiel_cr.solve(small, "cfr", 30).average
    )
    labels = buckets.infoset_buckets(leduc, found.partition)
    direct = solve_with(leduc, "cfr", 30, buckets=labels).average
    for one, other in zip(lifted, direct, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    low = spiel_cr.solve(leduc, "cfr", 30).average
    assert nash_conv(leduc, lifted) > nash_conv(leduc, low)


@pytest.mark.parametrize(
    ("budget", "method", "message"),
    [
        ((3,), "win-probability", "budget=3 has 1 numbers"),
        ((9, 3), "win-probability", "budget=9-3 must be"),
        ((3, 9), "guess", "method='guess'"),
        ((3, 9), "win-probability(bins=4)", "bins=4: .* does not use histograms"),
        ((3, 9), "potential-aware(bins=1)", "bins=1"),
        ((3, 9), "potential-aware(distance=l3)", "distance='l3'"),
    ],
)
def test_rejects_invalid_budgets_and_methods(leduc, budget, method, message):
    with pytest.raises(ValueError, match=message):
        buckets.abstract(leduc, budget, method)


def test_budgets_are_parsed():
    assert read_budget("13-25-125") == (13, 25, 125)
    for text in ("", "13-", "13-0", "x", "1.5-3", "-3"):
        with pytest.raises(ValueError, match="joined by dashes"):
            read_budget(text)


def test_method_names_are_presets():
    for name, preset in METHODS.items():
        assert read_settings(name, METHODS) == preset
        assert dataclasses.replace(preset, restarts=2) == read_settings(
            f"{name}(restarts=2)", METHODS
        )
