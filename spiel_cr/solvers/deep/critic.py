"""Critic: player 0's utility after each action, given the information of both players.

One function Q(joint information, action) is the baseline of both players' estimates
(DREAM), or replaces them (ESCHER). It learns by expected SARSA from a buffer of the
newest moves. If the game is over after a move, the target is the utility. Otherwise the
target is the mean of Q over the current strategy of the player who decides next.
"""

import math

import numpy as np

from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep.approximators import Approximator
from spiel_cr.solvers.deep.infosets import ActingInfosets, Knowledge
from spiel_cr.solvers.deep.reservoirs import Replay, Transitions
from spiel_cr.solvers.deep.traversal import Strategy


class Critic:
    """Function Q with its training data.

    Attributes:
      values: Approximator of Q.
      replay: Buffer of the newest moves.
    """

    def __init__(
        self, knowledge: Knowledge, values: Approximator, capacity: int
    ) -> None:
        """Create a critic without moves.

        Args:
          knowledge: Meaning of rows.
          values: Approximator of Q, a function of joint information.
          capacity: Maximum number of moves in the buffer.
        """
        self._knowledge = knowledge
        self.values, self.replay = values, Replay(capacity)

    def __call__(self, joint: np.ndarray) -> np.ndarray:
        """Return player 0's utility after each action, float64 [m, A].

        Args:
          joint: Rows of joint information, [m, ...].
        """
        return self.values.outputs(joint)

    def fit(
        self, strategy: Strategy, schedule: FitSchedule, random: np.random.Generator
    ) -> float:
        """Fit Q to moves drawn from the buffer; return the loss.

        Args:
          strategy: Current strategy of both players.
          schedule: Schedule of steps, and moves per step.
          random: Random number generator, which is advanced.
        """
        if not len(self.replay):  # no match has had a move so far
            return math.nan
        drawn = random.integers(len(self.replay), size=schedule.steps * schedule.batch)
        moves = self.replay.at(drawn)
        count, actions = len(drawn), self._knowledge.num_actions
        target = np.zeros((count, actions), np.float32)
        taken = np.arange(actions) == moves.action[:, None]
        target[taken] = self.targets(strategy, moves)
        targets = Targets(moves.rows, taken, target, np.ones(count))
        return self.values.fit(targets, schedule, random, ordered=True)

    def targets(self, strategy: Strategy, moves: Transitions) -> np.ndarray:
        """Return the target of Q for each move: player 0's utility, float64 [n].

        Args:
          strategy: Current strategy of both players.
          moves: Moves to process.
        """
        target = moves.utility.astype(np.float64)
        for player in range(2):
            continues = np.flatnonzero(moves.player == player)
            if not len(continues):
                continue
            rows, legal = moves.next_rows[continues], moves.next_legal[continues]
            sigma = strategy(
                player, ActingInfosets(self._knowledge.player_rows(rows, player), legal)
            )
            guess = np.where(legal, self(rows), 0)
            target[continues] = (sigma * guess).sum(axis=1)
        return target
