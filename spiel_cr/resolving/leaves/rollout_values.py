"""Values of continuations by rollouts, of games that are not compiled.

In a rollout chance moves as it does, i as its blueprint says, and o as one of its
biased continuations. The rollouts of a history go different ways, and all of them where
these are few (`policies.rollouts.rollout_means`). They use the same random numbers
for all continuations, so that their differences are less noisy than they are. The noise
that is left favours the opponent: it chooses what looks best.
"""

import functools
import time
from collections.abc import Mapping

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_iterations
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.leaf_values import AnyGame, HistoryValues
from spiel_cr.policies.queries import LineQueries
from spiel_cr.policies.rollouts import rollout_mean, rollout_means
from spiel_cr.resolving.clock import Cost

# What is added to a biased action's probability before they are normalised, and after
# all actions had their turn the square of it, and so on. Brown et al. multiply by 5 or
# 10; that leaves out what a blueprint, near an equilibrium, hardly ever does: measured
# on 4-card II-goofspiel (docs/explanation/depth-limits.md).
BIAS = 10.0
# Rollouts of arrays that are played at a time, about.
_AT_ONCE = 1 << 16


def bias_of(number: int, most: int) -> tuple[int, float]:
    """Which action the j-th biased strategy prefers, from 0, and what it adds to it.

    Args:
      number: j, from 1.
      most: the most actions that a game has.
    """
    power, action = divmod(number - 1, most)
    return action, BIAS ** (1 + power)


class _OutOfTime(Exception):
    """Rollouts side by side have not come to their end in time."""


class Rollouts(HistoryValues):
    """Plays the rest of a game by a blueprint and its biased versions.

    Attributes:
      k: continuations; the first is the blueprint.
    """

    def __init__(
        self, policy: openspiel_policy.Policy, k: int, n: int, seed: int
    ) -> None:
        """Prepares.

        Args:
          policy: the blueprint of both players. To play on arrays of states it must be
            a `TabularPolicy`, of rules that give information-state strings, or have a
            method `array_probabilities(rules, states, player)`, float64 [L, A].
          k: continuations, at least 1.
          n: rollouts per history and continuation.
          seed: of one stream of random numbers, which goes on from call to call.
        """
        self._policy = policy
        self.k, self._n = check_iterations(k, name="k"), check_iterations(n, name="n")
        self._seed, self._random = seed, np.random.default_rng(seed)
        self._most = int(policy.game.num_distinct_actions())
        # Of a history that is played state by state, or of a move of many on arrays.
        self._cost = Cost()

    def draw_from(self, number: int, /) -> None:
        """Begins random numbers anew from the seed and a number from 0 up."""
        self._random = np.random.default_rng([self._seed, number])

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        most = max(1, _AT_ONCE // (self.k * self._n))
        parts = [
            self.play(game, part, player, np.arange(len(part)))
            for begin in range(0, len(histories), most)
            for part in [histories[begin : begin + most]]
        ]
        return np.concatenate([np.zeros((0, self.k)), *parts])

    def play(
        self,
        game: AnyGame,
        histories: np.ndarray,
        player: int,
        group: np.ndarray,
        deadline: float | None = None,
    ) -> np.ndarray:
        """As `__call__`, all at once, with random numbers that histories share.

        Args:
          game, histories, player: as of `HistoryValues`.
          group: int64 [L], ascending from 0; those of a group have the same numbers.
          deadline: by `time.perf_counter`; None: none, and nothing is measured.
            Histories that there will be no time for, by what was measured, are worth
            NaN: the last ones, or on arrays all of them. So where rollouts differ in
            length, short ones end in time more often.
        """
        assert not isinstance(game, GameTree)
        if isinstance(game, pyspiel.Game):
            return self._play_states(histories, player, group, deadline)
        try:
            return self._play_arrays(game, histories, player, group, deadline)
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
        """float64 [L, k], player 0's mean utility."""
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
        """float64 [n, A], what continuations add to actions' probabilities."""
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
        """float64 [L, k], player 0's mean utility."""
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
        """How likely actions are where o plays one of its continuations."""
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
