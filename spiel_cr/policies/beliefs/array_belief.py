"""What a player believes, on arrays of states: every history, or as many as are kept.

The same belief as that on OpenSpiel's states (`StatePosterior`): P(h | s) is
proportional to the probability that chance and the opponent play as in h, over the
histories h that give the player what it knows at s. Belief are followed from one
decision of the player to its next one, whatever the opponent does in between, in hidden
turns, too; those that do not fit what the player knows are dropped there. Where there
are more than are kept, they are drawn by weight (systematic sampling), which keeps
every history's expected weight.
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
from spiel_cr.policies.array_answers import on_arrays
from spiel_cr.policies.beliefs.particles import Belief


class ArrayBelief:
    """The belief of one player, kept up to date along a match.

    Where the opponent's policy cannot have led to what the player knows, or none of the
    histories that were kept did, there are no histories to the end of the match.

    Attributes:
      rules: of the game.
      seen_id: a number for what the player knew at the last decision that was
        asked for.
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
        """Knows nothing yet.

        Args:
          game: sequential, two players; for messages.
          rules: its batched rules, by which the policy can be asked.
          player: whose belief.
          opponent: its policy.
          most: histories that are kept.
          seed: of those that are drawn.
        """
        self.rules = rules
        self._checked = CheckedRules(game, rules)
        self._player, self._most, self._seed = player, most, seed
        self._policy = opponent
        self.restart()

    def restart(self) -> None:
        """A new match."""
        self._stages: list[Stage] = []
        self._beliefs: list[Belief] = []
        self.seen_id = 0

    def at(self, state: pyspiel.State) -> Belief:
        """The belief at a decision of the player, in any match.

        Only what the player knew and did there is used.

        Returns:
          It; without histories, and `log_reach` -inf, where nothing that was kept fits.
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
        """What the player knew and did on the way to its decision at a state."""
        stages, rows = [], self.rules.new_initial_states()
        for action in [*state.history(), None]:
            if self.rules.current_player(rows)[0] == self._player:
                seen = self._checked.rows("information_state", rows, self._player)
                stages.append(Stage((seen.tobytes().hex(),), action))
            if action is not None:
                rows = self.rules.child(rows, np.array([action]))
        return stages

    def _next(self, stages: list[Stage]) -> Belief:
        """Follows the belief to the first decision that is not known yet."""
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
        """bool [n], the states at which the player knows this."""
        if not len(rows):
            return np.zeros(0, bool)
        seen_id = self._checked.rows("information_state", rows, self._player)
        return (seen_id == np.frombuffer(wanted, np.int64)).all(axis=1)

    def _moved(
        self, rows: np.ndarray, player: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """All that chance and the opponent may do, with weights above 0."""
        if not len(rows):
            return rows, weight
        legal = self._checked.legal(rows)
        probabilities = np.zeros(legal.shape)
        draw = player != 1 - self._player
        if draw.any():
            probabilities[draw] = self._checked.odds(rows[draw], legal[draw])
        acts = np.flatnonzero(~draw)
        if len(acts):
            other = 1 - self._player
            played = on_arrays(self._policy, self.rules, rows[acts], other, legal[acts])
            probabilities[acts] = played / played.sum(axis=1, keepdims=True)
        parent, action = np.nonzero(probabilities)
        return self.rules.child(rows[parent], action), (
            weight[parent] * probabilities[parent, action]
        )
