"""Rollouts: cached queries of policies, play to the end of a game, and mean utilities.

`play_on` plays chance and all players except a searching responder, for ISMCTS-BR,
local best response and episodes of learning. `rollout_means` and `rollout_mean`
estimate utilities at leaves of a lookahead.
"""

import bisect
import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.draws import choose
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.policies.queries import shares_at

# Largest number of information states whose answers are cached, for each player.
REMEMBERED = 200_000


class LegalProbabilities(NamedTuple):
    """A policy's answer at one information state.

    Attributes:
      actions: Actions of positive probability.
      probabilities: Probability of each; they sum to 1.
      cumulative: Cumulative probabilities: u in [0, 1) draws the first action whose end
        is above u. The last one is 1.
      by_action: Probabilities by action, which must not be changed.
    """

    actions: list[int]
    probabilities: list[float]
    cumulative: list[float]
    by_action: dict[int, float]


def by_legal_actions(policy: openspiel_policy.Policy) -> bool:
    """Return whether a policy depends on the legal actions alone, as fixed policies do.

    Args:
      policy: Any policy. Policies of spiel_cr have an attribute of this name.
    """
    uniform = type(policy) is openspiel_policy.UniformRandomPolicy
    return bool(getattr(policy, "by_legal_actions", uniform))


class Answers:
    """A policy that is queried once for each information state of its player.

    Policies that depend on the legal actions alone (uniform and fixed policies) are
    cached by these, without computing a state's string.
    """

    def __init__(self, policy: openspiel_policy.Policy, player: int) -> None:
        """Start with an empty cache.

        Args:
          policy: A policy that depends on the player's information states only.
          player: The player.
        """
        self._policy = policy
        self._player = player
        self._by_legal_actions = by_legal_actions(policy)
        self._answers: dict[str | tuple[int, ...], LegalProbabilities] = {}

    def __call__(self, state: pyspiel.State) -> LegalProbabilities:
        """Return the policy's answer at a state where its player acts."""
        if self._by_legal_actions:
            key: str | tuple[int, ...] = tuple(state.legal_actions())
        else:
            key = state.information_state_string(self._player)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= REMEMBERED:
                self._answers.clear()
            answer = self._answers[key] = self._ask(state)
        return answer

    def draw(self, state: pyspiel.State, number: float) -> int:
        """Return the action that a number in [0, 1) draws."""
        actions, _, cumulative, _ = self(state)
        return actions[bisect.bisect_right(cumulative, number)]

    def _ask(self, state: pyspiel.State) -> LegalProbabilities:
        if type(self._policy) is openspiel_policy.UniformRandomPolicy:
            # If the legal actions differ at most states, this branch is used often.
            legal = state.legal_actions()
            count = len(legal)
            same = [1 / count] * count
            cumulative = [(place + 1) / count for place in range(count)]
            return LegalProbabilities(
                legal, same, cumulative, dict.fromkeys(legal, 1 / count)
            )
        listed = self._policy.action_probabilities(state, self._player)
        played = shares_at(listed, state, "opponent: its policy")
        pairs = zip(state.legal_actions(), played, strict=True)
        chosen = [(action, share) for action, share in pairs if share > 0]
        probabilities = [p for _, p in chosen]
        cumulative = list(itertools.accumulate(probabilities))
        # Random numbers are below 1, so the last end is set to 1 in spite of rounding.
        cumulative[-1] = 1.0
        return LegalProbabilities(
            [a for a, _ in chosen], probabilities, cumulative, dict(chosen)
        )


def moves(state: pyspiel.State, answers: Answers) -> dict[int, float]:
    """Return possible actions and probabilities where chance or a known policy acts.

    The result must not be changed.
    """
    if state.is_chance_node():
        return dict(chance_outcomes(state))
    return answers(state).by_action


def play_on(
    state: pyspiel.State, answers: Mapping[int, Answers], number: Callable[[], float]
) -> int:
    """Play chance and some players until another player acts, or to the end.

    Args:
      state: The state, which is changed.
      answers: Policies by player; a player without one stops the play.
      number: Source of uniform numbers in [0, 1), one for each move.

    Returns:
      The player that acts, or `TERMINAL`.
    """
    while True:
        mover: int = state.current_player()
        if mover >= 0:
            if mover not in answers:
                return mover
            actions, _, cumulative, _ = answers[mover](state)
            state.apply_action(actions[bisect.bisect_right(cumulative, number())])
        elif mover == TERMINAL:
            return mover
        else:
            # The action is not checked, because in card games a check takes as long as
            # the draw.
            state.apply_action(draw_outcome(state.chance_outcomes(), number()))


def uniform_numbers(random: np.random.Generator) -> Callable[[], float]:
    """Return a source of uniform numbers in [0, 1), which draws blocks for speed.

    Args:
      random: Random generator, advanced a block at a time.
    """

    blocks = (random.random(1024).tolist() for _ in itertools.count())
    return itertools.chain.from_iterable(blocks).__next__


def draw_outcome(outcomes: Sequence[tuple[int, float]], number: float) -> int:
    """Return the action of (action, probability) that a number in [0, 1) draws.

    The result always has positive probability.
    """
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return action
    # The probabilities may round to less than 1.
    return max(outcomes, key=lambda outcome: outcome[1])[0]


def generator_at(seed: int, state: pyspiel.State, player: int) -> np.random.Generator:
    """Return the random generator of an information state, the same at every visit."""
    key = state.information_state_string(player).encode()
    return np.random.default_rng([seed, player, 0, zlib.crc32(key)])


