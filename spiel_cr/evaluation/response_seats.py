"""What a response in one seat was found to be worth, and both seats together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common.short_repr import short_repr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.responses.state_responder import BeliefRecord

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
