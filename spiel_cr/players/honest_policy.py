"""The honest player of poker: it looks at its cards, never at what the others do.

An opponent of a thesis on Deep CFR in limit hold'em, there written for that game: at
each decision it deals the board that is to come and the opponent's cards at random, 100
times. If it wins at least half of these showdowns, it calls; else it folds.

Deviations. Where there is nothing to call it checks, whatever its cards are. A tie
counts as half a win, of which the thesis says nothing. The player knows no game by
name: it deals by OpenSpiel's states, so it plays every game whose actions are called
fold, call and raise.
"""

from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.players.poker_roles import NotPokerError, PokerRoles
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.rollouts import (
    REMEMBERED,
    Answers,
    draw_outcome,
    play_on,
    uniform_numbers,
)

ROLLOUTS = 100
# Deals that contradict what the player saw are drawn again. In hold'em that is one in
# four; a game in which it is 999 of 1000 is not dealt as this player thinks.
_MOST_DRAWS = 1000


# In the place of an outcome of chance; cards are smaller.
_UNKNOWN = 2**31 - 1


class _Step(NamedTuple):
    """An action; of chance or not, and if so whether the player does not know it."""

    action: int
    free: bool
    chance: bool


class HonestPolicy(StatePolicy):
    """Calls if it wins at least half of its rollouts, else folds.

    Equal cards give equal answers, whatever was bet: rollouts draw from numbers made of
    the seed and the cards that the player sees.
    """

    def __init__(
        self, game: pyspiel.Game, *, rollouts: int = ROLLOUTS, seed: int = 0
    ) -> None:
        """Deals nothing yet.

        Args:
          game: a game of poker.
          rollouts: of each decision.
          seed: of the rollouts.

        Raises:
          ValueError: the game is not poker, `rollouts` is no positive whole number, or
            a bad seed.
        """
        check_iterations(rollouts, name="rollouts")
        self._seed = check_seed(seed)
        super().__init__(game)
        try:
            self._roles = PokerRoles(game)
            self._calls = FixedPolicy(game, "always_call")
            self._folds = FixedPolicy(game, "always_fold")
        except NotPokerError as error:
            raise NotPokerError(f"bot='honest': {error}") from error
        self._game = game
        self._rollouts = rollouts
        self._both = {player: Answers(self._calls, player) for player in range(2)}
        # Whether a player saw what chance dealt after these actions.
        self._seen: dict[tuple[int, tuple[int, ...]], bool] = {}
        # By the player and the outcomes of chance that it knows.
        self._shares: dict[tuple[int, ...], float] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`; 0 or 1."""
        stays = not self._roles.must_call(state) or self.win_share(state, player) >= 0.5
        return (self._calls if stays else self._folds).action_probabilities(state)

    def win_share(self, state: pyspiel.State, player: int) -> float:
        """How many of the rollouts the player wins, ties counted half; in [0, 1].

        Args:
          state: a decision of the player; what it does not know is not looked at.
          player: whose cards are known.

        Raises:
          ValueError: hardly any deal agrees with what the player saw.
        """
        steps = self._steps(state, player)
        # Chance's outcomes; those that the player does not know are all alike to it.
        cards = (
            player,
            *(_UNKNOWN if free else action for action, free, chance in steps if chance),
        )
        if cards not in self._shares:
            if len(self._shares) >= REMEMBERED:
                self._shares.clear()
            self._shares[cards] = self._roll_out(state, player, steps, cards)
        return self._shares[cards]

    def _roll_out(
        self,
        state: pyspiel.State,
        player: int,
        steps: list[_Step],
        cards: tuple[int, ...],
    ) -> float:
        """The share of rollouts that are won; see `win_share`."""
        seen = state.information_state_string(player)
        number = uniform_numbers(np.random.default_rng([self._seed, *cards]))
        wins = total = 0.0
        accepted = draws = 0
        while accepted < self._rollouts:
            draws += 1
            if draws > _MOST_DRAWS * self._rollouts:
                raise ValueError(
                    f"bot='honest': of {draws - 1} deals of {self._game} {accepted} "
                    f"agree with what player {player} saw; choose a game of poker "
                    f"whose private cards are dealt unseen by the opponent"
                )
            dealt = self._game.new_initial_state()
            weight = 1.0
            for action, free, chance in steps:
                if chance:
                    outcomes = dealt.chance_outcomes()
                    if free:
                        action = draw_outcome(outcomes, number())
                    else:
                        weight *= dict(outcomes).get(action, 0.0)
                        if not weight:
                            break
                dealt.apply_action(action)
            if not weight or dealt.information_state_string(player) != seen:
                continue
            accepted += 1
            total += weight
            play_on(dealt, self._both, number)
            value = player_return(dealt, player)
            wins += weight * ((value > 0) + (value >= 0)) / 2
        return wins / total

    def _steps(self, state: pyspiel.State, player: int) -> list[_Step]:
        """The way from the root."""
        steps = []
        for before, action in moves_along(self._game, state.history()):
            chance = before.is_chance_node()
            free = chance and not self._saw(before, player, action)
            steps.append(_Step(action, free, chance))
        return steps

    def _saw(self, state: pyspiel.State, player: int, action: int) -> bool:
        """Whether an outcome of chance is told from all others at once."""
        key = player, (*state.history(), action)
        if key not in self._seen:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            key_after = state.child(action).information_state_string(player)
            self._seen[key] = all(
                state.child(other).information_state_string(player) != key_after
                for other, _ in chance_outcomes(state)
                if other != action
            )
        return self._seen[key]
