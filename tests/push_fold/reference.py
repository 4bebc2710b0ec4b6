"""References for push/fold: enumerated hands, and a small stochastic game."""

import itertools
from collections.abc import Sequence

import numpy as np

from spiel_cr.push_fold import outer, rules
from spiel_cr.push_fold.hands import ORDERS, HandTables


def strength_classes(rng: np.random.Generator, classes: int) -> np.ndarray:
    """Draw [C, 3], probabilities that a class is weak, middling or strong."""
    return rng.dirichlet(np.ones(3), classes)


def order_chance(strength: np.ndarray, hands: Sequence[int], ranks: tuple) -> float:
    """Return the probability of a showdown order, for independent strengths."""
    total = 0.0
    for values in itertools.product(range(3), repeat=len(hands)):
        better = sorted(set(values), reverse=True)
        if tuple(better.index(v) for v in values) == tuple(ranks):
            total += np.prod(
                [strength[h, v] for h, v in zip(hands, values, strict=True)]
            )
    return float(total)


def small_tables(seed: int, classes: int) -> tuple[HandTables, np.ndarray, np.ndarray]:
    """Make tables of a few classes of hands whose deals are dependent.

    Returns:
      The tables, the probabilities [C, C, C] of deals, and `strength_classes`.
    """
    rng = np.random.default_rng(seed)
    deals = rng.random((classes,) * 3)
    deals = sum(deals.transpose(t) for t in itertools.permutations(range(3)))
    deals /= deals.sum()
    deal = deals.sum(axis=2)
    strength = strength_classes(rng, classes)
    every = list(itertools.product(range(classes), repeat=3))
    order3 = np.array(
        [
            [deals[h] * order_chance(strength, h, ranks) for h in every]
            for ranks in ORDERS
        ]
    )
    pairs = list(itertools.product(range(classes), repeat=2))
    win, tie = (
        np.array([deal[h] * order_chance(strength, h, ranks) for h in pairs])
        for ranks in ((0, 1), (0, 0))
    )
    shape = (classes, classes)
    arrays = (
        deal,
        win.reshape(shape),
        tie.reshape(shape),
        deals.reshape(-1, classes),
        order3.reshape(len(ORDERS), -1, classes),
    )
    return HandTables(*(a.astype(np.float32) for a in arrays)), deals, strength


def enumerate_hands(
    deals: np.ndarray, strength: np.ndarray, jams: np.ndarray, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute values of decisions and probabilities of outcomes, deal by deal.

    Args:
      deals: Probabilities of deals, [C] * n.
      strength: Result of `strength_classes`.
      jams: Probabilities of jamming, [I, C].
      worth: Utilities of outcomes, [O, n].

    Returns:
      fold and jam [I, C], ends [O], as `hands.Values` without the batch.
    """
    players = deals.ndim
    infosets = rules.infosets(players)
    values = np.zeros((2, *jams.shape))
    ends = np.zeros(len(worth))
    for hands, (o, end) in itertools.product(
        np.ndindex(*deals.shape), enumerate(rules.outcomes(players))
    ):
        live = [h for h, jam in zip(hands, end.jams, strict=True) if jam]
        chance = deals[hands]
        if end.ranks:
            chance *= order_chance(strength, live, end.ranks)
        acting = [p for p in range(players) if end.jams[:p] in infosets]
        reach = {}
        for p in acting:
            jam = jams[infosets.index(end.jams[:p]), hands[p]]
            reach[p] = jam if end.jams[p] else 1 - jam
        ends[o] += chance * np.prod(list(reach.values()))
        for p in acting:
            others = np.prod([r for q, r in reach.items() if q != p])
            at = int(end.jams[p]), infosets.index(end.jams[:p]), hands[p]
            values[at] += chance * others * worth[o, p]
    return values[0], values[1], ends


class StopOrContinue:
    """A game of two states in which player p stops and wins 1, or continues.

    Only player p acts in state p. Continuing keeps the state and pays nothing, so the
    value of continuing for ever is 0. The class implements `outer.StochasticGame`;
    profiles are probabilities of continuing, [2, 1].
    """

    def __init__(self, start: float) -> None:
        """Set the initial value of each state for the player who acts."""
        self.start = start

    def start_values(self) -> np.ndarray:
        """Return initial values [2, 2], by state and player."""
        return np.eye(2) * self.start

    def start_profile(self) -> np.ndarray:
        """Return the uniform profile."""
        return np.full((2, 1), 0.5)

    def play(self, profile, values, inner, begin):
        """See `outer.StochasticGame`."""
        for t in range(begin, begin + inner.steps):
            best, _ = self.best_replies(profile, values)
            profile = profile + (best - profile) / (t + 1)
        return profile

    def one_stage(self, profile, values):
        """See `outer.StochasticGame`."""
        return (1 - profile) * np.eye(2) + profile * values

    def evaluate(self, profile):
        """See `outer.StochasticGame`."""
        return np.where(profile < 1, 1.0, 0.0) * np.eye(2)

    def best_replies(self, profile, values):
        """See `outer.StochasticGame`."""
        go_on = np.diag(values) > 1
        best = go_on.astype(float)[:, None]
        return best, self.one_stage(best, values)

    def evaluate_alone(self, profile, replies):
        """See `outer.StochasticGame`; the other player does nothing."""
        return self.evaluate(replies)


def ex_post_gains(game, profile: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """Return the gain of each player by deviating, float64 [N, n]."""
    values, _ = outer.best_deviation(game, profile, tolerance=tolerance)
    return values - game.evaluate(profile)


def one_card(cards: int) -> HandTables:
    """Make tables for one uniform card per player, of which the higher one wins."""
    each = np.ones((cards, cards)) / cards**2
    win, tie = np.tril(each, -1), np.diag(np.diag(each))
    none = np.zeros((0, cards)), np.zeros((len(ORDERS), 0, cards))
    return HandTables(*(np.asarray(a, np.float32) for a in (each, win, tie, *none)))
