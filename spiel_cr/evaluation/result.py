"""The result of every evaluation, and the confidence bounds it reports."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.policies.beliefs.state_posterior import StatePosterior

# Confidence of `at_least`: one side of a 95% interval.
LEVEL = 0.975
# With fewer matches than this, Student's t interval is too narrow.
_FEW = 32
# Gains below this share of the payoffs are rounding errors.
_ROUNDING = 1e-12

# A response: a policy, or a bot that searches during matches.
Response: TypeAlias = openspiel_policy.Policy | pyspiel.Bot


@dataclasses.dataclass
class BeliefRecord:
    """Statistics of a bot's beliefs since the bot was made.

    Attributes:
      decisions: Number of decisions at which the bot looked ahead.
      approximate: Number of decisions with an approximate belief.
      empty: Number of decisions without a particle that fits; moves are random there.
      effective_sizes: Sum of the effective sample sizes of approximate beliefs that are
        not empty.
      least_effective_size: Smallest of these sizes; None if all beliefs were exact or
        empty.
    """

    decisions: int = 0
    approximate: int = 0
    empty: int = 0
    effective_sizes: float = 0.0
    least_effective_size: float | None = None

    @property
    def mean_effective_size(self) -> float | None:
        """Mean size of approximate, nonempty beliefs; None if there are none."""
        count = self.approximate - self.empty
        return self.effective_sizes / count if count else None

    def report(self) -> dict[str, Any]:
        """Return the statistics as a JSON-serialisable dict."""
        return {
            "decisions": self.decisions,
            "approximate": self.approximate,
            "empty": self.empty,
            "mean_effective_size": self.mean_effective_size,
            "least_effective_size": self.least_effective_size,
        }

    def plus(self, other: "BeliefRecord") -> "BeliefRecord":
        """Return the combined statistics."""
        least = (self.least_effective_size, other.least_effective_size)
        return BeliefRecord(
            self.decisions + other.decisions,
            self.approximate + other.approximate,
            self.empty + other.empty,
            self.effective_sizes + other.effective_sizes,
            min((size for size in least if size is not None), default=None),
        )

    def add(self, belief: StatePosterior) -> None:
        """Add the belief of a decision."""
        self.decisions += 1
        if not len(belief.states):
            self.approximate += 1
            self.empty += 1
        elif belief.approximate:
            size = belief.effective_size
            self.approximate += 1
            self.effective_sizes += size
            least = self.least_effective_size
            self.least_effective_size = size if least is None else min(least, size)


class ResponseValue(NamedTuple):
    """Value of one player's response, from the responder's perspective.

    Values are expected utilities in the game's units.

    Attributes:
      player: The responder.
      method: The method that found the response.
      value: Value of the response: exact, or the mean of `returns`.
      half_width: Half of the 95% confidence interval of `value`; 0 if it is exact.
      matches: Number of matches that estimate `value`; 0 if it is exact.
      seconds: Time to find the response; in a curve, the time since the call.
      exact_value: Best-response value; None if it is not known.
      on_policy: Value of the opponent's own policy for this player; None if it is not
        known.
      simulations: Number of simulations or rollouts that found the response.
      plain_half_width: `half_width` without the control variate; None if none was used.
      beliefs: Statistics of the responder's beliefs; None if it has no beliefs.
      returns: The return of each match, after variance reduction, float64 [matches].
        Match n of one player may have the same deals as match n of the other player.
        None if `value` is exact.
      largest: Largest absolute utility of the game; 0 if it is not known.
      behaviour: The response's action probabilities, float64 [S]; None if the response
        is only known by its matches.
      offset: Half of the constant sum of both players' payoffs, see `payoff_offset`,
        which the values include.
    """

    player: int
    method: str
    value: float
    half_width: float = 0.0
    matches: int = 0
    seconds: float = 0.0
    exact_value: float | None = None
    on_policy: float | None = None
    simulations: int = 0
    plain_half_width: float | None = None
    beliefs: BeliefRecord | None = None
    returns: np.ndarray | None = None
    largest: float = 0.0
    behaviour: np.ndarray | None = None
    offset: float = 0.0

    def __repr__(self) -> str:
        """Return the value with its interval, and the method."""
        return f"{type(self).__name__}({self._summary()})"

    def _summary(self) -> str:
        return f"player {self.player}: {_in_words(self)} by {self.method!r}"

    def with_offset(self, offset: float) -> "ResponseValue":
        """Return values of a constant-sum game in its units.

        Args:
          offset: Half of the constant, which was subtracted from all payoffs.
        """
        if not offset:
            return self
        fields = "value", "exact_value", "on_policy", "returns"
        values = {name: getattr(self, name) for name in fields}
        shifted = {k: v + offset for k, v in values.items() if v is not None}
        return self._replace(**shifted, offset=offset)

    @property
    def is_exact(self) -> bool:
        """Whether `value` is computed exactly, and not a mean of matches."""
        return not self.matches

    @property
    def at_least(self) -> float:
        """Lower bound of the best-response value, with confidence `LEVEL`."""
        return self.value - self.half_width

    def report(self) -> dict[str, Any]:
        """Return the value and its statistics as a JSON-serialisable dict."""
        report = {**self._asdict(), "at_least": self.at_least}
        report["is_exact"] = self.is_exact
        if self.beliefs is not None:
            report["beliefs"] = self.beliefs.report()
        for name in ("returns", "largest", "behaviour", "offset"):
            del report[name]
        return report


@dataclasses.dataclass(frozen=True, repr=False)
class Evaluation:
    """Values of responses to a policy.

    All values are expected utilities in the game's units.

    Attributes:
      value: Sum of the values of the responses, each from the responder's perspective.
        If both players respond with best responses, it is NashConv; otherwise it is a
        lower bound or an estimate of one.
      half_width: Half of the 95% confidence interval of `value`; 0 if it is exact, None
        for a single repeat.
      is_exact: Whether `value` is computed exactly, and not a mean of matches.
      evaluator: Library that computed the values: "spiel_cr" or "openspiel".
      players: The value of each player's response; empty if only the sum is known.
      responses: The response of each of `players`. A policy plays the response for the
        responder, and the evaluated policy for the other player. None if the response
        is only known by its matches.
      game_value: Player 0's expected utility under the policy; None if it is not known.
      bounds: Lower and upper bound of the game's value for player 0; None if they are
        not known.
      seconds: Wall-clock time of the evaluation.
      curve: Earlier values in the order of time, for anytime evaluations.
      statistics: Further numbers and remarks, by name.
      game: String of the game; empty if it was not recorded.
      policy: Name of the evaluated policy; empty if it was not recorded.
    """

    value: float
    half_width: float | None = 0.0
    is_exact: bool = True
    evaluator: str = "spiel_cr"
    players: tuple[ResponseValue, ...] = ()
    responses: tuple[Response | None, ...] = ()
    game_value: float | None = None
    bounds: tuple[float, float] | None = None
    seconds: float = 0.0
    curve: tuple[ResponseValue, ...] = ()
    statistics: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    game: str = ""
    policy: str = ""

    def __repr__(self) -> str:
        """Return the value and its interval, and those of each player."""
        best = all(each.method == "exact" for each in self.players)
        title = "NashConv" if best else "lower bound of NashConv"
        if len(self.players) == 1:
            by = f"by {self.players[0].method!r} for player {self.players[0].player}"
            title = f"{'best-response value' if best else 'value of a response'} {by}"
        of = f" of {self.policy}" if self.policy else ""
        game = f" of {self.game}" if self.game else ""
        parts = [f"{title}{of}: {_in_words(self)}, in the payoffs{game}"]
        # One player's value is the sum.
        players = self.players if len(self.players) > 1 else ()
        parts += [each._summary() for each in players]
        return f"{type(self).__name__}({'; '.join(parts)})"

    @property
    def nash_conv(self) -> float:
        """`value`, if both players respond.

        Raises:
          ValueError: If only one player responds.
        """
        if len(self.players) == 1:
            raise ValueError(
                f"NashConv needs the responses of both players, and only player "
                f"{self.players[0].player} responds here; use value"
            )
        return self.value

    @property
    def at_least(self) -> float:
        """Lower bound of the best responses' value, with confidence `LEVEL`.

        NashConv is never below 0, because each player can play the evaluated policy.
        """
        low = self.value - (self.half_width or 0.0)
        return low if len(self.players) == 1 else max(0.0, low)

    @property
    def exact_value(self) -> float | None:
        """Sum of the best-response values; None if one is not known."""
        values = [each.exact_value for each in self.players]
        exact = [value for value in values if value is not None]
        complete = exact and len(exact) == len(values)
        return sum(exact) - _constant(self.players) if complete else None

    def share(self) -> tuple[float, float] | None:
        """Return the share of the possible gain that the responses reach.

        The gain is the value minus that of the opponent's own policy. With both
        players, the share is the NashConv that was found, divided by the exact one.

        Returns:
          The share and half of its 95% confidence interval; None if the share is not
          known, or its interval would be wider than itself.
        """
        exact, half = self.exact_value, self.half_width or 0.0
        if exact is None:
            return None
        base = sum(each.on_policy or 0.0 for each in self.players)
        base -= _constant(self.players)
        gain = exact - base
        scale = max(each.largest for each in self.players)
        if gain > _ROUNDING * scale and 2 * half <= abs(self.value - base):
            return (self.value - base) / gain, half / gain
        return None

    def lower_bounds(self) -> list[tuple[float, float]]:
        """Return pairs of seconds and the bound `at_least` at that time."""
        latest: dict[int, ResponseValue] = {}
        bounds = []
        for point in self.curve:
            latest[point.player] = point
            if len(latest) == len(self.players):
                evaluation = from_independent(list(latest.values()))
                bounds.append((point.seconds, evaluation.at_least))
        return bounds

    def save(self, folder: atomic.Path) -> list[pathlib.Path]:
        """Write the responses that are tables to `response0.npz` and `response1.npz`.

        A file holds the infosets that were learned; elsewhere it plays uniformly.

        Args:
          folder: The folder, created if it does not exist.

        Returns:
          The files. Exact responses are OpenSpiel policies and have no file; nor have
          bots that search during matches.
        """
        # Evaluations of other methods need no tables, whose modules import solvers.
        from spiel_cr.solvers.mccfr.table.table_policy import as_table

        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        files = []
        for each, policy in zip(self.players, self.responses, strict=True):
            table = as_table(policy)
            if table is not None:
                facts = {"responds_to": self.policy, "player": each.player}
                files.append(path / f"response{each.player}.npz")
                table.save(files[-1], facts)
        return files

    def report(self) -> dict[str, Any]:
        """Return the evaluation as a JSON-serialisable dict."""
        share, share_half_width = self.share() or (None, None)
        return {
            "game": self.game,
            "policy": self.policy,
            "value": self.value,
            "half_width": self.half_width,
            "at_least": self.at_least,
            "level": LEVEL,
            "is_exact": self.is_exact,
            "evaluator": self.evaluator,
            "exact_value": self.exact_value,
            "share": share,
            "share_half_width": share_half_width,
            "matches": sum(each.matches for each in self.players),
            "simulations": sum(each.simulations for each in self.players),
            "seconds": self.seconds,
            "players": [each.report() for each in self.players],
            "curve": [point.report() for point in self.curve],
            **self.statistics,
        }


def from_same_deals(players: Sequence[ResponseValue], **attributes: Any) -> Evaluation:
    """Combine responses whose matches have the same deals for both players.

    Match n of one player and match n of the other are one observation, their sum,
    because the same deals make their returns dependent.

    Args:
      players: One player's value, or both, with equal numbers of matches if their
        values are estimates.
      attributes: Further attributes of the `Evaluation`.
    """
    half, estimated = 0.0, [each for each in players if each.returns is not None]
    if estimated:
        largest = [each.largest for each in estimated]
        sums = np.sum(np.array([each.returns for each in estimated]), axis=0)
        sums = sums - sum(each.offset for each in estimated)
        half = mean_of_matches(sums, sum(largest) if all(largest) else 0.0)[1]
    return Evaluation(
        sum(each.value for each in players) - _constant(players),
        half,
        not estimated,
        players=tuple(players),
        seconds=sum(each.seconds for each in players),
        **attributes,
    )


def from_independent(players: Sequence[ResponseValue], **attributes: Any) -> Evaluation:
    """Combine responses whose matches are independent.

    Args:
      players: One player's value, or both.
      attributes: Further attributes of the `Evaluation`.
    """
    return Evaluation(
        sum(each.value for each in players) - _constant(players),
        math.hypot(*(each.value - each.at_least for each in players)),
        all(each.is_exact for each in players),
        players=tuple(players),
        **attributes,
    )


def _in_words(result: ResponseValue | Evaluation) -> str:
    """Return a value with its interval as text."""
    if result.is_exact:
        return f"{result.value:.6g} (exact)"
    if result.half_width is None:
        return f"{result.value:.6g} (a single estimate)"
    return (
        f"{result.value:.4g} ± {result.half_width:.2g} (95% interval), at least "
        f"{result.at_least:.4g}"
    )


def _constant(players: Sequence[ResponseValue]) -> float:
    """Return what both players' values sum to beyond the gains of their responses."""
    return sum(each.offset for each in players) if len(players) == 2 else 0.0


