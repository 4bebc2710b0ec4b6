"""One hand of a jam-or-fold tournament: who acts, what is paid, where stacks go.

Players act in the order of their positions, the big blind last; with two players the
small blind is the button and acts first. Each jams, all its chips, or folds. Where all
others fold the big blind wins without acting.
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
    """How a hand ends, up to the odd chip.

    Attributes:
      jams: bool per position; of the big blind, whether it called.
      ranks: of those who jammed, in order of positions; 0 is best, equal ones tie.
        Empty: nobody else is in.
    """

    jams: tuple[bool, ...]
    ranks: tuple[int, ...]


@functools.cache
def outcomes(players: int) -> tuple[Outcome, ...]:
    """All ways in which a hand may end, in a fixed order.

    Args:
      players: at the table, at least two.

    Returns:
      By what was done, fold before jam; showdowns with ranks in the order of
      `finishing_orders`. 5 of two players, 25 of three.
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
    """What was done before each decision: a tuple of jams, one per earlier position.

    Returns:
      In order of positions, then fold before jam; 2 of two players, 6 of three.
    """
    return tuple(
        before
        for position in range(players)
        for before in itertools.product((False, True), repeat=position)
        if position < players - 1 or any(before)
    )


def all_stacks(total: int, players: int) -> np.ndarray:
    """int [N, n], all ways in which players may share chips, each having one at least.

    Args:
      total: units of chips.
      players: n.
    """
    ends = itertools.combinations(range(1, total), players - 1)
    return np.array([np.diff((0, *cut, total)) for cut in ends], int).reshape(
        -1, players
    )


def posted(stacks: Sequence[int], blinds: tuple[int, int]) -> Stacks:
    """The blinds that are paid before the hand, by position; no more than the stack."""
    rest = (0,) * (len(stacks) - 2)
    return tuple(min(s, b) for s, b in zip(stacks, rest + blinds, strict=True))


def forced(stacks: Sequence[int], blinds: tuple[int, int]) -> tuple[bool, ...]:
    """Per infoset, whether the blind took the whole stack: the player is in anyway."""
    gone = [p == s for p, s in zip(posted(stacks, blinds), stacks, strict=True)]
    return tuple(gone[len(before)] for before in infosets(len(stacks)))


def settle(
    stacks: Sequence[int], blinds: tuple[int, int], outcome: Outcome
) -> list[tuple[float, Stacks]]:
    """The stacks after a hand.

    Chips that nobody else covers come back. Each pot is shared by the best hands in it;
    odd chips go to some of these by lot, so that stacks stay whole numbers.

    Args:
      stacks: units of chips, by position.
      blinds: small and big.
      outcome: how the hand ends; players who are in by force count as having jammed.

    Returns:
      (chance, stacks by the old positions), chances adding to one.
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
            winners = payers  # Blinds that nobody in the showdown covers come back.
        distribution = _share(distribution, size, winners)
    return [(chance, after) for after, chance in distribution.items()]


def _share(
    distribution: dict[Stacks, float], size: int, winners: Sequence[int]
) -> dict[Stacks, float]:
    """Adds a pot, shared by its winners, to stacks with chances."""
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


class Next(NamedTuple):
    """Where a player stands after a hand.

    Attributes:
      stacks: of those who are left, by their new positions; one player: it has won.
      position: per old position, the new one; -1: out.
      prize: per old position, the prize of those who are out, or have won; else 0.
    """

    stacks: Stacks
    position: tuple[int, ...]
    prize: tuple[float, ...]


def move_on(
    before: Sequence[int], after: Sequence[int], prizes: Sequence[float]
) -> Next:
    """Takes out who has no chips, and moves the blinds.

    The big blind goes to the next player who is left. Of two who go out in one hand,
    the one with more chips before it takes the higher place; with equal stacks they
    share.

    Args:
      before: stacks before the hand, by position.
      after: and after it, by the same positions.
      prizes: [n] of the places from the first to the last at this table.
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
    # Seats from the one behind the old big blind's, which is the new one's if it is in.
    seats = [(n + k) % n for k in range(n)]
    big = next(p for p in seats if p in left)
    at = left.index(big)
    order = [left[(at + 1 + k) % len(left)] for k in range(len(left))]
    position = [order.index(p) if p in left else -1 for p in range(n)]
    return Next(tuple(after[p] for p in order), tuple(position), tuple(prize))