def rollout_means(
    rules: BatchedRules,
    states: np.ndarray,
    n: int,
    draw: Callable[[np.ndarray], np.ndarray],
    weigh: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None],
) -> np.ndarray:
    """Estimate mean utilities of many states by n rollouts each.

    The rollouts of a state are sampled together: all continuations are followed,
    weighted by their probabilities, as long as there are at most n. If there are more,
    n of them are drawn by systematic resampling (Kitagawa 1996). Means are therefore
    unbiased, and exact if there are never more than n continuations.

    Args:
      rules: Batched rules of the game.
      states: States of these rules, [L, ...].
      n: Rollouts of each state.
      draw: Function from ascending numbers of states, int64 [m], to numbers in [0, 1),
        float64 [m].
      weigh: Function `weigh(states, player, rows, weights)` that may change the weights
        of actions, float64 [r, A], which are 1 for legal actions of players; `rows` are
        the numbers of the states from which these come.

    Returns:
      Player 0's mean utility, float64 [L].
    """
    count = len(states)
    total = np.zeros(count)
    rows, weight = np.arange(count), np.ones(count)
    while len(rows):
        player = rules.current_player(states)
        over = player == TERMINAL
        if over.any():
            utility = rules.returns(states[over])
            total += np.bincount(rows[over], weight[over] * utility, count)
            states, player = states[~over], player[~over]
            rows, weight = rows[~over], weight[~over]
            if not len(rows):
                break
        weights = rules.legal_actions_mask(states).astype(np.float64)
        draws = player == CHANCE
        if draws.any():
            weights[draws] *= rules.chance_probabilities(states[draws])
        weigh(states, player, rows, weights)
        if n == 1:
            # One continuation of weight 1 per state; no enumeration is needed.
            states = rules.child(states, choose(weights, draw(rows)))
            continue
        weights *= (weight / weights.sum(axis=1))[:, None]
        at, action = np.nonzero(weights)
        weight = _thinned(rows[at], weights[at, action], n, draw)
        kept = weight > 0
        at, action, weight = at[kept], action[kept], weight[kept]
        states, rows = rules.child(states[at], action), rows[at]
    return total


def _thinned(
    rows: np.ndarray,
    weight: np.ndarray,
    n: int,
    draw: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return weights with at most n positive ones in each row, float64 [m].

    Args:
      rows: Row of each entry, int64 [m], ascending.
      weight: Weights above 0, float64 [m].
      n, draw: Arguments of `rollout_means`.
    """
    number, first, counts = np.unique(rows, return_index=True, return_counts=True)
    if (counts <= n).all():
        return weight
    group = np.repeat(np.arange(len(number)), counts)
    cumulative = np.cumsum(weight)
    begin = cumulative[first] - weight[first]
    totals = cumulative[first + counts - 1] - begin
    # A row whose weights are too small to change the cumulative sum is summed alone.
    totals = np.where(totals > 0, totals, np.add.reduceat(weight, first))
    # Number of a row's n points below the cumulative weight of each entry.
    share = (cumulative - begin[group]) / totals[group]
    points = np.ceil(n * share - draw(number)[group]).clip(0, n)
    points[first + counts - 1] = n
    drawn = np.diff(points, prepend=0.0)
    drawn[first] = points[first]
    return np.where(counts[group] <= n, weight, drawn * totals[group] / n)


def rollout_mean(
    state: pyspiel.State,
    n: int,
    draw: Callable[[], float],
    weights_of: Callable[[pyspiel.State], Mapping[int, float]],
) -> float:
    """Estimate player 0's mean utility of a state by n rollouts, as `rollout_means`.

    Args:
      state: The state, which is not changed.
      n: Number of rollouts.
      draw: Source of numbers in [0, 1).
      weights_of: Function from a state to weights of its actions, in any scale.
    """
    if n == 1:
        return _one_rollout(state, draw, weights_of)
    frontier, total = [(state, 1.0)], 0.0
    while frontier:
        ways = []
        for at, weight in frontier:
            if at.is_terminal():
                total += weight * player_return(at, 0)
                continue
            listed = {a: p for a, p in sorted(weights_of(at).items()) if p > 0}
            scale = weight / sum(listed.values())
            ways += [(at, action, scale * p) for action, p in listed.items()]
        if len(ways) > n:
            weights = np.array([weight for *_, weight in ways])
            nothing = np.zeros(len(ways), np.int64)
            thinned = _thinned(nothing, weights, n, lambda _: np.array([draw()]))
            ways = [
                (at, action, weight)
                for (at, action, _), weight in zip(ways, thinned.tolist(), strict=True)
                if weight > 0
            ]
        frontier = [(at.child(action), weight) for at, action, weight in ways]
    return total


def _one_rollout(
    state: pyspiel.State,
    draw: Callable[[], float],
    weights_of: Callable[[pyspiel.State], Mapping[int, float]],
) -> float:
    """Return the utility of a single rollout, as `rollout_mean` with n = 1."""
    at = state.clone()
    while not at.is_terminal():
        weights = weights_of(at)
        actions, left = list(weights), draw() * sum(weights.values())
        for action in actions:
            left -= weights[action]
            if left < 0:
                break
        else:  # rounding; the last that can be
            action = max(weights, key=weights.__getitem__)
        at.apply_action(action)
    return player_return(at, 0)
