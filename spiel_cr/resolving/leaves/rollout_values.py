"""Leaf values of continuation strategies by rollouts, for games that are not built.

In a rollout chance follows its probabilities, the re-solving player i follows its
blueprint, and the opponent o follows one of its continuation strategies: versions of
the blueprint that are biased towards one action. The rollouts of one history are spread
over different paths; if there are few paths, all of them are visited
(`policies.rollouts.rollout_means`). All continuation strategies use the same random
numbers, which reduces the noise of their differences. The remaining noise favours the
opponent, because it chooses the largest estimate.
"""

import functools
import time
from collections.abc import Mapping
from typing import cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_iterations
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.policies.array_queries import LineQueries
from spiel_cr.policies.leaf_values import AnyGame, HistoryValues
from spiel_cr.policies.rollouts import rollout_mean, rollout_means
from spiel_cr.resolving.clock import Cost

# Bonus that is added to the preferred action's probability before normalisation. If
# there are more continuation strategies than actions, the second one for an action has
# the square of it, and so on. Brown et al. multiply the probability by 5 or 10 instead.
# A product hardly changes actions that a blueprint near an equilibrium almost never
# plays (results on 4-card II-goofspiel: docs/explanation/depth-limits.md).
BIAS = 10.0
# Approximate number of rollouts that one batch on batched rules plays.
_AT_ONCE = 1 << 16


def bias_of(number: int, most: int) -> tuple[int, float]:
    """Return the action that a biased continuation strategy prefers, and its bonus.

    Args:
      number: Number j of the continuation strategy, from 1; 0 is the blueprint.
      most: Largest number of actions of any infoset.

    Returns:
      The index of the action among the legal ones, from 0, and the number that is added
      to its probability before the probabilities are normalised.
    """
    power, action = divmod(number - 1, most)
    return action, BIAS ** (1 + power)


class _OutOfTime(Exception):
    """Error: a batch of rollouts cannot be finished by its deadline."""


