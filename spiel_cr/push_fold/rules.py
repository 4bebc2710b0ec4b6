"""Rules of one hand of a push/fold tournament: actions, payments, and new stacks.

Players act in the order of their positions, the big blind last. With two players the
small blind is the button and acts first. Each player jams (bets all chips) or folds. If
all others fold, the big blind wins without acting.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.push_fold.chip_model import finishing_orders

# Positions: 3 players are button, small blind, big blind; 2 are small blind, big blind.
Stacks = tuple[int, ...]


class Outcome(NamedTuple):
    """The outcome of a hand, except for the odd chip.

    Attributes:
      jams: bool per position, the player jammed; of the big blind, it called.
      ranks: Ranks of the hands of the players who jammed, in order of positions; 0 is
        best, equal ranks tie. Empty if all other players folded.
    """

    jams: tuple[bool, ...]
    ranks: tuple[int, ...]


@functools.cache
def outcomes(players: int) -> tuple[Outcome, ...]:
    """Return all outcomes of a hand, in a fixed order.

    Args:
      players: Number of players at the table, at least two.

    Returns:
      Outcomes by the players' actions, fold before jam; showdowns with ranks in the
      order of `finishing_orders`. There are 5 for two players, 25 for three.
    """
    results = []
    for jams in itertools.product((False, True), repeat=players):
        if jams[-1] and not any(jams[:-1]):
            continue  # The big blind wins without acting.
        live = sum(jams)
        orders = finishing_orders(live) if live > 1 else [()]
        results += [Outcome(jams, tuple(ranks)) for ranks in orders]
    return tuple(results)


@functools.cache
def infosets(players: int) -> tuple[tuple[bool, ...], ...]:
    """Return the earlier actions before each decision: one bool (jam) per position.

    Returns:
      Tuples in order of positions, then fold before jam; 2 for two players, 6 for
      three.
    """
    return tuple(
        before
        for position in range(players)
        for before in itertools.product((False, True), repeat=position)
        if position < players - 1 or any(before)
    )


def all_stacks(total: int, players: int) -> np.ndarray:
    """Enumerate all distributions of chips in which every player has at least one.

    Args:
      total: Number of units of chips.
      players: Number of players, n.

    Returns:
      Stacks of each state, int [N, n].
    """
    ends = itertools.combinations(range(1, total), players - 1)
    return np.array([np.diff((0, *cut, total)) for cut in ends], int).reshape(
        -1, players
    )


def posted(stacks: Sequence[int], blinds: tuple[int, int]) -> Stacks:
    """Return the blinds paid before the hand, by position, limited by stacks."""
    rest = (0,) * (len(stacks) - 2)
    return tuple(min(s, b) for s, b in zip(stacks, rest + blinds, strict=True))


def forced(stacks: Sequence[int], blinds: tuple[int, int]) -> tuple[bool, ...]:
    """Return for each infoset if the player is all in by the blind."""
    gone = [p == s for p, s in zip(posted(stacks, blinds), stacks, strict=True)]
    return tuple(gone[len(before)] for before in infosets(len(stacks)))


def settle(
    stacks: Sequence[int], blinds: tuple[int, int], outcome: Outcome
) -> list[tuple[float, Stacks]]:
    """Compute the stacks after a hand.

    Chips that no other player covers are returned. Each pot is shared by the best hands
    in it. Odd chips go to some of these at random, so that stacks stay whole numbers.

    Args:
      stacks: Units of chips, by position.
      blinds: Small and big blind.
      outcome: Outcome of the hand; players who are in by force count as having jammed.

    Returns:
      Pairs of a probability and stacks by the old positions; probabilities sum to one.
    """
    blind = posted(stacks, blinds)
    live = [p for p, jam in enumerate(outcome.jams) if jam]
    if not live:
        live = [len(stacks) - 1]
    if len(live) == 1:
        # It wins the blinds, as far as another player's chips cover them.
        in_pot = [
            s if p in live and any(outcome.jams) else b
            for p, (s, b) in enumerate(zip(stacks, blind, strict=True))
        ]
        most = [max(in_pot[:p] + in_pot[p + 1 :]) for p in range(len(stacks))]
        lost = [
            0 if p in live else min(b, m)
            for p, (b, m) in enumerate(zip(blind, most, strict=True))
        ]
        after = [s - x for s, x in zip(stacks, lost, strict=True)]
        after[live[0]] += sum(lost)
        return [(1.0, tuple(after))]
    rank = dict(zip(live, outcome.ranks, strict=True))
    paid = [
        s if p in rank else b
        for p, (s, b) in enumerate(zip(stacks, blind, strict=True))
    ]
    distribution: dict[Stacks, float] = {
        tuple(s - x for s, x in zip(stacks, paid, strict=True)): 1.0
    }
    below = 0
    for level in sorted(set(paid) - {0}):
        payers = [p for p, x in enumerate(paid) if x >= level]
        entitled = [p for p in payers if p in rank]
        size = (level - below) * len(payers)
        below = level
        if entitled:
            best = min(rank[p] for p in entitled)
            winners = [p for p in entitled if rank[p] == best]
        else:
            winners = payers  # Blinds that no hand in the showdown covers are returned.
        distribution = _share(distribution, size, winners)
    return [(chance, after) for after, chance in distribution.items()]


def _share(
    distribution: dict[Stacks, float], size: int, winners: Sequence[int]
) -> dict[Stacks, float]:
    """Add a pot, shared by its winners, to a distribution of stacks."""
    each, odd = divmod(size, len(winners))
    lots = list(itertools.combinations(winners, odd))
    later: dict[Stacks, float] = {}
    for after, chance in distribution.items():
        for lot in lots:
            new = list(after)
            for p in winners:
                new[p] += each + (p in lot)
            key = tuple(new)
            later[key] = later.get(key, 0.0) + chance / len(lots)
    return later


def move_on(
    before: Sequence[int], after: Sequence[int], prizes: Sequence[float]
) -> tuple[Stacks, tuple[int, ...], tuple[float, ...]]:
    """Remove players without chips, and move the blinds.

    The big blind moves to the next remaining player. If two players go out in one hand,
    the one with more chips before it finishes higher; with equal stacks they share the
    prizes.

    Args:
      before: Stacks before the hand, by position.
      after: Stacks after the hand, by the same positions.
      prizes: Prizes [n] of the places from the first to the last at this table.

    Returns:
      Stacks of the remaining players, by their new positions (if there is one player,
      this player has won); new position of each old one, -1 if the player is out; and
      prize of each old position if the player is out or has won, otherwise 0.
    """
    n = len(before)
    left = [p for p in range(n) if after[p] > 0]
    prize = [0.0] * n
    for p in set(range(n)) - set(left):
        ahead = len(left) + sum(
            after[q] == 0 and before[q] > before[p] for q in range(n)
        )
        equal = sum(after[q] == 0 and before[q] == before[p] for q in range(n))
        prize[p] = sum(prizes[ahead : ahead + equal]) / equal
    if len(left) == 1:
        prize[left[0]] = prizes[0]
    # The first remaining player after the old big blind gets the last position.
    order = left[1:] + left[:1]
    position = [order.index(p) if p in left else -1 for p in range(n)]
    return tuple(after[p] for p in order), tuple(position), tuple(prize)
