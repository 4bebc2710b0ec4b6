"""Responses to the honest player in limit hold'em: chips per hand, and sessions won.

Run `python -m benchmarks.honest_response --help`. The game is that of the study
`deep_holdem`: blinds 1 and 2, bets 2, 2, 4 and 4, sessions of some hands with equal
stacks, the seats swapped after each hand, a broke player out.

The honest player never raises, and its answers depend on its cards alone. So a response
that bets, or checks, once a street faces a decision problem. It knows in which of some
bins its share of rollouts lies, its own bets, and that the honest player called them.
Dynamic programming over these finds the best choices on one set of deals; another set
judges them. Sessions are exact for these deals: no match is drawn.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.document import Column, table
from benchmarks.frame import Benchmark, Parser, Row
from game_defs.bundled.holdem.strengths import card_bits, split, strengths

_BOARD = (0, 3, 4, 5)
_BETS = (2, 2, 4, 4)
_SMALL, _BIG = 0, 1
_SEATS = ("small blind", "big blind")
# Rollouts are dealt for so many hands at a time.
_CHUNK = 500

# From results of hands in chips, int64 [deals], to what they are worth.
Worth = Callable[[np.ndarray], np.ndarray]


class Deals(NamedTuple):
    """Hands dealt at random, on the four streets.

    Attributes:
      calls: bool [deals, 4], whether the honest player calls.
      share: float64 [deals, 4], of rollouts that the responder wins, ties half.
      sign: int64 [deals], 1 where the responder wins the showdown, -1 where it loses.
    """

    calls: np.ndarray
    share: np.ndarray
    sign: np.ndarray


def deal(number: int, rollouts: int, random: np.random.Generator) -> Deals:
    """Deals of both players and the board; rollouts of both on each street."""
    cards = random.random((number, 52)).argsort(axis=1)[:, :9]
    own, other, board = cards[:, :2], cards[:, 2:4], cards[:, 4:]
    theirs, ours = (
        np.stack([_share(c, board[:, :n], rollouts, random) for n in _BOARD], axis=1)
        for c in (other, own)
    )
    mine, its = (_strength(np.hstack([c, board])) for c in (own, other))
    return Deals(theirs >= 0.5, ours, np.sign(mine.astype(int) - its))


def _strength(cards: np.ndarray) -> np.ndarray:
    """int32 [...], of seven cards, int64 [..., 7]."""
    return strengths(split(card_bits(4)[cards].sum(axis=-1, dtype="<i8")))


def _share(
    own: np.ndarray, board: np.ndarray, rollouts: int, random: np.random.Generator
) -> np.ndarray:
    """float64 [deals], of rollouts that the cards win, ties half."""
    shares = []
    for first in range(0, len(own), _CHUNK):
        known = np.hstack([x[first : first + _CHUNK] for x in (own, board)])
        known = np.repeat(known[:, None], rollouts, axis=1)
        keys = random.random((*known.shape[:2], 52))
        np.put_along_axis(keys, known, 2.0, axis=2)
        hidden = keys.argsort(axis=2)[:, :, : 9 - known.shape[2]]
        rest, other = hidden[:, :, 2:], hidden[:, :, :2]
        public = np.concatenate([known[:, :, 2:], rest], axis=2)
        mine, its = (
            _strength(np.concatenate([c, public], axis=2))
            for c in (known[:, :, :2], other)
        )
        shares.append(((mine > its).mean(1) + (mine >= its).mean(1)) / 2)
    return np.concatenate(shares)


class Responder:
    """Plays one hand: chooses on the deals `learned`, also for the deals `judged`."""

    def __init__(self, learned: Deals, judged: Deals, bins: int) -> None:
        self._sets = (learned, judged)
        inner = np.linspace(0, 1, bins + 1)[1:-1]
        self._bins = [
            [
                np.searchsorted(np.quantile(learned.share[:, s], inner), x.share[:, s])
                for x in self._sets
            ]
            for s in range(4)
        ]
        self._count = bins

    def play(self, seat: int, worth: Worth) -> list[np.ndarray]:
        """Results of the hand in chips, int64 [deals], for both sets of deals.

        Args:
          seat: 0 small blind, 1 big blind.
          worth: of results; its mean over the learned deals is the greatest possible.
        """
        calls = [x.calls[:, 0] for x in self._sets]
        check = self._street(1, (0,), seat, worth)
        raised = self._called(0, (), self._street(1, (1,), seat, worth))
        if seat == _SMALL:
            fold = [np.full_like(x, -1) for x in check]
            everything = np.ones_like(calls[0])
            return self._choose(0, [check, raised, fold], everything, worth)
        chosen = self._choose(0, [check, raised], calls[0], worth)
        # Who is in the big blind wins the small one where the honest player folds it.
        return [np.where(c, x, 1) for c, x in zip(calls, chosen, strict=True)]

    def _street(
        self, street: int, bets: tuple[int, ...], seat: int, worth: Worth
    ) -> list[np.ndarray]:
        """From a street on; where the honest player folded before, it means nothing."""
        if street == 4:
            return [x.sign * _stake(bets) for x in self._sets]
        check = self._street(street + 1, (*bets, 0), seat, worth)
        bet = self._street(street + 1, (*bets, 1), seat, worth)
        met = [s for s, b in enumerate(bets) if b or (s == 0 and seat == _BIG)]
        among = np.asarray(self._sets[0].calls[:, met].all(axis=1))
        options = [check, self._called(street, bets, bet)]
        return self._choose(street, options, among, worth)

    def _called(
        self, street: int, bets: tuple[int, ...], later: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Results of a bet: those of later streets where it is called."""
        pairs = zip(self._sets, later, strict=True)
        return [np.where(x.calls[:, street], r, _stake(bets)) for x, r in pairs]

    def _choose(
        self,
        street: int,
        options: Sequence[list[np.ndarray]],
        among: np.ndarray,
        worth: Worth,
    ) -> list[np.ndarray]:
        """The best option of each bin, by the learned deals that are possible."""
        bins = self._bins[street]
        total = [
            np.bincount(bins[0], np.where(among, worth(x[0]), 0), self._count)
            for x in options
        ]
        best = np.argmax(total, axis=0)
        return [
            np.choose(best[bins[k]], [option[k] for option in options]) for k in (0, 1)
        ]