class Rollouts(HistoryValues):
    """Leaf values by rollouts of a blueprint and its biased versions.

    Attributes:
      k: Number of continuation strategies; the first is the blueprint.
    """

    def __init__(
        self, policy: openspiel_policy.Policy, k: int, n: int, seed: int
    ) -> None:
        """Store the blueprint and the settings.

        Args:
          policy: Blueprint of both players. For use with batched rules it must be a
            `TabularPolicy`, with rules that compute information-state strings, or have
            a method `array_probabilities(rules, states, player)` that returns float64
            [L, A].
          k: Number of continuation strategies, at least 1.
          n: Number of rollouts per history and continuation strategy, at least 1.
          seed: Seed of the random numbers; each call continues the same stream.
        """
        self._policy = policy
        self.k, self._n = check_iterations(k, name="k"), check_iterations(n, name="n")
        self._seed, self._random = seed, np.random.default_rng(seed)
        self._most = int(policy.game.num_distinct_actions())
        # Duration per history with OpenSpiel states, per move of a batch with rules.
        self._cost = Cost()

    def draw_from(self, number: int, /) -> None:
        """Restart the random numbers from the seed and a non-negative number."""
        self._random = np.random.default_rng([self._seed, number])

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        rules = cast(BatchedRules | None, game)
        most = max(1, _AT_ONCE // (self.k * self._n))
        parts = [
            self.play(rules, part, player, np.arange(len(part)))
            for begin in range(0, len(histories), most)
            for part in [histories[begin : begin + most]]
        ]
        return np.concatenate([np.zeros((0, self.k)), *parts])

    def play(
        self,
        rules: BatchedRules | None,
        histories: np.ndarray,
        player: int,
        group: np.ndarray,
        deadline: float | None = None,
    ) -> np.ndarray:
        """Compute values like `__call__`, in one batch, with random numbers by group.

        Args:
          rules: Batched rules; None for OpenSpiel's states.
          histories: States of the histories, [L, ...], see `HistoryValues`.
          player: The re-solving player; the opponent has the continuation strategies.
          group: Group of each history, int64 [L], ascending from 0. Histories of a
            group use the same random numbers.
          deadline: Deadline by `time.perf_counter`. None: none, and no time is
            measured.

        Returns:
          Player 0's mean utility, float64 [L, k]. Histories for which the measured
          speed
          leaves no time have NaN: with OpenSpiel states the last ones, with batched
            rules
          all of them. If rollouts differ in length, short ones are therefore more
          likely to be finished.
        """
        if rules is None:
            return self._play_states(histories, player, group, deadline)
        try:
            return self._play_arrays(rules, histories, player, group, deadline)
        except _OutOfTime:
            return np.full((len(histories), self.k), np.nan)

    def _play_arrays(
        self,
        rules: BatchedRules,
        histories: np.ndarray,
        player: int,
        group: np.ndarray,
        deadline: float | None,
    ) -> np.ndarray:
        """Play on batched rules; return player 0's mean utility, float64 [L, k].

        Raises:
          _OutOfTime: If the measured speed leaves no time for the next move.
        """
        count, k = len(histories), self.k
        last: tuple[int, float] | None = None
        fixed, each = (0.0, 0.0) if deadline is None else self._cost.line
        answers = LineQueries(self._policy, count * k, single=self._n == 1)

        def weigh(
            states: np.ndarray,
            acts: np.ndarray,
            origin: np.ndarray,
            probabilities: np.ndarray,
        ) -> None:
            nonlocal last
            if deadline is not None:
                now = time.perf_counter()
                if last is not None:
                    self._cost.add(last[0], now - last[1])
                last = len(states), now
                if now + fixed + len(states) * each > deadline:
                    self._cost.fade()
                    raise _OutOfTime
            for actor in range(2):
                rows = np.flatnonzero(acts == actor)
                if not len(rows):
                    continue
                legal = probabilities[rows] > 0
                played = answers(rules, states[rows], origin[rows], actor, legal)
                if actor != player:
                    played /= played.sum(axis=1, keepdims=True)
                    played += self._biases(origin[rows] % k, legal)
                probabilities[rows] = played

        def draw(origin: np.ndarray) -> np.ndarray:
            return self._random.random(count)[group[origin // k]]

        states = np.repeat(histories, k, axis=0)
        return rollout_means(rules, states, self._n, draw, weigh).reshape(count, k)

    def _biases(self, numbers: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """Return the bonuses of actions under continuation strategies, float64 [n, A].

        Args:
          numbers: Number of the continuation strategy of each row, int64 [n].
          legal: Whether each action is legal, bool [n, A].
        """
        biases = np.zeros(legal.shape)
        place = np.cumsum(legal, axis=1) - 1
        for j in range(1, self.k):
            rows = np.flatnonzero(numbers == j)
            action, bias = bias_of(j, self._most)
            chosen = legal[rows] & (place[rows] == action)
            biases[rows] = np.where(chosen, bias, 0.0)
        return biases

    def _play_states(
        self,
        histories: np.ndarray,
        player: int,
        group: np.ndarray,
        deadline: float | None,
    ) -> np.ndarray:
        """Play on OpenSpiel states; return player 0's mean utility, float64 [L, k]."""
        utility = np.full((len(histories), self.k), np.nan)
        begins = np.diff(group, prepend=-1) > 0
        for row, state in enumerate(histories):
            started = time.perf_counter()
            if deadline is not None and started + sum(self._cost.line) > deadline:
                self._cost.fade()
                break
            if begins[row]:
                seed = int(self._random.integers(2**63))
            for j in range(self.k):
                draw = np.random.default_rng(seed).random
                weights_of = functools.partial(self._weights, player=player, number=j)
                utility[row, j] = rollout_mean(state, self._n, draw, weights_of)
            if deadline is not None:
                self._cost.add(1, time.perf_counter() - started)
        return utility

    def _weights(
        self, state: pyspiel.State, *, player: int, number: int
    ) -> Mapping[int, float]:
        """Return unnormalised probabilities of the legal actions or chance outcomes.

        Args:
          state: A non-terminal state.
          player: The re-solving player, which follows the blueprint.
          number: Number of the opponent's continuation strategy.
        """
        if state.is_chance_node():
            return dict(game_checks.chance_outcomes(state))
        listed = self._policy.action_probabilities(state)
        weights = {move: listed.get(move, 0.0) for move in state.legal_actions()}
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1.0)
        if state.current_player() == player or not number:
            return weights
        action, bias = bias_of(number, self._most)
        return {
            move: p + (bias if place == action else 0.0)
            for place, (move, p) in enumerate(weights.items())
        }
