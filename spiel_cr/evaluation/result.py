"""What a response in one seat was found to be worth, and both seats together."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.messages import short_repr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.responses.state_responder import BeliefRecord
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

# Gains below this share of the payoffs are rounding.
_ROUNDING = 1e-12


class Seat(NamedTuple):
    """A response in one seat. Values are expected rewards of the responder, in the
    game's units.

    Attributes:
      player: the responder.
      value: of the response: exact, or the mean of `returns`.
      is_exact: whether `value` is exact; `judged_exactly` in reports.
      exact_value: of a best response; None where it is not known.
      on_policy: what the opponent's own policy gets in this seat; None where not known.
      returns: float64 [matches], of each match; empty where it is exact. On states
        less the luck that `control_variates` finds in them. Match n of one seat may
        have the deals of match n of the other, and of no other match.
      simulations: or rollouts, to find the response; 0 where there are none.
      seconds: to find the response.
      plain_half_width: half of the 95 % confidence interval by plain returns; None
        where no match was played, or luck was not taken out.
      beliefs: of a response that looks ahead on states; None of others.
      largest: of the game's utilities, without sign; 0 where it is not known.
      behaviour: float64 [S], the response's action probabilities; None where it is
        known by its matches alone.
    """

    player: int
    value: float
    is_exact: bool
    exact_value: float | None
    on_policy: float | None
    returns: np.ndarray
    simulations: int
    seconds: float
    plain_half_width: float | None = None
    beliefs: BeliefRecord | None = None
    largest: float = 0.0
    behaviour: np.ndarray | None = None

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def half_width(self) -> float:
        """Half of the 95 % confidence interval of `value`; 0 where that is exact."""
        return 0.0 if self.is_exact else mean_of_matches(self.returns, self.largest)[1]

    def report(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "player": self.player,
            "value": self.value,
            "half_width": self.half_width,
            "judged_exactly": self.is_exact,
            "exact_value": self.exact_value,
            "on_policy": self.on_policy,
            "plain_half_width": self.plain_half_width,
            "matches": len(self.returns),
            "simulations": self.simulations,
            "seconds": self.seconds,
            "beliefs": None if self.beliefs is None else self.beliefs.report(),
        }


def summary(seats: Sequence[Seat]) -> dict[str, Any]:
    """What is known of one seat, or of both together (approximate NashConv).

    Match n of one seat and match n of the other make one observation, their sum: both
    may have the same deals, so that what they bring goes up and down together, or one
    up and the other down.

    Args:
      seats: one, or both, with equally many matches where their values are estimates.

    Returns:
      `value`, `half_width`, `judged_exactly`, `exact_value`, `share`,
      `share_half_width`, `matches`, `simulations`, `seconds` and `seats`, a report of
      each. `half_width` is that of
      `value`: 0 where it is exact. `share` is the gain over the opponent's own policy
      that was found, divided by that of a best response; with both seats that is
      NashConv found by NashConv. It and `exact_value` are None where not known; `share`
      also where its interval would be wider than itself.
    """
    estimated = [seat for seat in seats if not seat.is_exact]
    half = 0.0
    if estimated:
        known = [seat.largest for seat in estimated]
        sums = np.sum([seat.returns for seat in estimated], axis=0)
        half = mean_of_matches(sums, sum(known) if all(known) else 0.0)[1]
    value = sum(seat.value for seat in seats)
    exact = share = share_half = None
    if all(seat.exact_value is not None for seat in seats):
        exact = sum(seat.exact_value or 0.0 for seat in seats)
        base = sum(seat.on_policy or 0.0 for seat in seats)
        scale = max(seat.largest for seat in seats)
        gain = exact - base
        if gain > _ROUNDING * scale and 2 * half <= abs(value - base):
            share, share_half = (value - base) / gain, half / gain
    return {
        "value": value,
        "half_width": half,
        "judged_exactly": not estimated,
        "exact_value": exact,
        "share": share,
        "share_half_width": share_half,
        "matches": sum(len(seat.returns) for seat in seats),
        "simulations": sum(seat.simulations for seat in seats),
        "seconds": sum(seat.seconds for seat in seats),
        "seats": [seat.report() for seat in seats],
    }


def mean_of_matches(returns: np.ndarray, largest: float) -> tuple[float, float]:
    """The mean of two or more, and half of its interval.

    Args:
      returns: float64 [n].
      largest: that a return can be, without sign; 0 where it is not known.
    """
    bounds = (-largest, largest) if largest else None
    mean, half = mean_and_half_width(returns, bounds)
    assert half is not None
    return mean, half


def seated(player: int, own: Any, other: Any) -> Any:
    """What belongs to a player and to its opponent, by seat."""
    return (own, other) if player == 0 else (other, own)


# With so much probability a bound holds: one side of the interval of 95 %.
LEVEL = 0.975
# Of fewer matches than these Student's t says too much.
_FEW = 32

# A response.
Found: TypeAlias = openspiel_policy.Policy | pyspiel.Bot


class Point(NamedTuple):
    """What was known of one seat at some time.

    Attributes:
      seconds: since the call.
      player: the responder.
      instrument: that found the response.
      value: what that wins, in the game's units.
      at_least: what a best response wins, with `LEVEL`; `value` where it is exact.
      matches: that say so; 0 where it is exact.
    """

    seconds: float
    player: int
    instrument: str
    value: float
    at_least: float
    matches: int

    @property
    def is_exact(self) -> bool:
        """Whether no response wins more."""
        return not self.matches


@dataclasses.dataclass(frozen=True, repr=False)
class Exploited:
    """What can be won from a player, at least.

    Attributes:
      name: of the player.
      game: sequential.
      seats: of each seat that was asked for the last point.
      curve: all points, in the order of time.
      left_out: why not, by instrument.
      responses: one for each of `seats`: an OpenSpiel policy, in the other seat who was
        exploited; or a bot that searches in matches.
      seconds: of all.
    """

    name: str
    game: pyspiel.Game
    seats: tuple[Point, ...]
    curve: tuple[Point, ...]
    left_out: Mapping[str, str]
    responses: tuple[Found, ...]
    seconds: float

    __repr__ = short_repr

    @property
    def value(self) -> float:
        """What the responses win together; with both seats an estimate of NashConv."""
        return sum(seat.value for seat in self.seats)

    @property
    def at_least(self) -> float:
        """What best responses win together, with `LEVEL`; exact if all seats are."""
        return together(self.seats)

    @property
    def is_exact(self) -> bool:
        """Whether nobody wins more; with both seats `value` is NashConv."""
        return all(seat.is_exact for seat in self.seats)

    def bounds(self) -> list[tuple[float, float]]:
        """Seconds, and what was known of all seats together by then."""
        latest: dict[int, Point] = {}
        found = []
        for point in self.curve:
            latest[point.player] = point
            if len(latest) == len(self.seats):
                found.append((point.seconds, together(list(latest.values()))))
        return found

    def save(self, folder: atomic.Path) -> list[pathlib.Path]:
        """Writes each response to `response0.npz` and `response1.npz`.

        A file has the infosets that were learned; elsewhere it plays uniformly.

        Args:
          folder: made where it is missing.

        Returns:
          The files. Other responses than tables have none: exact ones are OpenSpiel
          policies, and those that search in matches are bots.
        """
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        files = []
        for seat, policy in zip(self.seats, self.responses, strict=True):
            if isinstance(policy, TablePolicy):
                said = {"responds_to": self.name, "player": seat.player}
                files.append(path / f"response{seat.player}.npz")
                policy.save(files[-1], said)
        return files

    def report(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "policy": self.name,
            "game": str(self.game),
            "value": self.value,
            "at_least": self.at_least,
            "level": LEVEL,
            "is_exact": self.is_exact,
            "seats": [_reported(seat) for seat in self.seats],
            "curve": [_reported(point) for point in self.curve],
            "left_out": dict(self.left_out),
            "seconds": self.seconds,
        }


def _reported(point: Point) -> dict[str, Any]:
    return {**point._asdict(), "is_exact": point.is_exact}


def together(seats: Sequence[Point]) -> float:
    """The bound of all seats together; their matches are independent.

    Of both seats it bounds NashConv, which is never below 0: who plays as the player
    does in the other seat wins what that loses.
    """
    halves = math.hypot(*(seat.value - seat.at_least for seat in seats))
    low = sum(seat.value for seat in seats) - halves
    return max(0.0, low) if len(seats) == 2 else low


def bound_of(
    returns: np.ndarray,
    bounds: tuple[float, float] | None,
    *,
    without_luck: bool = False,
) -> tuple[float, float]:
    """The mean of matches, and what the expectation is at least, with `LEVEL`.

    By Student's t; of few matches, which are far from normal, it is no higher than by
    Hoeffding's inequality (1963). Where luck was taken out, what is left is rare and
    may not have come yet: with 5 % that had a probability of about 3 / n (the rule of
    three, see `mean_and_half_width`), which is taken off, too.

    Args:
      returns: float64 [n], n at least 2.
      bounds: the least and the greatest return there may be, where known.
      without_luck: luck was taken out.
    """
    mean, half = mean_and_half_width(returns, bounds)
    assert half is not None
    if bounds is not None and len(returns) < _FEW:
        wide = math.sqrt(-math.log(1 - LEVEL) / (2 * len(returns)))
        half = max(half, wide * (bounds[1] - bounds[0]))
    if bounds is not None and without_luck:
        half += (1 - 0.05 ** (1 / len(returns))) * (bounds[1] - bounds[0])
    return mean, mean - half
