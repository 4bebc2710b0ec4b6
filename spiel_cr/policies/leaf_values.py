"""What histories are worth at which a lookahead or a lookahead tree ends.

`HistoryValues` give one fixed number for each history, whatever the players' ranges, or
k among which the opponent chooses by what it knows. A lookahead that ends in fixed ones
is not sound, not even with the values of an equilibrium: those are right only if both
go on to play that equilibrium, whatever was played before, and the solver then plays as
if nobody could do anything else (docs/partial.md has figures).

Histories come in any of the three forms in which a game can be held: as numbers of a
compiled game, as the array of states of batched rules, or as OpenSpiel's states.
"""

import abc
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common.draws import choose
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.conversions import history_values

AnyGame: TypeAlias = GameTree | BatchedRules | pyspiel.Game


class HistoryValues(abc.ABC):
    """What histories are worth: k numbers each, whatever the players' ranges are.

    A solution above such values has no guarantee in the whole game.

    Attributes:
      k: among how many numbers the opponent of the resolving player chooses, by what it
        knows; 1: each history has a fixed one.
    """

    k: int = 1

    @abc.abstractmethod
    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        """Values histories at which the game is cut off.

        Args:
          game: says in which form the histories are given: the compiled game, the
            batched rules, or OpenSpiel's game.
          histories: none of them terminal. Of a compiled game their numbers, int64 [L]
            (`game.histories.actions_to(h)` leads to one); of batched rules its
            array of states, [L, ...]; of OpenSpiel's game an object array [L] of its
            states, which must not be changed.
          player: i, the resolving player; of k > 1 numbers the other one chooses.

        Returns:
          float64 [L, k], or [L] where k is 1, player 0's expected utility, in the
          game's units.
        """


def leaf_utilities(
    value: HistoryValues, game: AnyGame, histories: np.ndarray, player: int = 0
) -> np.ndarray:
    """float64 [L, k], what a leaf value says of some histories, see `HistoryValues`.

    Raises:
      ValueError: what it says has another shape, or is no finite numbers.
    """
    values = np.asarray(value(game, histories, player), np.float64)
    count = len(histories)
    shapes = [(count, value.k)] + [(count,)] * (value.k == 1)
    if values.shape not in shapes or not np.isfinite(values).all():
        raise ValueError(
            f"the leaf value gave an array of shape {values.shape} for {count} "
            f"histories and k={value.k}, or something that is no finite number"
        )
    return values.reshape(count, value.k)


class UniformValue(HistoryValues):
    """Exact values when both players play all actions alike from there on.

    Only for compiled games, which alone hold all that can follow.
    """

    def __init__(self) -> None:
        """Knows no game yet."""
        self._known: tuple[GameTree, np.ndarray] | None = None

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        assert isinstance(game, GameTree)
        if self._known is None or self._known[0] is not game:
            self._known = game, history_values(game, None)
        return self._known[1][histories]


def rollout_means(
    rules: BatchedRules,
    states: np.ndarray,
    n: int,
    draw: Callable[[np.ndarray], np.ndarray],
    weigh: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None],
) -> np.ndarray:
    """Means of n rollouts of each of many states, which go different ways.

    The rollouts of a state are drawn together: all ways are taken, each with its
    probability for a weight, as long as these are at most n; of more, n are drawn at
    even distances (systematic resampling, Kitagawa 1996). So means are unbiased, and
    exact where never more than n ways are open.

    Args:
      rules: of the game.
      states: [L, ...], of these rules.
      n: rollouts of each.
      draw: for numbers int64 [m] of states, ascending, float64 [m] of [0, 1).
      weigh: `weigh(states, player, rows, odds)` may change how likely actions are,
        float64 [r, A], 1 for legal ones of players; `rows` are the numbers of the
        states that these come from.

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
        odds = rules.legal_actions_mask(states).astype(np.float64)
        draws = player == CHANCE
        if draws.any():
            odds[draws] *= rules.chance_probabilities(states[draws])
        weigh(states, player, rows, odds)
        if n == 1:
            # One way each, of weight 1: no list of all ways is made.
            states = rules.child(states, choose(odds, draw(rows)))
            continue
        odds *= (weight / odds.sum(axis=1))[:, None]
        at, action = np.nonzero(odds)
        weight = _thinned(rows[at], odds[at, action], n, draw)
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
    """float64 [m], weights, positive at at most n of the places of each row.

    Args:
      rows: int64 [m], ascending.
      weight: float64 [m], above 0.
      n, draw: as of `rollout_means`.
    """
    number, first, counts = np.unique(rows, return_index=True, return_counts=True)
    if (counts <= n).all():
        return weight
    group = np.repeat(np.arange(len(number)), counts)
    ends = np.cumsum(weight)
    begin = ends[first] - weight[first]
    whole = ends[first + counts - 1] - begin
    # Weights so small that they are lost in the sums of those before.
    whole = np.where(whole > 0, whole, np.add.reduceat(weight, first))
    # How many of the n points of its row lie before the end of each place.
    share = (ends - begin[group]) / whole[group]
    points = np.ceil(n * share - draw(number)[group]).clip(0, n)
    points[first + counts - 1] = n
    drawn = np.diff(points, prepend=0.0)
    drawn[first] = points[first]
    return np.where(counts[group] <= n, weight, drawn * whole[group] / n)


def rollout_mean(
    state: pyspiel.State,
    n: int,
    draw: Callable[[], float],
    odds: Callable[[pyspiel.State], Mapping[int, float]],
) -> float:
    """Player 0's mean utility over n rollouts of a state, as of `rollout_means`.

    Args:
      state: is not changed.
      n: rollouts.
      draw: gives numbers from 0 to 1.
      odds: how likely actions are, in any scale.
    """
    if n == 1:
        return _one_rollout(state, draw, odds)
    found, total = [(state, 1.0)], 0.0
    while found:
        ways = []
        for at, weight in found:
            if at.is_terminal():
                total += weight * game_checks.player_return(at, 0)
                continue
            known = {action: p for action, p in sorted(odds(at).items()) if p > 0}
            scale = weight / sum(known.values())
            ways += [(at, action, scale * p) for action, p in known.items()]
        if len(ways) > n:
            weights = np.array([weight for *_, weight in ways])
            nothing = np.zeros(len(ways), np.int64)
            thinned = _thinned(nothing, weights, n, lambda _: np.array([draw()]))
            ways = [
                (at, action, weight)
                for (at, action, _), weight in zip(ways, thinned.tolist(), strict=True)
                if weight > 0
            ]
        found = [(at.child(action), weight) for at, action, weight in ways]
    return total


def _one_rollout(
    state: pyspiel.State,
    draw: Callable[[], float],
    odds: Callable[[pyspiel.State], Mapping[int, float]],
) -> float:
    """As `rollout_mean` with n = 1, by a single state that goes on."""
    at = state.clone()
    while not at.is_terminal():
        known = odds(at)
        actions, left = list(known), draw() * sum(known.values())
        for action in actions:
            left -= known[action]
            if left < 0:
                break
        else:  # rounding; the last that can be
            action = max(known, key=known.__getitem__)
        at.apply_action(action)
    return game_checks.player_return(at, 0)
