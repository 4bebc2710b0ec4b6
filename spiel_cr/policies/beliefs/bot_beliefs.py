"""Beliefs of a re-solving or search bot at one of its decisions."""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np

# Parts of information-state strings that are compared to shorten them.
_PARTS = re.compile(r"\[[^\]]*\]|[^\[\]\s]+")


@dataclasses.dataclass(frozen=True, repr=False)
class BotBeliefs:
    """Ranges, counterfactual values and the quality of the last solve of a bot.

    The keys of ranges and values are information-state strings at the decision. In
    public-tree form, they are names of private states.

    Attributes:
      player: The bot's player, 0 or 1.
      opponent_range: Probability of each information state of the opponent, given the
        bot's information (Bayes' rule). The opponent's strategy is that of the bot's
        solves, or of the blueprint if the bot has one. If that strategy never leads to
        the decision, the opponent is assumed to play uniformly. None: the game has no
        information states of players that do not act, or the solver samples.
      player_range: Probability of each of the bot's information states at the public
        state, proportional to the reach of chance and of the bot: the view of an
        observer who knows the bot's strategy and the public actions. None: the bot does
        not use public states.
      counterfactual_values: The bot's expected utility if the opponent is in each
        information state at the root of the last subgame, in the units of the game's
        payoffs. These are the values that the gadget of the subgame protects: the
        opponent's counterfactual values in the solve above, with the opposite sign,
        divided by the reach of chance and the bot. After few iterations they may exceed
        the payoffs. None: the subgame is the complete game, the bot never leads to it,
        or the bot has no such values.
      nash_conv: NashConv of the last solve in its gadget game, in the units of the
        game's payoffs, divided by the reach of chance and the bot. None: the bot did
        not solve the subgame, or not by a full-width algorithm.
      sampled: Whether `opponent_range` is estimated from sampled histories.
    """

    player: int
    opponent_range: dict[str, float] | None = None
    player_range: dict[str, float] | None = None
    counterfactual_values: dict[str, float] | None = None
    nash_conv: float | None = None
    sampled: bool = False

    def __repr__(self) -> str:
        """Return a table with shortened information states."""
        lines = [f"beliefs of player {self.player}, values in its utility"]
        for title, numbers in (
            ("opponent's range", self.opponent_range),
            ("own range", self.player_range),
            ("counterfactual values", self.counterfactual_values),
        ):
            lines.append(f"{title}: {'not available' if numbers is None else ''}")
            for label, number in zip(
                short_labels(list(numbers or ())), (numbers or {}).values(), strict=True
            ):
                lines.append(f"  {label:<24} {number:8.4f}")
        if self.nash_conv is not None:
            lines.append(f"NashConv of the last subgame: {self.nash_conv:.3g}")
        return "\n".join(line.rstrip() for line in lines)


def short_labels(labels: Sequence[str]) -> list[str]:
    """Return the parts of information-state strings in which they differ."""
    parts = [_PARTS.findall(label) for label in labels]
    if len(parts) < 2 or len({len(row) for row in parts}) != 1:
        return list(labels)
    kept = [
        k for k, column in enumerate(zip(*parts, strict=True)) if len({*column}) > 1
    ]
    return [" ".join(row[k] for k in kept) for row in parts]


def distribution_of(labels: Sequence[str], weights: np.ndarray) -> dict[str, float]:
    """Add up the weights of equal labels, and normalise them.

    Args:
      labels: Labels [n].
      weights: Weights that are at least 0, float64 [n]; not all are 0.
    """
    total = float(weights.sum())
    return {key: weight / total for key, weight in sums_of(labels, weights).items()}


def sums_of(labels: Sequence[str], weights: np.ndarray) -> dict[str, float]:
    """Return the sum of the weights of each label, in the order of the labels."""
    sums: dict[str, float] = {}
    for label, weight in zip(labels, weights.tolist(), strict=True):
        sums[label] = sums.get(label, 0.0) + weight
    return dict(sorted(sums.items()))
