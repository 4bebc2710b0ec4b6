"""Values of continuations by rollouts, of games that are not compiled.

In a rollout chance moves as it does, i as its blueprint says, and o as one of its
biased continuations. The rollouts of a history use the same random numbers for all of
them, so that their differences are less noisy than they are. The noise that is left
favours the opponent: it chooses what looks best.
"""

from collections.abc import Mapping

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.compilation import game_checks
from spiel_cr.compilation.vectorised import VectorisedGame
from spiel_cr.policies.leaf_values import play_arrays

# What a biased action's probability is multiplied by, and after all actions had their
# turn by the square of it, and so on (Brown et al.: 5 for calls, 10 for folds, raises).
BIAS = 10.0
# States of arrays that are played at a time, about.
_AT_ONCE = 1 << 14


def bias_of(number: int, most: int) -> tuple[int, float]:
    """Which action the j-th biased strategy prefers, from 0, and by what factor.

    Args:
      number: j, from 1.
      most: the most actions that a game has.
    """
    power, action = divmod(number - 1, most)
    return action, BIAS ** (1 + power)


class Rollouts:
    """Plays the rest of a game by a blueprint and its biased versions."""

    def __init__(
        self, policy: openspiel_policy.Policy, k: int, n: int, seed: int
    ) -> None:
        """Prepares.

        Args:
          policy: the blueprint of both players. To play on arrays of states it must be
            a `TabularPolicy`, of rules that give information-state strings, or have a
            method `array_probabilities(rules, states, player)`, float64 [L, A].
          k: continuations; the first is the blueprint.
          n: rollouts per history and continuation.
          seed: of one stream of random numbers, which goes on from call to call.
        """
        self._policy, self._k, self._n = policy, k, n
        self._seed, self._random = seed, np.random.default_rng(seed)
        self._most = int(policy.game.num_distinct_actions())

    def draw_from(self, number: int, /) -> None:
        """See `policies.leaf_values.Drawn`."""
        self._random = np.random.default_rng([self._seed, number])

    def values(
        self, game: VectorisedGame | pyspiel.Game, histories: np.ndarray, player: int
    ) -> np.ndarray:
        """float64 [L, k], as of `policies.leaf_values.ChoiceValues`."""
        total, left = np.zeros((len(histories), self._k)), self._n
        while left:
            if isinstance(game, pyspiel.Game):
                copies = 1
                total += self._play_states(histories, player)
            else:
                rows = len(histories) * self._k
                copies = min(left, max(1, _AT_ONCE // max(rows, 1)))
                many = np.repeat(histories, copies, axis=0)
                found = self._play_arrays(game, many, player)
                total += found.reshape(-1, copies, self._k).sum(axis=1)
            left -= copies
        return total / self._n

    def _play_arrays(
        self, rules: VectorisedGame, histories: np.ndarray, player: int
    ) -> np.ndarray:
        """float64 [L, k], player 0's utility of one rollout each."""
        count, k = len(histories), self._k

        def weigh(
            states: np.ndarray, acts: np.ndarray, live: np.ndarray, odds: np.ndarray
        ) -> None:
            for actor in range(2):
                rows = np.flatnonzero(acts == actor)
                if not len(rows):
                    continue
                legal = odds[rows] > 0
                played = on_arrays(self._policy, rules, states[rows], actor, legal)
                if actor != player:
                    played *= self._factors(live[rows] % k, legal)
                odds[rows] = played

        def draw(live: np.ndarray) -> np.ndarray:
            numbers: np.ndarray = self._random.random(count)[live // k]
            return numbers

        states = np.repeat(histories, k, axis=0)
        return play_arrays(rules, states, draw, weigh).reshape(count, k)

    def _factors(self, numbers: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """float64 [n, A], what continuations multiply actions' probabilities by."""
        factors = np.ones(legal.shape)
        place = np.cumsum(legal, axis=1) - 1
        for j in range(1, self._k):
            rows = np.flatnonzero(numbers == j)
            action, factor = bias_of(j, self._most)
            factors[rows] = np.where(place[rows] == action, factor, 1.0)
        return factors

    def _play_states(self, histories: np.ndarray, player: int) -> np.ndarray:
        """float64 [L, k], player 0's utility of one rollout each."""
        utility = np.zeros((len(histories), self._k))
        for row, state in enumerate(histories):
            seed = int(self._random.integers(2**63))
            for j in range(self._k):
                random = np.random.default_rng(seed)
                utility[row, j] = self._play(state.clone(), player, j, random)
        return utility

    def _play(
        self,
        state: pyspiel.State,
        player: int,
        number: int,
        random: np.random.Generator,
    ) -> float:
        while not state.is_terminal():
            odds: Mapping[int, float]
            if state.is_chance_node():
                odds = dict(game_checks.chance_outcomes(state))
            else:
                odds = self._policy.action_probabilities(state)
                if state.current_player() != player and number:
                    action, factor = bias_of(number, self._most)
                    odds = {
                        move: p * (factor if place == action else 1.0)
                        for place, (move, p) in enumerate(sorted(odds.items()))
                    }
            moves = sorted(odds)
            ends = np.cumsum([odds[move] for move in moves])
            drawn = np.searchsorted(ends, random.random() * ends[-1], "right")
            state.apply_action(moves[min(int(drawn), len(moves) - 1)])
        return float(game_checks.player_return(state, 0))


def on_arrays(
    policy: openspiel_policy.Policy,
    rules: VectorisedGame,
    states: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> np.ndarray:
    """float64 [n, A], a policy's probabilities; legal actions alike where it has none.

    Raises:
      ValueError: the policy cannot be asked for arrays of states.
    """
    ask = getattr(policy, "array_probabilities", None)
    strings = getattr(rules, "information_state_strings", None)
    width = legal.shape[1]
    if ask is not None:
        known = np.asarray(ask(rules, states, player), np.float64)
    elif strings is not None and isinstance(policy, openspiel_policy.TabularPolicy):
        lookup = policy.state_lookup
        information = rules.information_state(states, player).reshape(len(states), -1)
        _, first, same = np.unique(
            information, axis=0, return_index=True, return_inverse=True
        )
        texts = strings(states[first], player)
        rows = np.array([lookup.get(text, -1) for text in texts])[same.reshape(-1)]
        known = np.where(rows[:, None] >= 0, policy.action_probability_array[rows], 0.0)
    else:
        raise ValueError(
            f"the blueprint, a {type(policy).__name__}, cannot be asked for arrays of "
            f"states; give a TabularPolicy, or a policy with array_probabilities"
        )
    played = np.zeros(legal.shape)
    shared = min(width, known.shape[1])
    played[:, :shared] = known[:, :shared]
    played = np.where(legal, np.maximum(played, 0.0), 0.0)
    silent = ~(played.sum(axis=1) > 0)
    played[silent] = legal[silent]
    return played