def mean_of_matches(returns: np.ndarray, largest: float) -> tuple[float, float]:
    """Return the mean of two or more matches, and half of its 95% interval.

    Args:
      returns: float64 [n].
      largest: Largest absolute value of a return; 0 if it is not known.
    """
    bounds = (-largest, largest) if largest else None
    mean, half = mean_and_half_width(returns, bounds)
    assert half is not None
    return mean, half


def mean_of_bound(
    returns: np.ndarray,
    bounds: tuple[float, float] | None,
    *,
    variance_reduced: bool = False,
) -> tuple[float, float]:
    """Return the mean of matches, and how far the expectation may be below it.

    The half width is that of Student's t interval. For few matches, which are far from
    normal, it is at least that of Hoeffding's inequality (1963). After variance
    reduction the remaining deviations are rare and may not have occurred yet: with 5%
    probability, deviations of probability about 3 / n did not occur (the rule of three,
    see `mean_and_half_width`), so their largest effect is added.

    Args:
      returns: float64 [n], n at least 2.
      bounds: Least and greatest possible return, if known.
      variance_reduced: Whether a control variate was subtracted.
    """
    mean, half = mean_and_half_width(returns, bounds)
    assert half is not None
    if bounds is not None and len(returns) < _FEW:
        wide = math.sqrt(-math.log(1 - LEVEL) / (2 * len(returns)))
        half = max(half, wide * (bounds[1] - bounds[0]))
    if bounds is not None and variance_reduced:
        half += (1 - 0.05 ** (1 / len(returns))) * (bounds[1] - bounds[0])
    return mean, half