def _stake(bets: tuple[int, ...]) -> int:
    """What each has put in: the big blind, and bets on the streets so far."""
    return 2 + sum(bet for made, bet in zip(bets, _BETS, strict=False) if made)


def session(
    hand: Callable[[int, Worth], np.ndarray], first: int, stack: int, hands: int
) -> tuple[float, float]:
    """The probabilities that a session is won, and drawn.

    Args:
      hand: from the seat and the worth of results, its change of the stacks, to the
        results that judge it.
      first: seat in the first hand.
      stack: of each player, in chips.
      hands: at most.
    """
    ahead = np.arange(-stack, stack + 1)
    won, drawn = (ahead > 0) * 1.0, (ahead == 0) * 1.0
    for number in reversed(range(hands)):
        before = won.copy(), drawn.copy()
        seat = first if number % 2 == 0 else 1 - first
        # So far one can be ahead before this hand; who is broke stays so.
        reach = min(stack - 1, _stake((1,) * 4) * number)
        for lead in range(-reach, reach + 1):
            chips = hand(seat, functools.partial(_after, won + drawn / 2, lead))
            for values, later in zip(before, (won, drawn), strict=True):
                values[lead + stack] = _after(later, lead, chips).mean()
        won, drawn = before
    return float(won[stack]), float(drawn[stack])


def _after(values: np.ndarray, lead: int, chips: np.ndarray) -> np.ndarray:
    """The values, of leads from -stack to stack, after results from a lead."""
    stack = len(values) // 2
    left = stack - abs(lead)
    return values[lead + np.clip(chips, -left, left) + stack]


def _add_options(parser: Parser) -> None:
    parser.number("--deals", 20_000, "of each of both sets", least=100)
    parser.number("--rollouts", 100, "of both players, on each street")
    parser.number("--bins", 10, "of the responder's share of rollouts", least=2)
    parser.number("--stack", 80, "of each player, in chips")
    parser.number("--hands", 10, "of a session")
    parser.number("--seed", 0, "of the deals", least=0)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    seeds = np.random.SeedSequence(options.seed).spawn(2)
    learned, judged = (
        deal(options.deals, options.rollouts, np.random.default_rng(s)) for s in seeds
    )
    responder = Responder(learned, judged, options.bins)
    chips = [responder.play(seat, lambda x: x)[1] for seat in (_SMALL, _BIG)]
    ways: dict[str, Callable[[int, Worth], np.ndarray]] = {
        "chips": lambda seat, _: chips[seat],
        "the session": lambda seat, worth: responder.play(seat, worth)[1],
    }
    for aim, hand in ways.items():
        for first, seat in enumerate(_SEATS):
            won, drawn = session(hand, first, options.stack, options.hands)
            yield {
                **{"aim": aim, "first": seat, "won": won, "drawn": drawn},
                "chips": [float(x.mean()) for x in chips] if aim == "chips" else None,
            }


_COLUMNS: dict[str, Column] = {
    "response to win": "{aim}",
    "first hand in the": "{first}",
    "sessions won": "{won:.1%}",
    "drawn": "{drawn:.1%}",
}

BENCHMARK = Benchmark(
    "honest_response",
    "Measure what responses win from the honest player of limit hold'em.",
    _add_options,
    _measure,
    lambda rows: table(rows, _COLUMNS, labels=2),
    tables=None,
    page="studies.md",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
