"""Confidence bounds of the NashConv of an agent that is known by its answers alone.

Let V_i be the value of a best response of player i to the agent in the other seat, so
that NashConv = V_0 + V_1. The payoff u_i(b, π) of a fixed response b is linear in the
agent's probabilities at each infoset, each infoset occurs once on a path, and answers
are independent. Therefore the mean of u_i(b, π̂) over the answers is u_i(b, π), where
π̂ are the frequencies. Two biases follow: a best response to π̂ has too high a value on
π̂, and a response that was fitted on some answers has, on the others, the expected value
of a response that is not the best one. The upper bound uses the former, and the lower
bound the latter, by cross-validation. Standard errors are those of a jackknife over the
number of the answer: the j-th answer is left out at all infosets at once.

The interval is asymptotic: it covers NashConv with about 95% if there are many answers.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import best_values
from spiel_cr.policies.conversions import move_probabilities, reach_from_behaviour

# Number of folds of the cross-validation, which is the least number of answers for a
# complete set of bounds.
FOLDS = 10
# Quantile of the normal distribution for two-sided intervals of 95%.
_QUANTILE = 1.96


class ValueBounds(NamedTuple):
    """Bounds of the value of best responses to an agent.

    Attributes:
      lower: Mean value of responses on held-out answers.
      upper: Best-response value against the frequencies of all answers.
      lower_error: Standard error of `lower`.
      upper_error: Standard error of `upper`.
    """

    lower: float
    upper: float
    lower_error: float
    upper_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends, with margins of 1.96 standard errors."""
        low = self.lower - _QUANTILE * self.lower_error
        return low, self.upper + _QUANTILE * self.upper_error

    def plus(self, other: "ValueBounds") -> "ValueBounds":
        """Return the bounds of the sum of two values with independent answers."""
        return ValueBounds(
            self.lower + other.lower,
            self.upper + other.upper,
            math.hypot(self.lower_error, other.lower_error),
            math.hypot(self.upper_error, other.upper_error),
        )


class AgentResponder:
    """Values of a player's responses to an agent, for many strategies of it at once.

    Strategies are columns of arrays [S', R] with the probability of each sequence's
    last action. Columns are arbitrary at infosets at which the agent was not queried.
    """

    def __init__(self, tree: GameTree, player: int, queried: np.ndarray) -> None:
        """Compute payoffs by sequences.

        Args:
          tree: The game tree.
          player: The responder.
          queried: Infosets of the agent that have answers, bool [I'].
        """
        self._tree, self._player = tree, player
        self._decisions = tree.decisions[player]
        self._agent = tree.decisions[1 - player]
        histories = tree.histories
        self._unknown = np.zeros(len(histories), bool)
        acts = histories.player == 1 - player
        self._unknown[acts] = ~queried[histories.infoset[acts]]
        ends = np.ones(len(histories), bool)
        utility = (1 - 2 * player) * histories.utility
        self._complete = self._payoffs(utility, ends)
        self._optimistic = self._complete
        if self._unknown.any():
            for depth in histories.by_depth[1:]:
                above = histories.parent[depth]
                ends[depth] = ends[above] & ~self._unknown[above]
            utility = np.where(self._unknown, self.extremes[1], utility)
            self._optimistic = self._payoffs(utility, ends)

    def _payoffs(self, utility: np.ndarray, ends: np.ndarray) -> sparse.csr_matrix:
        """Return utilities times chance probabilities by sequences, [S, S']."""
        histories = self._tree.histories
        at = np.flatnonzero(ends & (utility != 0))
        rows, columns = histories.sequence[[self._player, 1 - self._player]][:, at]
        shape = self._decisions.num_sequences, self._agent.num_sequences
        return sparse.csr_matrix(
            ((utility * histories.chance)[at], (rows, columns)), shape
        )

    @functools.cached_property
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """The responder's least and largest values of histories, float64 [N] each.

        Both players act for or against the responder, with open cards.
        """
        histories = self._tree.histories
        certain = [np.ones(d.num_sequences) for d in self._tree.decisions]
        ratio = np.append(1.0, move_probabilities(self._tree, certain))[:, None]
        utility = (1 - 2 * self._player) * histories.utility[:, None]
        low, high = (
            _backwards(self._tree, utility, ratio, histories.player >= 0, extreme)[:, 0]
            for extreme in (np.minimum, np.maximum)
        )
        return low, high

    def best_values(self, behaviour: np.ndarray) -> np.ndarray:
        """Return upper bounds of best-response values, float64 [R].

        From infosets on at which the agent was not queried, both players act for the
        responder, with open cards.
        """
        total = self._optimistic @ reach_from_behaviour(self._agent, behaviour)
        best_values(self._decisions, total)
        value: np.ndarray = total[0]
        return value

    def responses(self, behaviour: np.ndarray) -> np.ndarray:
        """Return best responses in sequence form, 0 or 1, float64 [S, R]."""
        total = self._complete @ reach_from_behaviour(self._agent, behaviour)
        best = best_values(self._decisions, total)[self._decisions.owner[1:]]
        # Of equally good actions, the first one is played.
        count = len(best)
        places = np.where(total[1:] == best, np.arange(count)[:, None], count)
        first = np.minimum.reduceat(places, self._decisions.first_sequence - 1)
        behaviour = np.ones(total.shape)
        behaviour[1:] = places == first[self._decisions.owner[1:]]
        return reach_from_behaviour(self._decisions, behaviour)

    def values(self, reach: np.ndarray, behaviour: np.ndarray) -> np.ndarray:
        """Return lower bounds of the values of responses, float64 [R].

        At infosets at which the agent was not queried, it acts against the responder,
        with open cards.

        Args:
          reach: Responses in sequence form, float64 [S, R].
          behaviour: Strategies of the agent, float64 [S', R].
        """
        if not self._unknown.any():
            agent_reach = reach_from_behaviour(self._agent, behaviour)
            value: np.ndarray = np.sum(reach * (self._complete @ agent_reach), axis=0)
            return value
        histories, sign = self._tree.histories, 1 - 2 * self._player
        weight = histories.chance[:, None] * reach[histories.sequence[self._player]]
        utility = sign * histories.utility[:, None] * weight
        ratio = np.ones_like(utility)
        acts = 1 + np.flatnonzero(
            histories.player[histories.parent[1:]] == 1 - self._player
        )
        ratio[acts] = behaviour[histories.sequence[1 - self._player][acts]]
        return _backwards(self._tree, utility, ratio, self._unknown, np.minimum)[0]


