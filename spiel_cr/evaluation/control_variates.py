"""Control variates of matches in which the probabilities of moves are known."""

from collections.abc import Mapping

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.rollouts import Answers, draw_outcome, moves, play_on

# Smallest number of matches that suffices to estimate the correlation.
_LEAST = 20


class Luck:
    """The effect of moves of chance and the opponent on a responder's return.

    At each such move an alternative is sampled from the same probabilities, and both
    are played to the end. The difference of the two returns has mean zero after any
    earlier moves, and so has the sum over the match. It is a control variate as in
    AIVAT (Burch et al. 2018), with one sampled move in place of the expectation over
    all moves. The object is an observer of `play_match`.

    Attributes:
      total: Sum over the match so far, in the game's units.
    """

    def __init__(
        self,
        player: int,
        answers: Mapping[int, Answers],
        random: np.random.Generator,
        *,
        rollouts: int,
        opponent_is_known: bool,
    ) -> None:
        """Start with a total of zero.

        Args:
          player: The responder.
          answers: Policies of both players in rollouts; the opponent's is that of the
            match.
          random: Random numbers.
          rollouts: Number of rollouts after each of the two moves.
          opponent_is_known: Whether the opponent plays the policy of `answers` in the
            match; otherwise only moves of chance count.
        """
        self._player, self._answers, self._random = player, answers, random
        self._rollouts, self._known = rollouts, opponent_is_known
        self.total = 0.0

    def __call__(self, state: pyspiel.State, player: int, action: int) -> None:
        """Add the effect of a move, before the move is applied."""
        if player == self._player or (player >= 0 and not self._known):
            return
        # No policy is queried at chance nodes.
        outcomes = list(moves(state, self._answers[max(player, 0)]).items())
        if len(outcomes) < 2:
            return
        other = draw_outcome(outcomes, self._random.random())
        if other != action:
            gain = self._value(state.child(action)) - self._value(state.child(other))
            self.total += gain

    def _value(self, state: pyspiel.State) -> float:
        """Return the responder's mean return of rollouts."""
        total = 0.0
        for _ in range(self._rollouts):
            end = state.clone()
            if end.current_player() != TERMINAL:
                play_on(end, self._answers, self._random.random)
            total += player_return(end, self._player)
        return total / self._rollouts


def without_luck(returns: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """Subtract a control variate from returns; the expectation is unchanged.

    The coefficient is fitted by least squares. That of each half of the matches is
    fitted on the other half, so that no match affects its own correction.

    Args:
      returns: Returns of independent matches, float64 [n].
      luck: The control variate, of mean zero, see `Luck`, float64 [n].

    Returns:
      float64 [n].
    """
    if len(returns) < _LEAST:
        return returns
    result = returns.copy()
    halves = np.arange(len(returns)) % 2 == 0
    for half in (halves, ~halves):
        rest = luck[~half]
        spread = float(np.square(rest).sum())
        if spread:
            centred = returns[~half] - returns[~half].mean()
            result[half] -= float(centred @ rest) / spread * luck[half]
    return result
