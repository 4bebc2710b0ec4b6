"""What players give away in matches against an equilibrium, action by action."""

from collections.abc import Sequence

import numpy as np
import pyspiel

import spiel_cr
from spiel_cr.policies.best_responses import expected_value, reach_of
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.conversions import history_values


class Values:
    """An equilibrium and what actions are worth against it."""

    def __init__(self, game: str, iterations: int) -> None:
        """Compiles the game and solves it.

        Args:
          game: OpenSpiel string.
          iterations: of pdcfr+.
        """
        self.tree = spiel_cr.compile_game(game, observations=True)
        result = spiel_cr.solve(self.tree, "pdcfr+", iterations)
        self.nash_conv = result.nash_conv()
        self.behaviour = result.average
        reach = reach_of(self.tree.form, result.average)
        values = history_values(self.tree, result.average)
        self._worth = [self._action_values(p, reach[1 - p], values) for p in (0, 1)]
        self._infosets = [
            {key: number for number, key in enumerate(infosets.keys)}
            for infosets in self.tree.infosets
        ]

    def at(self, state: pyspiel.State) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Actions of who acts, the equilibrium's strategy, and what they are worth.

        Returns:
          OpenSpiel's actions; float64 [A], probabilities; float64 [A], the acting
          player's utility, NaN where an equilibrium opponent never leads there.
        """
        player = state.current_player()
        infoset = self._infosets[player][state.information_state_string(player)]
        infosets = self.tree.infosets[player]
        first = int(infosets.decisions.first_sequence[infoset])
        own = slice(first, first + int(infosets.decisions.num_actions[infoset]))
        actions = infosets.actions[own.start - 1 : own.stop - 1].tolist()
        return actions, self.behaviour[player][own], self._worth[player][own]

    def loss(self, player: int, behaviour: np.ndarray) -> float:
        """What a strategy gives away in a match against the equilibrium, expected.

        Args:
          player: whose strategy.
          behaviour: float64 [S], action probabilities by logical sequence.

        Returns:
          In the game's units: the mean of what `losses` draws.
        """
        first, second = self.behaviour
        played = (behaviour, second) if player == 0 else (first, behaviour)
        equilibrium, found = (
            expected_value(self.tree.form, reach_of(self.tree.form, pair))
            for pair in (self.behaviour, played)
        )
        return (equilibrium - found) * (1.0 if player == 0 else -1.0)

    def _action_values(
        self, player: int, reach: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """float64 [S], the player's utility after each of its actions; NaN as in `at`.

        Args:
          player: who acts.
          reach: float64 [S], of the opponent's sequences.
          values: float64 [N], player 0's utility from each history on.
        """
        histories = self.tree.histories
        after = 1 + np.flatnonzero(histories.player[histories.parent[1:]] == player)
        before, sequence = histories.parent[after], histories.sequence[player, after]
        other = histories.sequence[1 - player, before]
        weights = histories.chance[before] * reach[other]
        count = self.tree.infosets[player].decisions.num_sequences
        total = np.bincount(sequence, weights, count)
        sums = np.bincount(sequence, weights * values[after], count)
        worth = np.full(count, np.nan)
        np.divide(sums, total, out=worth, where=total > 0)
        return worth if player == 0 else -worth


def losses(
    values: Values, pair: Sequence[pyspiel.Bot], matches: int, seed: int
) -> np.ndarray:
    """Plays matches against the equilibrium, seats in turn.

    Args:
      values: of the game.
      pair: the bot for each seat. Those that provide no policy are judged by the
        actions that they choose.
      matches: how many.
      seed: of what the equilibrium draws, and of what policies draw.

    Returns:
      float64 [matches], what the bot gave away in each, in the game's units.
    """
    random, found = np.random.default_rng(seed), np.zeros(matches)
    for number in range(matches):
        seat, state = number % 2, values.tree.game.new_initial_state()
        pair[seat].restart()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(random.choice(outcomes, p=chances)))
                continue
            actions, odds, worth = values.at(state)
            if state.current_player() == seat:
                best = odds @ worth
                odds = _answer(pair[seat], state, actions)
                found[number] += best - odds @ worth
            state.apply_action(int(random.choice(actions, p=odds / odds.sum())))
    return found


def _answer(
    bot: pyspiel.Bot, state: pyspiel.State, actions: Sequence[int]
) -> np.ndarray:
    """float64 [A], how a bot plays."""
    if isinstance(bot, PolicyPlayer):
        given = dict(bot.get_policy(state))
        return np.array([given.get(action, 0.0) for action in actions])
    chosen = bot.step(state.clone())
    return np.array([float(action == chosen) for action in actions])