def _backwards(
    tree: GameTree,
    utility: np.ndarray,
    ratio: np.ndarray,
    extreme_at: np.ndarray,
    extreme: Any,
) -> np.ndarray:
    """Compute values of histories from those of their children, float64 [N, R].

    Args:
      tree: The game tree.
      utility: Values of terminal histories, float64 [N, R].
      ratio: Weight of each history in the sum of its parent, float64 [N, R].
      extreme_at: Histories whose value is an extreme of those of their children instead
        of a weighted sum, bool [N].
      extreme: `np.minimum` or `np.maximum`.
    """
    value = utility.copy()
    for depth in reversed(tree.histories.by_depth[1:]):
        parent = tree.histories.parent[depth]
        begin = np.flatnonzero(np.append(True, np.diff(parent) != 0))
        sums = np.add.reduceat(value[depth] * ratio[depth], begin)
        best = extreme.reduceat(value[depth], begin)
        above = parent[begin]
        value[above] = np.where(extreme_at[above, None], best, sums)
    return value


def value_bounds(
    tree: GameTree, player: int, answers: np.ndarray, queried: np.ndarray
) -> ValueBounds:
    """Compute bounds of the value of a player's best response to an agent.

    Args:
      tree: The game tree.
      player: The responder.
      answers: The agent's answers as the other player: the probability of each
        sequence's last action, 1 or 0 for moves, float64 [K, S']. A single answer
        holds the agent's true probabilities. Where there are no answers, they are those
        that a response assumes.
      queried: Infosets of the other player that have answers, bool [I'].
    """
    responder = AgentResponder(tree, player, queried)
    count = len(answers)
    if count == 1:
        upper = responder.best_values(answers.T)
        lower = responder.values(responder.responses(answers.T), answers.T)
        return ValueBounds(float(lower[0]), float(upper[0]), 0.0, 0.0)
    # Column 0 leaves nothing out, and column j + 1 leaves out answer j.
    left_out = np.concatenate([np.zeros((1, answers.shape[1])), answers]).T
    number = np.arange(count + 1) > 0
    total = answers.sum(axis=0)[:, None]
    upper = responder.best_values((total - left_out) / (count - number))
    folds = min(FOLDS, count)
    fold_of = np.append(-1, np.arange(count) % folds)
    sums, scored = np.zeros(count + 1), np.zeros(count + 1)
    for fold in range(folds):
        inside = fold_of == fold
        held = answers[fold::folds].sum(axis=0)[:, None] - left_out * inside
        size = len(answers[fold::folds]) - inside
        fits = (total - left_out - held) / (count - number - size)
        usable = size > 0
        values = responder.values(
            responder.responses(fits[:, usable]),
            (held / np.maximum(size, 1))[:, usable],
        )
        sums[usable] += values
        scored += usable
    lower = sums / scored
    return ValueBounds(
        float(lower[0]), float(upper[0]), _jackknife(lower), _jackknife(upper)
    )


def _jackknife(values: np.ndarray) -> float:
    """Return the standard error, from values whose first one leaves nothing out."""
    count = len(values) - 1
    return float(np.sqrt((count - 1) * np.var(values[1:])))
