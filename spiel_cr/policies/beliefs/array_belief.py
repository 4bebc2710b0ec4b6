"""A player's belief on arrays of states: all histories, or a limited number.

The same belief as `StatePosterior` on OpenSpiel's states: P(h | s) is proportional to
the probability that chance and the opponent play as in h, over the histories h with the
player's information s. Histories are followed from one decision of the player to its
next one, also through hidden turns of the opponent, and those with other information
are dropped there. If there are more than are kept, they are drawn by weight (systematic
sampling), which preserves every history's expected weight.
"""

import math
import zlib

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import draws
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules, CheckedRules
from spiel_cr.games.simulation.observations import Stage, continues
from spiel_cr.policies.array_queries import row_probabilities
from spiel_cr.policies.beliefs.particles import Belief


class ArrayBelief:
    """The belief of one player, updated along a match.

    If the opponent's policy cannot lead to the player's information, or no kept history
    did, the belief is empty until the end of the match.

    Attributes:
      rules: Batched rules of the game.
      seen_id: A number for the player's information at the last decision.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        rules: BatchedRules,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        most: int,
        seed: int,
    ) -> None:
        """Start at the beginning of a match.

        Args:
          game: A sequential game of two players, for messages.
          rules: Its batched rules, by which the policy is queried.
          player: The player.
          opponent: Policy of the opponent.
          most: Maximum number of histories.
          seed: Seed for sampling histories.
        """
        self.rules = rules
        self._checked = CheckedRules(game, rules)
        self._player, self._most, self._seed = player, most, seed
        self._policy = opponent
        self.restart()

    def restart(self) -> None:
        """Begin a new match."""
        self._stages: list[Stage] = []
        self._beliefs: list[Belief] = []
        self.seen_id = 0

    def at(self, state: pyspiel.State) -> Belief:
        """Return the belief at a decision of the player, in any match.

        Only the player's information and actions are used.

        Returns:
          The belief; without histories, and with `log_reach` -inf, if no kept history
          fits.
        """
        stages = self._stages_to(state)
        if not continues(self._stages, stages):
            self.restart()
        self._stages = stages
        self.seen_id = zlib.crc32(stages[-1].seen[0].encode())
        while len(self._beliefs) < len(stages):
            self._beliefs.append(self._next(stages))
        return self._beliefs[-1]

    def _stages_to(self, state: pyspiel.State) -> list[Stage]:
        """Return the player's information and actions up to a decision."""
        stages, rows = [], self.rules.new_initial_states()
        for action in [*state.history(), None]:
            if self.rules.current_player(rows)[0] == self._player:
                seen = self._checked.rows("information_state", rows, self._player)
                stages.append(Stage((seen.tobytes().hex(),), action))
            if action is not None:
                rows = self.rules.child(rows, np.array([action]))
        return stages

    def _next(self, stages: list[Stage]) -> Belief:
        """Follow the belief to the first decision without one."""
        number = len(self._beliefs)
        seen = stages[number].seen[0]
        wanted = bytes.fromhex(seen)
        key = [self._seed, self._player, number, zlib.crc32(seen.encode())]
        random = np.random.default_rng(key)
        rows, weight = self.rules.new_initial_states(), np.ones(1)
        complete, log_reach = True, 0.0
        if number:
            before, action = self._beliefs[-1], stages[number - 1].action
            assert action is not None
            if not len(before.states):
                return before
            moves = np.full(len(before.states), action)
            rows = self.rules.child(before.states, moves)
            _, weight, complete, log_reach = before
        fitting: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        while len(rows):
            player = self._checked.players(rows)
            decisions = np.flatnonzero(player == self._player)
            decisions = decisions[self._fit(rows[decisions], wanted)]
            fitting.append(rows[decisions])
            weights.append(weight[decisions])
            on = np.flatnonzero((player != self._player) & (player != TERMINAL))
            kept, shares = draws.thin(weight[on], self._most, random)
            complete &= len(kept) == np.count_nonzero(weight[on])
            on = on[kept]
            rows, weight = self._moved(rows[on], player[on], shares)
        states, weight = np.concatenate(fitting), np.concatenate(weights)
        kept, shares = draws.thin(weight, self._most, random)
        complete &= len(kept) == np.count_nonzero(weight)
        log_reach += math.log(shares.sum()) if len(kept) else -math.inf
        shares = shares / (shares.sum() or 1.0)
        return Belief(states[kept], shares, complete, log_reach)

    def _fit(self, rows: np.ndarray, wanted: bytes) -> np.ndarray:
        """Return the states with this information of the player, bool [n]."""
        if not len(rows):
            return np.zeros(0, bool)
        seen_id = self._checked.rows("information_state", rows, self._player)
        return (seen_id == np.frombuffer(wanted, np.int64)).all(axis=1)

    def _moved(
        self, rows: np.ndarray, player: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return all moves of chance and the opponent, with positive weights."""
        if not len(rows):
            return rows, weight
        legal = self._checked.legal(rows)
        probabilities = np.zeros(legal.shape)
        draw = player != 1 - self._player
        if draw.any():
            probabilities[draw] = self._checked.chance_probabilities(
                rows[draw], legal[draw]
            )
        acts = np.flatnonzero(~draw)
        if len(acts):
            other = 1 - self._player
            played = row_probabilities(
                self._policy, self.rules, rows[acts], other, legal[acts]
            )
            probabilities[acts] = played / played.sum(axis=1, keepdims=True)
        parent, action = np.nonzero(probabilities)
        return self.rules.child(rows[parent], action), (
            weight[parent] * probabilities[parent, action]
        )
