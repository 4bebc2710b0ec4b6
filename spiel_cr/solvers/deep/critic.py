"""The critic: player 0's utility after each action where both hands are known.

One function Q(joint information, action) serves as the baseline of both players'
estimates (DREAM), or in their place (ESCHER). It learns by expected SARSA on a buffer
of the newest moves: the target of a move is the utility where the game is over, else
the mean of Q over the current strategy of whoever decides next.
"""

import math

import numpy as np

from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep.approximators import Approximator
from spiel_cr.solvers.deep.infosets import Knowledge, Seen
from spiel_cr.solvers.deep.reservoirs import Replay, Transitions
from spiel_cr.solvers.deep.traversal import Strategy


class Critic:
    """Q, and what it learns from.

    Attributes:
      values: Q.
      replay: the newest moves.
    """

    def __init__(
        self, knowledge: Knowledge, values: Approximator, capacity: int
    ) -> None:
        """Knows nothing.

        Args:
          knowledge: what rows stand for.
          values: Q, of joint information.
          capacity: moves to learn from.
        """
        self._knowledge = knowledge
        self.values, self.replay = values, Replay(capacity)

    def __call__(self, joint: np.ndarray) -> np.ndarray:
        """float64 [m, A], player 0's utility after each action.

        Args:
          joint: rows [m, ...] of joint information.
        """
        return self.values.outputs(joint)

    def fit(
        self, strategy: Strategy, plan: FitSchedule, random: np.random.Generator
    ) -> float:
        """Learns from moves drawn from the buffer; returns the loss.

        Args:
          strategy: of both players, current.
          plan: steps, and moves per step.
          random: advanced.
        """
        if not len(self.replay):  # no match has had a move yet
            return math.nan
        drawn = random.integers(len(self.replay), size=plan.steps * plan.batch)
        moves = self.replay.at(drawn)
        count, actions = len(drawn), self._knowledge.num_actions
        target = np.zeros((count, actions), np.float32)
        taken = np.arange(actions) == moves.action[:, None]
        target[taken] = self.targets(strategy, moves)
        targets = Targets(moves.rows, taken, target, np.ones(count))
        return self.values.fit(targets, plan, random, ordered=True)

    def targets(self, strategy: Strategy, moves: Transitions) -> np.ndarray:
        """float64 [n], player 0's utility after each move, as it is learned.

        Args:
          strategy: of both players.
          moves: to be told about.
        """
        target = moves.utility.astype(np.float64)
        for player in range(2):
            goes_on = np.flatnonzero(moves.player == player)
            if not len(goes_on):
                continue
            rows, legal = moves.next_rows[goes_on], moves.next_legal[goes_on]
            sigma = strategy(
                player, Seen(self._knowledge.player_rows(rows, player), legal)
            )
            guess = np.where(legal, self(rows), 0)
            target[goes_on] = (sigma * guess).sum(axis=1)
        return target
