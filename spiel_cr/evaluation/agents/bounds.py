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

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import best_values, first_actions
from spiel_cr.policies.conversions import reach_from_behaviour

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


def total_bounds(parts: Sequence[ValueBounds]) -> ValueBounds:
    """Return the bounds of the sum of values with independent answers."""
    lower, upper, *errors = zip(*parts, strict=True)
    return ValueBounds(sum(lower), sum(upper), *(math.hypot(*each) for each in errors))


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
        self._decisions = tree.decisions[player]
        self._agent = tree.decisions[1 - player]
        histories, owner = tree.histories, self._agent.owner
        self._is_queried = np.append(True, queried[owner[1:]])[:, None]
        payoffs = (1 - 2 * player) * histories.chance * histories.utility
        rows, columns = histories.sequence[[player, 1 - player]]
        shape = self._decisions.num_sequences, self._agent.num_sequences
        self._complete = sparse.csr_matrix((payoffs, (rows, columns)), shape)
        # The histories that follow answers alone, and those where answers are missing.
        above = reach_from_behaviour(self._agent, self._is_queried[:, 0] * 1.0)[columns]
        acts = histories.player == 1 - player
        missing = acts & ~queried[np.where(acts, histories.infoset, 0)]
        payoffs = above * np.where(missing, open_card_payoffs(tree, player), payoffs)
        self._optimistic = sparse.csr_matrix((payoffs, (rows, columns)), shape)

    def best_values(self, behaviour: np.ndarray) -> np.ndarray:
        """Return upper bounds of best-response values, float64 [R].

        From infosets on at which the agent was not queried, both players act for the
        responder, with open cards.
        """
        total = self._optimistic @ reach_from_behaviour(self._agent, behaviour)
        best_values(self._decisions, total)
        return np.asarray(total[0])

    def response_values(self, fitted: np.ndarray, scored: np.ndarray) -> np.ndarray:
        """Return the values of responses that were found against other strategies.

        At infosets at which the agent was not queried, it acts against the responder.

        Args:
          fitted: Strategies to which the player responds, float64 [S', R].
          scored: Strategies against which the responses play, float64 [S', R].

        Returns:
          float64 [R].
        """
        total = self._complete @ reach_from_behaviour(self._agent, fitted)
        best = best_values(self._decisions, total)[self._decisions.owner[1:]]
        response = first_actions(self._decisions, total[1:] == best)
        reach = reach_from_behaviour(self._decisions, response)
        loss = -(self._complete.T @ reach)
        best_values(self._agent, loss, np.where(self._is_queried, scored, np.nan))
        return np.asarray(-loss[0])


def open_card_payoffs(tree: GameTree, player: int) -> np.ndarray:
    """Return a player's payoffs if both players act for it, with open cards.

    Returns:
      Expected utility at each history, times its chance probability, float64 [N].
    """
    histories = tree.histories
    value: np.ndarray = (1 - 2 * player) * histories.chance * histories.utility
    for depth in reversed(histories.by_depth[1:]):
        parent = histories.parent[depth]
        begin = np.flatnonzero(np.append(True, np.diff(parent) != 0))
        above = parent[begin]
        value[above] = np.where(
            histories.player[above] == CHANCE,
            np.add.reduceat(value[depth], begin),
            np.maximum.reduceat(value[depth], begin),
        )
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
        lower = responder.response_values(answers.T, answers.T)
        return ValueBounds(float(lower[0]), float(upper[0]), 0.0, 0.0)

    def means(used: np.ndarray) -> np.ndarray:
        """Return the frequencies of the answers that each column of [K, R] uses."""
        return (answers.T @ used) / used.sum(axis=0)

    # Column 0 uses all answers, and column j + 1 leaves answer j out.
    used = np.column_stack([np.ones(count), 1 - np.eye(count)])
    upper = responder.best_values(means(used))
    scores = np.full((FOLDS, count + 1), np.nan)
    for fold in range(FOLDS):
        held = used * (np.arange(count) % FOLDS == fold)[:, None]
        usable = held.any(axis=0)
        fits, held = means((used - held)[:, usable]), means(held[:, usable])
        scores[fold, usable] = responder.response_values(fits, held)
    lower = np.nanmean(scores, axis=0)
    # Standard errors of the jackknife.
    errors = (np.sqrt((count - 1) * np.var(v[1:])) for v in (lower, upper))
    return ValueBounds(float(lower[0]), float(upper[0]), *map(float, errors))
