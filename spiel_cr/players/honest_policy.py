"""The honest policy of poker, which uses the player's cards and ignores all bets.

This opponent comes from a thesis on Deep CFR in limit hold'em. At each decision it
deals the remaining board and the opponent's cards at random, 100 times. If it wins at
least half of these showdowns, it calls; otherwise it folds.

Deviations: If there is nothing to call, it checks with any cards. A tie counts as half
a win, which the thesis does not specify. The policy deals by OpenSpiel's states, so it
plays every game whose actions are called fold, call and raise.
"""

from typing import TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.game_checks import chance_outcomes, player_return
from spiel_cr.players.fixed_policies import FixedPolicy, NotPokerError, PokerRoles
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.rollouts import (
    REMEMBERED,
    Answers,
    draw_outcome,
    play_on,
    uniform_numbers,
)

ROLLOUTS = 100
# Deals that contradict the player's information are sampled again. In hold'em that is
# one of four; if it is 999 of 1000, the game does not deal as this policy assumes.
_MOST_DRAWS = 1000


# Placeholder of an unobserved chance outcome, larger than all cards.
_UNKNOWN = 2**31 - 1


# An action, whether chance took it, and whether the player did not observe it.
_Step: TypeAlias = tuple[int, bool, bool]


class HonestPolicy(StatePolicy):
    """A policy that calls if it wins at least half of its rollouts; otherwise it folds.

    Equal cards give equal answers after any bets, because the random numbers of
    rollouts depend on the seed and the observed cards only.
    """

    def __init__(
        self, game: pyspiel.Game, *, rollouts: int = ROLLOUTS, seed: int = 0
    ) -> None:
        """Recognise the actions of a game.

        Args:
          game: A game of poker.
          rollouts: Number of rollouts per decision.
          seed: Seed of the rollouts.

        Raises:
          ValueError: If the game is not poker, `rollouts` is not a positive integer, or
            the seed is invalid.
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
        # Whether a player observed the chance outcome after these actions.
        self._seen: dict[tuple[int, tuple[int, ...]], bool] = {}
        # Results by the player and the chance outcomes that it knows.
        self._shares: dict[tuple[int, ...], float] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the answer at a state, 0 or 1 per action; see `StatePolicy`."""
        stays = not self._roles.must_call(state) or self.win_share(state, player) >= 0.5
        return (self._calls if stays else self._folds).action_probabilities(state)

    def win_share(self, state: pyspiel.State, player: int) -> float:
        """Estimate the probability that the player wins; ties count half.

        Args:
          state: A decision of the player; only the player's information is used.
          player: The player whose cards are known.

        Raises:
          ValueError: If hardly any deal agrees with the player's information.
        """
        steps = self._steps(state, player)
        # The chance outcomes, with the placeholder for unobserved ones.
        cards = (
            player,
            *(_UNKNOWN if free else action for action, chance, free in steps if chance),
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
        """Return the share of won rollouts; see `win_share`."""
        seen = state.information_state_string(player)
        number = uniform_numbers(np.random.default_rng([self._seed, *cards]))
        wins = total = 0.0
        accepted = draws = 0
        while accepted < self._rollouts:
            draws += 1
            if draws > _MOST_DRAWS * self._rollouts:
                raise ValueError(
                    f"bot='honest': only {accepted} of {draws - 1} deals of "
                    f"{self._game} agree with the cards that player {player} "
                    f"observed; choose a game of poker whose private cards the "
                    f"opponent does not see"
                )
            dealt = self._game.new_initial_state()
            weight = 1.0
            for action, chance, free in steps:
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
        """Return the actions from the root."""
        steps = []
        for before, action in moves_along(self._game, state.history()):
            chance = before.is_chance_node()
            free = chance and not self._saw(before, player, action)
            steps.append((action, chance, free))
        return steps

    def _saw(self, state: pyspiel.State, player: int, action: int) -> bool:
        """Return whether the player observes an outcome of chance immediately."""
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
